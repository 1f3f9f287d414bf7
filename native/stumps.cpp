#include "stumps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "parallel.hpp"

namespace cghash {
namespace {

void check(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

template <class T>
void check_ranks(const T* ranks, std::int64_t n_items, std::int64_t n_distinct) {
    // ranks may leave gaps, but no more numbers than a narrow one has
    check(n_distinct >= 0 && n_distinct <= std::max<std::int64_t>(n_items, 256),
          "n_distinct must lie between 0 and n_items, or 256 where items are fewer");
    T highest = 0;
    for (std::int64_t i = 0; i < n_items; ++i) highest = std::max(highest, ranks[i]);
    check(n_items == 0 || static_cast<std::int64_t>(highest) < n_distinct, "ranks must lie below n_distinct");
}

void check_slots(const StumpProblem& problem, std::int64_t n_items) {
    const std::size_t m = problem.s.size();
    check(problem.a.size() == m && problem.b.size() == m, "a, b and s must have one length");
    bool inside = true;
    double total = 0.0;
    for (std::size_t slot = 0; slot < m; ++slot) {
        const std::int64_t a = problem.a[slot], b = problem.b[slot];
        inside &= a >= 0 && a < n_items && b >= 0 && b < n_items;
        total += std::abs(problem.s[slot]);
    }
    check(inside, "a and b must be item numbers from 0 to n_items - 1");
    check(std::isfinite(4.0 * total), "s must be finite, and so must its sum");
}

void kernel_deltas(const StumpBlock& block, const std::uint8_t* ranks) { kernels().stump_deltas_8(block, ranks); }
void kernel_deltas(const StumpBlock& block, const std::uint16_t* ranks) { kernels().stump_deltas_16(block, ranks); }
void kernel_deltas(const StumpBlock& block, const std::uint32_t* ranks) { kernels().stump_deltas_32(block, ranks); }

}  // namespace

// The slots that count, listed at both of their ends: item after item, in the order of the slots.
struct StumpRanks::LiveSlots {
    std::vector<std::int32_t> items;  // that have one
    std::vector<std::int64_t> first;  // (items + 1,)
    std::vector<SlotEnd> ends;

    LiveSlots(const StumpProblem& problem, std::int64_t n_items) {
        auto each_live = [&](auto work) {
            for (std::size_t slot = 0; slot < problem.s.size(); ++slot)
                if (problem.s[slot] != 0.0 && problem.a[slot] != problem.b[slot])
                    work(problem.a[slot], problem.b[slot], problem.s[slot]);
        };
        std::vector<std::int64_t> next(n_items + 1, 0);
        each_live([&](std::int32_t a, std::int32_t b, double) { ++next[a + 1], ++next[b + 1]; });
        for (std::int64_t i = 0; i < n_items; ++i) {
            if (next[i + 1] > 0) {
                items.push_back(static_cast<std::int32_t>(i));
                first.push_back(next[i]);
            }
            next[i + 1] += next[i];
        }
        first.push_back(next[n_items]);
        ends.resize(next[n_items] + stump_padding);
        each_live([&](std::int32_t a, std::int32_t b, double s) {
            ends[next[a]++] = {s, b};
            ends[next[b]++] = {s, a};
        });
    }
};

// Thresholds that are taken, by feature and rank.
struct StumpRanks::Taken {
    std::vector<std::pair<std::int64_t, std::int64_t>> sorted;

    Taken(const StumpProblem& problem, std::span<const std::int64_t> n_distinct) {
        const std::size_t k = problem.taken_feature.size();
        check(problem.taken_rank.size() == k, "taken_feature and taken_rank must have one length");
        for (std::size_t i = 0; i < k; ++i) {
            const std::int64_t feature = problem.taken_feature[i], rank = problem.taken_rank[i];
            check(feature >= 0 && feature < static_cast<std::int64_t>(n_distinct.size()),
                  "taken_feature must be feature numbers from 0 to n_features - 1");
            check(rank >= 0 && rank < n_distinct[feature] - 1, "taken_rank must lie between 0 and n_distinct - 2");
            sorted.emplace_back(feature, rank);
        }
        std::sort(sorted.begin(), sorted.end());
    }

    // Running sums of delta are the gains; those at taken ranks cannot be the best.
    void scan(const double* delta, std::int64_t n_distinct, std::int64_t feature, StumpSweep& out) const {
        auto barred = std::lower_bound(sorted.begin(), sorted.end(), std::pair(feature, std::int64_t{0}));
        double gain = 0.0, positive = 0.0, best = -std::numeric_limits<double>::infinity();
        std::int64_t best_rank = -1;
        for (std::int64_t rank = 0; rank + 1 < n_distinct; ++rank) {
            gain += delta[rank];
            positive += std::max(gain, 0.0);
            if (gain <= best) continue;
            while (barred != sorted.end() && *barred < std::pair(feature, rank)) ++barred;
            if (barred != sorted.end() && *barred == std::pair(feature, rank)) continue;
            best = gain;
            best_rank = rank;
        }
        out.gain[feature] = best;
        out.rank[feature] = best_rank;
        out.positive[feature] = positive;
    }
};

StumpRanks::StumpRanks(std::int64_t n_items) : n_items_(n_items) {
    check(n_items >= 0 && n_items <= std::numeric_limits<std::int32_t>::max(),
          "n_items must lie between 0 and 2^31 - 1");
}

std::int64_t StumpRanks::n_bytes() const {
    auto bytes = [](const auto& layer) {
        return layer.blocks.empty() ? 0 : layer.blocks.size() * layer.blocks[0].size() * sizeof(layer.blocks[0][0]);
    };
    return std::apply([&](const auto&... layer) { return static_cast<std::int64_t>((bytes(layer) + ...)); }, layers_);
}

template <class T>
void StumpRanks::append(std::span<const T> ranks, std::span<const std::int64_t> n_distinct) {
    check(ranks.size() == n_distinct.size() * n_items_, "ranks must have a row for each n_distinct, of n_items");
    for (std::size_t f = 0; f < n_distinct.size(); ++f)
        check_ranks(ranks.data() + f * n_items_, n_items_, n_distinct[f]);
    n_distinct_.reserve(n_distinct_.size() + n_distinct.size());  // so that a feature is added whole, or not at all
    for (std::size_t f = 0; f < n_distinct.size(); ++f) {
        const T* row = ranks.data() + f * n_items_;
        const std::int64_t feature = n_features();
        // a constant feature has no threshold, so its ranks are not kept
        if (n_distinct[f] > 1 << 16) add(std::get<2>(layers_), row, feature);
        else if (n_distinct[f] > 1 << 8) add(std::get<1>(layers_), row, feature);
        else if (n_distinct[f] > 1) add(std::get<0>(layers_), row, feature);
        n_distinct_.push_back(n_distinct[f]);
    }
}

template <class T, class From>
void StumpRanks::add(Layer<T>& layer, const From* ranks, std::int64_t feature) {
    constexpr std::int64_t lanes = stump_lanes<T>;
    const auto position = static_cast<std::int64_t>(layer.features.size());
    if (position / lanes == static_cast<std::int64_t>(layer.blocks.size())) layer.blocks.emplace_back(n_items_ * lanes);
    T* place = layer.blocks[position / lanes].data() + position % lanes;
    for (std::int64_t i = 0; i < n_items_; ++i) place[i * lanes] = static_cast<T>(ranks[i]);
    layer.features.push_back(feature);
}

template <class T, class Visit>
void StumpRanks::sweep_block(const Layer<T>& layer, std::int64_t block, const LiveSlots& slots, Visit& visit) const {
    constexpr std::int64_t lanes = stump_lanes<T>;
    const std::int64_t* feature = layer.features.data() + block * lanes;
    const auto n = std::min<std::int64_t>(lanes, layer.features.data() + layer.features.size() - feature);
    std::int64_t offset[lanes + 1] = {0};
    for (std::int64_t l = 0; l < n; ++l) offset[l + 1] = offset[l] + n_distinct_[feature[l]];
    std::vector<double> tables(offset[n], 0.0);
    double* delta[lanes];
    for (std::int64_t l = 0; l < n; ++l) delta[l] = tables.data() + offset[l];
    kernel_deltas({static_cast<int>(n), static_cast<std::int64_t>(slots.items.size()), slots.items.data(),
                   slots.first.data(), slots.ends.data(), delta},
                  layer.blocks[block].data());
    for (std::int64_t l = 0; l < n; ++l) visit(delta[l], feature[l]);
}

template <class Visit>
void StumpRanks::sweep_features(const StumpProblem& problem, int n_threads, Visit visit) const {
    check_slots(problem, n_items_);
    const LiveSlots slots(problem, n_items_);
    const auto& narrow = std::get<0>(layers_);
    const auto& middle = std::get<1>(layers_);
    const auto& wide = std::get<2>(layers_);
    const std::int64_t n_wide = wide.n_blocks(), n_middle = middle.n_blocks();
    parallel_chunks(n_wide + n_middle + narrow.n_blocks(), n_threads, [&](std::int64_t chunk) {
        // the widest take longest, so they come first
        if (chunk < n_wide) return sweep_block(wide, chunk, slots, visit);
        if (chunk < n_wide + n_middle) return sweep_block(middle, chunk - n_wide, slots, visit);
        sweep_block(narrow, chunk - n_wide - n_middle, slots, visit);
    });
}

StumpSweep StumpRanks::sweep(const StumpProblem& problem, int n_threads) const {
    const Taken taken(problem, n_distinct_);
    const std::size_t d = n_distinct_.size();
    StumpSweep out{std::vector<double>(d, -std::numeric_limits<double>::infinity()), std::vector<std::int64_t>(d, -1),
                   std::vector<double>(d, 0.0)};
    sweep_features(problem, n_threads, [&](const double* delta, std::int64_t feature) {
        taken.scan(delta, n_distinct_[feature], feature, out);
    });
    return out;
}

std::vector<double> StumpRanks::gains(const StumpProblem& problem, int n_threads) const {
    std::vector<std::int64_t> start(n_distinct_.size() + 1, 0);
    for (std::size_t f = 0; f < n_distinct_.size(); ++f)
        start[f + 1] = start[f] + std::max<std::int64_t>(n_distinct_[f] - 1, 0);
    std::vector<double> out(start.back(), 0.0);
    sweep_features(problem, n_threads, [&](const double* delta, std::int64_t feature) {
        double gain = 0.0;
        for (std::int64_t rank = 0; rank + 1 < n_distinct_[feature]; ++rank)
            out[start[feature] + rank] = gain += delta[rank];
    });
    return out;
}

template void StumpRanks::append(std::span<const std::uint8_t>, std::span<const std::int64_t>);
template void StumpRanks::append(std::span<const std::uint16_t>, std::span<const std::int64_t>);
template void StumpRanks::append(std::span<const std::uint32_t>, std::span<const std::int64_t>);

}  // namespace cghash
