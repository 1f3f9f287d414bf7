#include "ordered_tables.hpp"

#include <algorithm>
#include <bit>
#include <functional>

namespace cghash {

// The last-level cache serves what is small, memory what is large; in between, one or the other.
PruneCosts costs_of(const Lookups& lookups, std::int64_t n_bytes, Listing listing) {
    constexpr double listed = 40;  // a mask that is listed as needed
    const double width = lookups.n_bytes / 8.0, compute = lookups.kernels.block_ns;
    const double missed = std::clamp((static_cast<double>(n_bytes) - 0x1p24) / 0x1p26, 0.0, 1.0);
    const auto mean = [missed](double hit, double miss) { return hit + missed * (miss - hit); };
    return {.step = mean(2, 8) + (listing == Listing::as_needed ? listed : 0),
            .bucket = mean(30, 120),
            .group = (mean(6, 16) + compute) * width / 4,
            .found = mean(60, 100),
            .scan_read = mean(6, 25) * width,
            .scan_compute = compute * width};
}

MaskOrder::MaskOrder(const PruneTable& table, const Lookups& lookups, std::int64_t length, Listing listing)
    : whole(length >= table.n_keys()), size_(std::min<std::int64_t>(length, table.n_keys())) {
    if (listing == Listing::at_once) {
        list_all(table, lookups);
        return;
    }
    for (int i = 0; i < table.key_bits; ++i) {
        const auto mask = std::uint32_t{1} << i;
        bits_.push_back({table.key_weight(mask, lookups), mask});
    }
    std::sort(bits_.begin(), bits_.end(), [](const Bit& a, const Bit& b) { return a.weight < b.weight; });
    weights.push_back(0);
    masks.push_back(0);
    next_.push_back({bits_[0].weight, 1, bits_[0].mask});
}

void MaskOrder::list_all(const PruneTable& table, const Lookups& lookups) {
    using Entry = std::pair<std::int64_t, std::uint32_t>;  // weight, mask
    std::vector<Entry> entries{{0, 0}}, merged;
    for (int bit = 0; bit < table.key_bits; ++bit) {
        const auto mask = std::uint32_t{1} << bit;
        const auto weight = table.key_weight(mask, lookups);
        const auto n = entries.size();
        // what is not among the first without this bit is not among the first with it
        merged.resize(std::min<std::size_t>(2 * n, static_cast<std::size_t>(size_)));
        std::size_t without = 0, with = 0;
        for (auto& entry : merged) {
            const Entry next = with < n ? Entry{entries[with].first + weight, entries[with].second | mask} : Entry{};
            if (with == n || (without < n && entries[without] < next)) entry = entries[without++];
            else entry = next, ++with;
        }
        entries.swap(merged);
    }
    weights.reserve(entries.size());
    masks.reserve(entries.size());
    for (const auto& [weight, mask] : entries) {
        weights.push_back(weight);
        masks.push_back(mask);
    }
}

// Each mask but 0 follows from one that is lighter, or as light and of lower rank: that whose highest bit, in the order
// of weights, is one place lighter, or, where it has the bit before its highest too, that without the highest.
void MaskOrder::list_more(std::int64_t n) {
    constexpr std::int64_t least = 32;
    n = std::min(std::max(n, static_cast<std::int64_t>(masks.size()) + least), size_);
    while (static_cast<std::int64_t>(masks.size()) < n) {
        std::pop_heap(next_.begin(), next_.end(), std::greater<>());
        const auto [weight, rank, mask] = next_.back();
        next_.pop_back();
        weights.push_back(weight);
        masks.push_back(mask);
        const auto highest = static_cast<std::size_t>(std::bit_width(rank)) - 1;
        if (highest + 1 == bits_.size()) continue;
        const Bit last = bits_[highest], bit = bits_[highest + 1];
        const auto with = rank | std::uint32_t{2} << highest, without = with ^ std::uint32_t{1} << highest;
        for (const Next& next : {Next{weight + bit.weight, with, mask | bit.mask},
                                 Next{weight - last.weight + bit.weight, without, mask ^ last.mask ^ bit.mask}}) {
            next_.push_back(next);
            std::push_heap(next_.begin(), next_.end(), std::greater<>());
        }
    }
}

std::uint32_t MaskOrder::rank(std::uint32_t mask) const {
    if (bits_.empty()) return mask;
    std::uint32_t rank = 0;
    for (std::size_t i = 0; i < bits_.size(); ++i) rank |= static_cast<std::uint32_t>((mask & bits_[i].mask) > 0) << i;
    return rank;
}

OrderedTables::OrderedTables(const PruneTables& tables_, const Lookups& lookups_, Listing listing)
    : tables(tables_), lookups(lookups_.permuted(tables_.bits)), costs(costs_of(lookups_, tables_.memory(), listing)) {
    for (const auto& table : tables.tables)
        orders.emplace_back(table, lookups, worth_ordering(table.n_keys(), tables.n_codes), listing);
}

}  // namespace cghash
