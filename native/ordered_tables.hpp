// Tables with the keys of each in order of their distance from a query's.
//
// d(q, x) is a function of q XOR x, so the order of keys, as XOR masks, is the same for every query under the same
// weights, and is listed once. A query with weights of its own has the masks listed as it needs them.
#pragma once
#include <cstdint>
#include <vector>

#include "lookups.hpp"
#include "prune_tables.hpp"

namespace cghash {

enum class Listing { at_once, as_needed };

class MaskOrder {
   public:
    std::vector<std::int64_t> weights;  // ascending; of those that are listed
    std::vector<std::uint32_t> masks;
    bool whole;  // whether all masks come in this order

    // The first `length` masks of a table's keys, all of them where there are fewer.
    MaskOrder(const PruneTable& table, const Lookups& lookups, std::int64_t length, Listing listing);

    std::int64_t size() const { return size_; }
    // Have the first n listed, of `size` at most.
    void list(std::int64_t n) {
        if (n > static_cast<std::int64_t>(masks.size())) [[unlikely]]
            list_more(n);
    }
    // Whether a mask of some weight comes before a step; all before it are listed.
    bool before(std::int64_t weight, std::uint32_t mask, std::int64_t step) const {
        if (step == 0 || weight > weights[step - 1]) return false;
        return weight < weights[step - 1] || rank(mask) <= rank(masks[step - 1]);
    }

   private:
    struct Bit {
        std::int64_t weight;
        std::uint32_t mask;
    };
    // A mask that may come next. Among masks of one weight its rank ascends: the mask itself, or, where masks are listed
    // as needed, the mask over the bits from the lightest on.
    struct Next {
        std::int64_t weight;
        std::uint32_t rank, mask;
        bool operator>(const Next& other) const {
            return weight > other.weight || (weight == other.weight && rank > other.rank);
        }
    };
    void list_all(const PruneTable& table, const Lookups& lookups);
    void list_more(std::int64_t n);
    std::uint32_t rank(std::uint32_t mask) const;

    std::int64_t size_;
    std::vector<Bit> bits_;   // the lightest first; empty where all masks are listed
    std::vector<Next> next_;  // a heap
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
PruneCosts costs_of(const Lookups& lookups, std::int64_t n_bytes, Listing listing);

// What queries run on: tables, and the order of their keys under some weights. One whose masks are listed as needed
// serves a single query.
struct OrderedTables {
    OrderedTables(const PruneTables& tables, const Lookups& lookups, Listing listing = Listing::at_once);

    const PruneTables& tables;
    const Lookups lookups;  // of codes with their bits in the tables' order
    const PruneCosts costs;
    mutable std::vector<MaskOrder> orders;  // changed by listing alone
};

}  // namespace cghash
