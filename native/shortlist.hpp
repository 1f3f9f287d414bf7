// What pruning has found of a query so far.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reservoir.hpp"

namespace cghash {

// Codes whose rows are looked up in the end: those as near as the k-th nearest row of them, and its equals.
class Shortlist {
   public:
    struct Entry {
        std::int64_t distance;
        std::uint32_t key, place;
        std::size_t table;
        std::int64_t n_rows;  // at least
    };

    explicit Shortlist(std::int64_t k) : k_(k), room_(k), held_(k), in_order_(k <= few) {
        if (in_order_) entries_.reserve(2 * few);
    }
    std::int64_t limit() const { return limit_; }
    const std::vector<Entry>& entries() const { return entries_; }

    // True when the limit has fallen.
    bool add(const Entry& entry) {
        n_rows_ += entry.n_rows;
        // few are kept in order: then the limit falls at once
        const auto at = in_order_ ? std::upper_bound(entries_.begin(), entries_.end(), entry, nearer) : entries_.end();
        entries_.insert(at, entry);
        return n_rows_ >= room_ && shrink();
    }
    bool tighten() { return !in_order_ && n_rows_ > held_ && shrink(); }

   private:
    static constexpr std::int64_t few = 32;
    static bool nearer(const Entry& a, const Entry& b) { return a.distance < b.distance; }

    bool shrink() {
        if (!in_order_) std::sort(entries_.begin(), entries_.end(), nearer);
        const auto before = limit_;
        auto kth = entries_.begin();
        for (auto sum = kth->n_rows; sum < k_; sum += kth->n_rows) ++kth;
        limit_ = kth->distance;
        for (; entries_.back().distance > limit_; entries_.pop_back()) n_rows_ -= entries_.back().n_rows;
        held_ = n_rows_;
        if (!in_order_)
            room_ = held_ + std::max({held_ > k_ ? held_ : 0, k_ / 2, std::int64_t{4}});  // ties may be many: double
        return limit_ < before;
    }

    std::int64_t k_, room_, held_;  // rows: that are asked for, at which it shrinks, and that were left then
    std::int64_t n_rows_ = 0, limit_ = Reservoir::unlimited;
    bool in_order_;
    std::vector<Entry> entries_;
};

}  // namespace cghash
