// The k nearest of what was offered.
#pragma once
#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>
#include <vector>

namespace cghash {

struct Found {
    std::int64_t distance, id;
    auto operator<=>(const Found&) const = default;
};

// Keeps up to half as many again as it must, and drops the farther ones when it is full: cheaper than a heap.
class Reservoir {
   public:
    static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

    // Only distances up to `limit` enter. Where ids are offered in ascending order, later ones lose every tie.
    Reservoir(std::int64_t k, std::int64_t limit, bool ascending)
        : k_(k), room_(k), limit_(limit), ascending_(ascending) {}

    std::int64_t limit() const { return limit_; }
    // Distance of the k-th nearest when it was last known.
    std::int64_t kth() const { return kth_; }

    // True when the limit has fallen.
    bool offer(Found found) {
        if (found.distance > limit_) return false;
        held_.push_back(found);
        return static_cast<std::int64_t>(held_.size()) >= room_ && shrink();
    }
    void lower(std::int64_t limit) { limit_ = std::min(limit_, limit); }

    // Let the limit be that of what is held now.
    bool tighten() { return static_cast<std::int64_t>(held_.size()) > k_ && shrink(); }

    std::vector<Found> sorted() {
        tighten();
        std::sort(held_.begin(), held_.end());
        return std::move(held_);
    }

   private:
    bool shrink() {
        std::nth_element(held_.begin(), held_.begin() + (k_ - 1), held_.end());
        held_.resize(static_cast<std::size_t>(k_));
        room_ = k_ + std::max<std::int64_t>(k_ / 2, 4);
        kth_ = held_.back().distance;
        const auto before = limit_;
        lower(kth_ - (ascending_ ? 1 : 0));
        return limit_ < before;
    }

    std::int64_t k_, room_, limit_, kth_ = unlimited;
    bool ascending_;
    std::vector<Found> held_;
};

}  // namespace cghash
