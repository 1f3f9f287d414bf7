#include "ordered_tables.hpp"

#include <algorithm>

namespace cghash {

// The last-level cache serves what is small, memory what is large; in between, one or the other.
PruneCosts costs_of(const Lookups& lookups, std::int64_t n_bytes) {
    const double width = lookups.n_bytes / 8.0, compute = lookups.kernels.block_ns;
    const double missed = std::clamp((static_cast<double>(n_bytes) - 0x1p24) / 0x1p26, 0.0, 1.0);
    const auto mean = [missed](double hit, double miss) { return hit + missed * (miss - hit); };
    return {.step = mean(2, 8),
            .bucket = mean(30, 120),
            .group = (mean(6, 16) + compute) * width / 4,
            .found = mean(60, 100),
            .scan_read = mean(6, 25) * width,
            .scan_compute = compute * width};
}

MaskOrder::MaskOrder(const PruneTable& table, const Lookups& lookups, std::int64_t length) {
    using Entry = std::pair<std::int64_t, std::uint32_t>;  // weight, mask
    std::vector<Entry> entries{{0, 0}}, merged;
    for (int bit = 0; bit < table.key_bits; ++bit) {
        const auto mask = std::uint32_t{1} << bit;
        const auto weight = table.key_weight(mask, lookups);
        const auto n = entries.size();
        // what is not among the first without this bit is not among the first with it
        merged.resize(std::min<std::size_t>(2 * n, static_cast<std::size_t>(length)));
        std::size_t without = 0, with = 0;
        for (auto& entry : merged) {
            const Entry next = with < n ? Entry{entries[with].first + weight, entries[with].second | mask} : Entry{};
            if (with == n || (without < n && entries[without] < next)) entry = entries[without++];
            else entry = next, ++with;
        }
        entries.swap(merged);
    }
    whole = std::ssize(entries) == static_cast<std::int64_t>(table.n_keys());
    weights.reserve(entries.size());
    masks.reserve(entries.size());
    for (const auto& [weight, mask] : entries) {
        weights.push_back(weight);
        masks.push_back(mask);
    }
}

OrderedTables::OrderedTables(const PruneTables& tables_, const Lookups& lookups_)
    : tables(tables_), lookups(lookups_.permuted(tables_.bits)), costs(costs_of(lookups_, tables_.memory())) {
    for (const auto& table : tables.tables)
        orders.emplace_back(table, lookups, worth_ordering(table.n_keys(), tables.n_codes));
}

}  // namespace cghash
