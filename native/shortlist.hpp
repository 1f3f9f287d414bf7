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

    explicit Shortlist(std::int64_t k) : k_(k), room_(k), in_order_(k <= few) {
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
    bool tighten() { return !in_order_ && n_rows_ > k_ && shrink(); }

   private:
    static constexpr std::int64_t few = 32;
    static bool nearer(const Entry& a, const Entry& b) { return a.distance < b.distance; }

    bool shrink() {
        if (!in_order_) std::sort(entries_.begin(), entries_.end(), nearer);
        const auto before = limit_;
        std::int64_t sum = 0;
        auto last = entries_.begin();
        while ((sum += last->n_rows) < k_) ++last;
        limit_ = last->distance;
        for (++last; last != entries_.end() && last->distance == limit_; ++last) sum += last->n_rows;
        entries_.erase(last, entries_.end());
        n_rows_ = sum;
        if (!in_order_) room_ = sum + std::max({sum > k_ ? sum : 0, k_ / 2, std::int64_t{4}});  // ties may be many: double
        return limit_ < before;
    }

    std::int64_t k_, room_, n_rows_ = 0, limit_ = Reservoir::unlimited;
    bool in_order_;
    std::vector<Entry> entries_;
};

}  // namespace cghash
