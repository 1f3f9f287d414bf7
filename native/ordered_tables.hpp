// Tables with the keys of each in order of their distance from a query's.
//
// d(q, x) is a function of q XOR x, so the order of keys, as XOR masks, is the same for every query.
#pragma once
#include <cstdint>
#include <vector>

#include "lookups.hpp"
#include "prune_tables.hpp"

namespace cghash {

struct MaskOrder {
    std::vector<std::int64_t> weights;  // ascending
    std::vector<std::uint32_t> masks;   // those of one weight ascending too
    bool whole = false;                 // whether all masks are in order

    MaskOrder(const PruneTable& table, const Lookups& lookups, std::int64_t length);
    std::int64_t size() const { return static_cast<std::int64_t>(weights.size()); }
    // Whether a mask of some weight comes before a step.
    bool before(std::int64_t weight, std::uint32_t mask, std::int64_t step) const {
        if (step == 0 || weight > weights[step - 1]) return false;
        return weight < weights[step - 1] || mask <= masks[step - 1];
    }
};

// Nanoseconds, roughly; only their ratios matter, and only for the choice.
struct PruneCosts {
    double step, bucket, group, found;  // of pruning: a key, one with codes, 16 codes, a code that is near enough
    double scan_read, scan_compute;     // of scanning a block: once for all queries, and for each

    double of(Bucket codes) const {
        return step + (codes.empty() ? 0 : bucket + group * static_cast<double>(codes.n_groups()));
    }
};

// For tables of so many bytes.
PruneCosts costs_of(const Lookups& lookups, std::int64_t n_bytes);

// What queries run on: tables, and the order of their keys under some weights.
struct OrderedTables {
    OrderedTables(const PruneTables& tables, const Lookups& lookups);

    const PruneTables& tables;
    const Lookups lookups;  // of codes with their bits in the tables' order
    const PruneCosts costs;
    std::vector<MaskOrder> orders;
};

}  // namespace cghash
