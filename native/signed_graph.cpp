#include "signed_graph.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "parallel.hpp"

namespace cghash {
namespace {
constexpr std::int64_t chunk = 4096;  // rows or slots that one thread takes at a time
constexpr double mostly_live = 0.8;   // from this share on all items are kept: renumbering would cost more

std::int64_t chunks(std::int64_t n) { return (n + chunk - 1) / chunk; }

void check_size(std::size_t size, std::int64_t expected, const char* message) {
    if (static_cast<std::int64_t>(size) != expected) throw std::invalid_argument(message);
}
}  // namespace

SignedGraph::SignedGraph(std::span<const std::int32_t> first, std::span<const std::int32_t> second,
                         std::int64_t n_items)
    : n_items_(n_items),
      first_(first.begin(), first.end()),
      second_(second.begin(), second.end()),
      weights_(first.size(), 0.0) {
    if (n_items < 0 || n_items > std::numeric_limits<std::int32_t>::max())
        throw std::invalid_argument("n_items must lie between 0 and 2^31 - 1");
    if (first.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
        throw std::invalid_argument("there must be fewer than 2^31 slots");
    check_size(second.size(), n_slots(), "first and second must have the same length");
    start_.assign(n_items + 1, 0);
    for (std::int64_t k = 0; k < n_slots(); ++k) {
        if (first_[k] < 0 || first_[k] >= n_items || second_[k] < 0 || second_[k] >= n_items)
            throw std::invalid_argument("first and second must be row numbers from 0 to n_items - 1");
        ++start_[first_[k] + 1];
        ++start_[second_[k] + 1];
    }
    for (std::int64_t i = 0; i < n_items; ++i) start_[i + 1] += start_[i];
    other_.resize(2 * first.size());
    slot_.resize(2 * first.size());
    std::vector<std::int64_t> next(start_.begin(), start_.end() - 1);
    auto put = [&](std::int32_t item, std::int32_t other, std::int64_t k) {
        other_[next[item]] = other;
        slot_[next[item]++] = static_cast<std::int32_t>(k);
    };
    for (std::int64_t k = 0; k < n_slots(); ++k) {
        put(first_[k], second_[k], k);
        put(second_[k], first_[k], k);
    }
}

void SignedGraph::set_weights(std::span<const double> weights, int n_threads) {
    check_size(weights.size(), n_slots(), "weights must have one entry for each slot");
    weights_.assign(weights.begin(), weights.end());
    std::vector<std::int64_t> live(n_items_ + 1, 0);  // live ends of each item
    parallel_chunks(chunks(n_items_), n_threads, [&](std::int64_t c) {
        for (std::int64_t i = c * chunk; i < std::min((c + 1) * chunk, n_items_); ++i)
            for (std::int64_t e = start_[i]; e < start_[i + 1]; ++e) live[i + 1] += weights_[slot_[e]] != 0.0;
    });
    std::int64_t n_live = 0;
    for (std::int64_t i = 0; i < n_items_; ++i) n_live += live[i + 1] > 0;
    const bool all = static_cast<double>(n_live) >= mostly_live * static_cast<double>(n_items_) && n_live > 0;
    items_.clear();
    row_start_ = {0};
    std::vector<std::int32_t> row(n_items_, -1);
    for (std::int64_t i = 0; i < n_items_; ++i) {
        if (!all && live[i + 1] == 0) continue;
        row[i] = static_cast<std::int32_t>(items_.size());
        items_.push_back(i);
        row_start_.push_back(row_start_.back() + live[i + 1]);
    }
    row_other_.resize(row_start_.back());
    row_weight_.resize(row_start_.back());
    const std::int64_t n_rows = static_cast<std::int64_t>(items_.size());
    parallel_chunks(chunks(n_rows), n_threads, [&](std::int64_t c) {
        for (std::int64_t r = c * chunk; r < std::min((c + 1) * chunk, n_rows); ++r) {
            std::int64_t at = row_start_[r];
            for (std::int64_t e = start_[items_[r]]; e < start_[items_[r] + 1]; ++e) {
                const double weight = weights_[slot_[e]];
                if (weight == 0.0) continue;
                row_other_[at] = row[other_[e]];
                row_weight_[at++] = static_cast<float>(weight);
            }
        }
    });
}

void SignedGraph::laplacian(std::span<const float> t, std::span<float> out, int n_threads) const {
    const std::int64_t n_rows = static_cast<std::int64_t>(items_.size());
    check_size(t.size(), n_rows, "t must have one entry for each live item");
    check_size(out.size(), n_rows, "out must have one entry for each live item");
    parallel_chunks(chunks(n_rows), n_threads, [&](std::int64_t c) {
        for (std::int64_t r = c * chunk; r < std::min((c + 1) * chunk, n_rows); ++r) {
            float sum[4]{};
            std::int64_t e = row_start_[r];
            for (; e + 4 <= row_start_[r + 1]; e += 4)
                for (int k = 0; k < 4; ++k) sum[k] += row_weight_[e + k] * (t[r] - t[row_other_[e + k]]);
            for (; e < row_start_[r + 1]; ++e) sum[0] += row_weight_[e] * (t[r] - t[row_other_[e]]);
            out[r] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        }
    });
}

void SignedGraph::near_weight(std::span<float> out, int n_threads) const {
    const std::int64_t n_rows = static_cast<std::int64_t>(items_.size());
    check_size(out.size(), n_rows, "out must have one entry for each live item");
    parallel_chunks(chunks(n_rows), n_threads, [&](std::int64_t c) {
        for (std::int64_t r = c * chunk; r < std::min((c + 1) * chunk, n_rows); ++r) {
            double sum = 0.0;
            for (std::int64_t e = row_start_[r]; e < row_start_[r + 1]; ++e) sum += std::max(-row_weight_[e], 0.0f);
            out[r] = static_cast<float>(sum);
        }
    });
}

double SignedGraph::gain(std::span<const std::uint8_t> bits, int n_threads) const {
    check_size(bits.size(), n_items_, "bits must have one entry for each item");
    std::vector<double> sums(chunks(n_slots()), 0.0);
    parallel_chunks(chunks(n_slots()), n_threads, [&](std::int64_t c) {
        double sum = 0.0;
        for (std::int64_t k = c * chunk; k < std::min((c + 1) * chunk, n_slots()); ++k)
            sum += weights_[k] * static_cast<double>((bits[first_[k]] ^ bits[second_[k]]) & 1);
        sums[c] = sum;
    });
    double total = 0.0;
    for (double sum : sums) total += sum;
    return total;
}

}  // namespace cghash
