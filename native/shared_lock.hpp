// A lock that readers share and a writer has alone. Who comes waits behind those who came before.
#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <new>

namespace cghash {

class SharedLock {
   public:
    enum class As { reader, writer };

    // Take it at once, if nobody keeps it from us.
    bool try_take(As as) {
        const std::lock_guard guard(mutex_);
        if (!queue_.empty() || !is_free(as)) return false;
        enter(as);
        return true;
    }
    // A place in the queue, to wait with; given up by `leave_queue` where it is not used.
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
    void leave_queue(std::uint64_t place) {
        const std::lock_guard guard(mutex_);
        queue_.erase(std::find(queue_.begin(), queue_.end(), place));
        changed_.notify_all();
    }
    void give_back(As as) {
        const std::lock_guard guard(mutex_);
        if (as == As::writer) is_written_ = false;
        else if (n_readers_) --n_readers_;  // none after a reset while it was held
        if (!queue_.empty()) changed_.notify_all();
    }
    // As it was when it was made, in a process that was just forked: other threads, and what they held, are not here.
    // Whether a writer was among them.
    bool reset() {
        const bool was_written = is_written_;
        new (this) SharedLock;  // not destroyed first: its mutex may be locked for ever
        return was_written;
    }

   private:
    bool is_free(As as) const { return !is_written_ && (as == As::reader || !n_readers_); }
    void enter(As as) {
        if (as == As::writer) is_written_ = true;
        else ++n_readers_;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::uint64_t> queue_;  // who waits, by place
    std::uint64_t last_place_ = 0;
    std::int64_t n_readers_ = 0;
    bool is_written_ = false;
};

}  // namespace cghash
