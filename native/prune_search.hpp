// Search by tables: keys in order of their distance from the query's, until no unseen code can be nearer.
//
// d(q, x) is a function of q XOR x, so the order of keys, as XOR masks, is the same for every query. When the tables
// have visited their first r_1, r_2, … masks, a code that none of them has shown is at least as far as the weights of
// the next masks together. Which table goes on is decided by what its next keys add to this bound for what they cost.
#pragma once
#include <array>
#include <atomic>

#include "code_search.hpp"
#include "prune_tables.hpp"

namespace cghash {

struct MaskOrder {
    std::vector<std::int64_t> weights;  // ascending
    std::vector<std::uint16_t> masks;
    std::vector<std::uint16_t> ranks;   // by mask; 65535 and more stands for all that are not in order
    bool whole = false;                 // whether all masks are in order

    MaskOrder(const PruneTable& table, const Lookups& lookups, std::int64_t length);
    std::int64_t size() const { return static_cast<std::int64_t>(weights.size()); }
    bool before(std::uint32_t mask, std::int64_t step) const { return ranks[mask] < step; }
};

// Nanoseconds, roughly; only their ratios matter, and only for the choice.
struct PruneCosts {
    double step, bucket, block, found;  // of pruning: a key, one with codes, 64 codes, a code that is near enough
    double scan_read, scan_compute;     // of scanning a block: once for all queries, and for each
};

class Pruner {
   public:
    Pruner(const PruneTables& tables, const Lookups& lookups, const CodeBlocks& codes);

    // False when `budget` was spent before the end; `spent` says how much it took. Rows with a bit in `stale` are
    // passed over. `together`: by two threads, where all rows count.
    bool search(const CodeQuery& ask, const std::uint8_t* query, const std::uint8_t* stale, double budget,
                bool together, Reservoir& nearest, double& spent) const;
    // Whether a query is worth two threads.
    bool takes_long(std::int64_t k) const;
    // How much a query may spend on pruning before it is scanned instead; 0 where this would not save a share of the
    // scan's cost.
    double budget(std::int64_t k, std::int64_t n_queries, int n_threads, double saved = 0.05) const;
    // What became of budgets, so that they are not given in vain; single queries and batches are counted apart.
    void note(std::int64_t n_queries, bool finished) const;
    bool worth_a_try(std::int64_t n_queries) const;

    std::int64_t memory() const;

   private:
    class Run;
    double scan_cost(std::int64_t n_queries, int n_threads) const;
    void calibrate(const CodeBlocks& codes);

    const PruneTables& tables_;
    const Lookups& lookups_;
    PruneCosts costs_;
    double n_blocks_;
    std::vector<MaskOrder> orders_;
    static constexpr std::array<std::int64_t, 2> sampled_k{10, 100};
    std::array<std::vector<double>, 2> samples_;  // what queries like the codes themselves take; ∞ for too much
    struct Past {
        std::atomic<std::int64_t> tried{0}, abandoned{0}, skipped{0};
    };
    mutable std::array<Past, 2> pasts_;
};

}  // namespace cghash
