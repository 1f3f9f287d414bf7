// The pricing of decision stumps h(x) = [x_f > t], exact, by trying every feature and every threshold.
//
// A threshold between ranks r and r + 1 of a feature cuts the slots with one end at or below r and one above it. So
// its gain Σ s·[h(a) ≠ h(b)] is the sum, over the items i at or below r, of c_i = Σ_j s_ij·sign(r_j − r_i): slots that
// lie wholly below cancel. Each item's c_i is added to delta[r_i], and a running sum over ranks gives every gain.
#pragma once
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "kernel_table.hpp"

namespace cghash {

// Signed pair weights s over slots (a, b); thresholds that are taken already.
struct StumpProblem {
    std::span<const std::int32_t> a, b;                       // (m,)
    std::span<const double> s;                                // (m,)
    std::span<const std::int64_t> taken_feature, taken_rank;  // (k,)
};

// Per feature: the best gain, at which rank (the lowest of equals), and Σ max(gain, 0) over its thresholds.
struct StumpSweep {
    std::vector<double> gain;
    std::vector<std::int64_t> rank;
    std::vector<double> positive;
};

class StumpRanks {
   public:
    explicit StumpRanks(std::int64_t n_items);

    std::int64_t n_items() const { return n_items_; }
    std::int64_t n_features() const { return static_cast<std::int64_t>(n_distinct_.size()); }
    std::int64_t n_bytes() const;

    // More features: ranks (n_distinct.size(), n_items), those of row f below n_distinct[f].
    template <class T>
    void append(std::span<const T> ranks, std::span<const std::int64_t> n_distinct);
    StumpSweep sweep(const StumpProblem& problem, int n_threads) const;
    // The gain of every threshold, feature after feature, n_distinct - 1 of each; what is taken does not matter.
    std::vector<double> gains(const StumpProblem& problem, int n_threads) const;

   private:
    template <class T>
    struct Layer {                           // the features whose ranks fit T
        std::vector<std::vector<T>> blocks;  // (n_items, stump_lanes<T>) each
        std::vector<std::int64_t> features;  // stump_lanes<T> of them to a block
        std::int64_t n_blocks() const { return (features.size() + stump_lanes<T> - 1) / stump_lanes<T>; }
    };
    struct LiveSlots;
    struct Taken;

    template <class T, class From>
    void add(Layer<T>& layer, const From* ranks, std::int64_t feature);
    // visit(delta, feature) for each feature with a threshold
    template <class Visit>
    void sweep_features(const StumpProblem& problem, int n_threads, Visit visit) const;
    template <class T, class Visit>
    void sweep_block(const Layer<T>& layer, std::int64_t block, const LiveSlots& slots, Visit& visit) const;

    std::int64_t n_items_;
    std::vector<std::int64_t> n_distinct_;  // (n_features,)
    std::tuple<Layer<std::uint8_t>, Layer<std::uint16_t>, Layer<std::uint32_t>> layers_;
};

}  // namespace cghash
