#include "ordered_tables.hpp"

#include <algorithm>

namespace cghash {
namespace {

// The last-level cache serves what is small, memory what is large; in between, one or the other.
PruneCosts costs_of(const Lookups& lookups, std::int64_t n_bytes) {
    const double width = lookups.n_bytes / 8.0, compute = lookups.kernels.block_ns;
    const double missed = std::clamp((static_cast<double>(n_bytes) - 0x1p24) / 0x1p26, 0.0, 1.0);
    const auto mean = [missed](double hit, double miss) { return hit + missed * (miss - hit); };
    return {.step = 2, .bucket = mean(30, 250), .block = (mean(6, 16) + compute) * width, .found = mean(60, 150),
            .scan_read = mean(6, 25) * width, .scan_compute = compute * width};
}

}  // namespace

MaskOrder::MaskOrder(const PruneTable& table, const Lookups& lookups, std::int64_t length) {
    struct Entry {
        std::int64_t weight;
        std::uint16_t mask;
    };
    std::vector<Entry> entries{{0, 0}}, more, merged;
    for (std::size_t bit = 0; bit < 8 * table.key.size(); ++bit) {
        const auto weight = lookups.byte_weight(table.key[bit / 8], static_cast<std::uint8_t>(1 << bit % 8));
        more = entries;
        for (auto& entry : more) entry = {entry.weight + weight, static_cast<std::uint16_t>(entry.mask | 1u << bit)};
        merged.resize(2 * entries.size());
        std::merge(entries.begin(), entries.end(), more.begin(), more.end(), merged.begin(),
                   [](const Entry& a, const Entry& b) { return a.weight < b.weight; });
        entries.swap(merged);
    }
    whole = length >= static_cast<std::int64_t>(entries.size());
    if (!whole) entries.resize(static_cast<std::size_t>(length));
    ranks.assign(table.n_keys(), 65535);
    for (std::size_t r = 0; r < entries.size(); ++r) {
        weights.push_back(entries[r].weight);
        masks.push_back(entries[r].mask);
        ranks[entries[r].mask] = static_cast<std::uint16_t>(r);
    }
    weights.shrink_to_fit();
    masks.shrink_to_fit();
}

OrderedTables::OrderedTables(const PruneTables& tables_, const Lookups& lookups_)
    : tables(tables_), lookups(lookups_), costs(costs_of(lookups_, tables_.memory())) {
    for (const auto& table : tables.tables)
        orders.emplace_back(table, lookups, worth_ordering(table.n_keys(), tables.n_codes));
}

}  // namespace cghash
