// What pruning has found of a query so far.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reservoir.hpp"

namespace cghash {

// Codes whose rows are looked up in the end: those as near as the k-th nearest of them, and its equals.
class Shortlist {
   public:
    struct Entry {
        std::int64_t distance;
        std::uint32_t key, place;
        std::size_t table;
    };

    explicit Shortlist(std::int64_t k) : k_(k), room_(k), in_order_(k <= few) {
        if (in_order_) entries_.reserve(2 * few);
    }
    std::int64_t limit() const { return limit_; }
    const std::vector<Entry>& entries() const { return entries_; }

    // True when the limit has fallen.
    bool add(const Entry& entry) {
        if (in_order_) return insert(entry);
        entries_.push_back(entry);
        return static_cast<std::int64_t>(entries_.size()) >= room_ && shrink();
    }
    bool tighten() { return !in_order_ && static_cast<std::int64_t>(entries_.size()) > k_ && shrink(); }

   private:
    static constexpr std::int64_t few = 32;
    static bool nearer(const Entry& a, const Entry& b) { return a.distance < b.distance; }

    // Few are kept in order: then the limit falls at once.
    bool insert(const Entry& entry) {
        entries_.insert(std::upper_bound(entries_.begin(), entries_.end(), entry, nearer), entry);
        if (static_cast<std::int64_t>(entries_.size()) < k_) return false;
        const auto before = limit_;
        limit_ = entries_[k_ - 1].distance;
        while (entries_.back().distance > limit_) entries_.pop_back();
        return limit_ < before;
    }
    bool shrink() {
        std::nth_element(entries_.begin(), entries_.begin() + (k_ - 1), entries_.end(), nearer);
        const auto before = limit_;
        limit_ = entries_[k_ - 1].distance;
        std::erase_if(entries_, [this](const Entry& entry) { return entry.distance > limit_; });
        const auto held = static_cast<std::int64_t>(entries_.size());  // with ties, which may be many: double
        room_ = held + std::max({held > k_ ? held : 0, k_ / 2, std::int64_t{4}});
        return limit_ < before;
    }

    std::int64_t k_, room_, limit_ = Reservoir::unlimited;
    bool in_order_;
    std::vector<Entry> entries_;
};

}  // namespace cghash
