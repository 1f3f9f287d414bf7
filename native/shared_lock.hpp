// A lock that readers share and a writer has alone. Who comes waits behind those who came before.
#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace cghash {

class SharedLock {
   public:
    enum class As { reader, writer };

    // Take it at once, if nobody keeps it from us. A thread that has it already may read: a signal's handler may run
    // anywhere, and must not wait for the call that it came out of.
    bool try_take(As as) {
        const std::lock_guard guard(mutex_);
        const bool again = as == As::reader && has(std::this_thread::get_id());
        if (!again && (!queue_.empty() || !is_free(as))) return false;
        enter(as);
        return true;
    }
    // Whether this thread has it, and would wait for itself.
    bool is_mine() {
        const std::lock_guard guard(mutex_);
        return has(std::this_thread::get_id());
    }
    // A place in the queue, to wait with.
    std::uint64_t queue_up() {
        const std::lock_guard guard(mutex_);
        queue_.push_back(++last_place_);
        return last_place_;
    }
    // Wait for some time; true when it was taken, and the place is gone.
    bool wait(std::uint64_t place, As as, std::chrono::milliseconds most) {
        std::unique_lock guard(mutex_);
        if (!changed_.wait_for(guard, most, [&] { return queue_.front() == place && is_free(as); })) return false;
        queue_.pop_front();
        enter(as);
        changed_.notify_all();  // the next may be a reader too
        return true;
    }
    // Let others pass, who look again after a while. Nobody is woken: who steps back at once keeps his place.
    void step_aside(std::uint64_t place) {
        const std::lock_guard guard(mutex_);
        queue_.erase(std::lower_bound(queue_.begin(), queue_.end(), place));
    }
    void step_back(std::uint64_t place) {
        const std::lock_guard guard(mutex_);
        queue_.insert(std::lower_bound(queue_.begin(), queue_.end(), place), place);
    }
    void give_back() {
        const std::lock_guard guard(mutex_);
        const auto mine = std::find(inside_.rbegin(), inside_.rend(), std::this_thread::get_id());
        if (mine == inside_.rend()) return;  // it was reset meanwhile
        *mine = inside_.back();
        inside_.pop_back();
        if (inside_.empty()) is_written_ = false;  // a writer that reads, too, has it to the end
        if (!queue_.empty()) changed_.notify_all();
    }
    // As it was when it was made, in a process that was just forked: other threads, and what they held, are not here.
    // Whether a writer was among them.
    bool reset() {
        const bool was_written = is_written_;
        const auto last_place = last_place_;
        new (this) SharedLock;  // not destroyed first: its mutex may be locked for ever
        last_place_ = last_place;
        return was_written;
    }

   private:
    bool is_free(As as) const { return inside_.empty() || (as == As::reader && !is_written_); }
    bool has(std::thread::id thread) const {
        return std::find(inside_.begin(), inside_.end(), thread) != inside_.end();
    }
    void enter(As as) {
        inside_.push_back(std::this_thread::get_id());
        if (as == As::writer) is_written_ = true;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::uint64_t> queue_;      // who waits, by place: earlier ones are lower
    std::vector<std::thread::id> inside_;  // readers, or the writer, once for each time it came in
    std::uint64_t last_place_ = 0;
    bool is_written_ = false;
};

}  // namespace cghash
