// Fixed chunks shared out among threads: what a chunk computes never depends on how many threads there are.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace cghash {

template <class Work>
void parallel_chunks(std::int64_t n_chunks, int n_threads, Work work) {
    const auto n_workers = std::min<std::int64_t>(std::max(n_threads, 1), n_chunks);
    if (n_workers <= 1) {
        for (std::int64_t chunk = 0; chunk < n_chunks; ++chunk) work(chunk);
        return;
    }
    std::atomic<std::int64_t> next{0};
    std::vector<std::exception_ptr> failures(n_workers);
    auto worker = [&](std::int64_t self) {
        try {
            for (std::int64_t chunk; (chunk = next.fetch_add(1)) < n_chunks;) work(chunk);
        } catch (...) {
            failures[self] = std::current_exception();
        }
    };
    std::vector<std::thread> threads;
    try {
        for (std::int64_t i = 1; i < n_workers; ++i) threads.emplace_back(worker, i);
    } catch (...) {  // no more threads to be had: those that are there do the work
    }
    worker(0);
    for (auto& thread : threads) thread.join();
    for (auto& failure : failures)
        if (failure) std::rethrow_exception(failure);
}

}  // namespace cghash
