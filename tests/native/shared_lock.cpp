// SharedLock by itself, without Python and its lock: built with -fsanitize=thread, any access that nothing orders is an
// error. Exits with 1 where a reader sees a writer half-way, or where a thread is told that it is inside when it is not.
#include "../../native/shared_lock.hpp"

#include <atomic>
#include <cstdio>

using namespace cghash;
using namespace std::chrono_literals;

namespace {

SharedLock lock;
long first = 0, second = 0;  // what the lock guards
std::atomic<long> n_wrong{0}, n_aside{0};

void take(SharedLock::As as) {
    if (lock.try_take(as)) return;
    if (lock.is_mine()) ++n_wrong;
    const auto place = lock.queue_up();
    while (!lock.wait(place, as, 1ms)) {
        lock.step_aside(place);  // as where Python looks for signals
        ++n_aside;
        lock.step_back(place);
    }
}

void read() {
    take(SharedLock::As::reader);
    if (first != second || !lock.is_mine()) ++n_wrong;
    if (!lock.try_take(SharedLock::As::reader)) ++n_wrong;  // again, as a handler does
    lock.give_back();
    if (!lock.is_mine() || lock.try_take(SharedLock::As::writer)) ++n_wrong;
    lock.give_back();
}

void write() {
    take(SharedLock::As::writer);
    ++first;
    if (first % 8 == 0) std::this_thread::sleep_for(2ms);  // others wait so long that they step aside
    ++second;
    lock.give_back();
}

}  // namespace

int main() {
    constexpr int n_threads = 6, n_rounds = 300;
    std::vector<std::thread> threads;
    for (int t = 0; t < n_threads; ++t)
        threads.emplace_back([t] {
            for (int i = 0; i < n_rounds; ++i)
                if (i % n_threads == t) write();
                else read();
        });
    for (auto& thread : threads) thread.join();
    const bool is_whole = first == n_rounds && second == n_rounds && !lock.is_mine();
    std::printf("%ld wrong, %ld stepped aside\n", n_wrong.load(), n_aside.load());
    return n_wrong || !is_whole ? 1 : 0;
}
