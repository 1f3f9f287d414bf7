// Search by tables, where and as long as it is likely to be faster than a scan: by `Pruner` under the weights of an
// index, by `OwnEffort` where each query has weights of its own.
#pragma once
#include <array>
#include <atomic>

#include "prune_run.hpp"

namespace cghash {

class Pruner {
   public:
    Pruner(const PruneTables& tables, const Lookups& lookups, const CodeBlocks& codes);

    const OrderedTables& on() const { return on_; }
    // How much one thread spends on a query before another joins it; all of the budget where that is small.
    double alone(std::int64_t k, double budget) const;
    // How much a query may spend on pruning before it is scanned instead; 0 where this would not save a share of the
    // scan's cost.
    double budget(std::int64_t k, std::int64_t n_queries, int n_threads, double saved = 0.05) const;
    // What became of budgets, so that they are not given in vain; single queries and batches are counted apart.
    void note(std::int64_t n_queries, int n_threads, double spent, bool finished) const;
    bool worth_a_try(std::int64_t n_queries) const;

    std::int64_t memory() const;

   private:
    double scan_cost(std::int64_t n_queries, int n_threads) const;
    void calibrate(const CodeBlocks& codes);

    const Lookups& plain_;
    OrderedTables on_;
    static constexpr std::array<std::int64_t, 2> sampled_k{10, 100};
    std::array<std::vector<double>, 2> samples_;  // what queries like the codes themselves take; ∞ for too much
    struct Past {
        std::atomic<double> tried{0}, spent{0};  // queries, and what they cost, as parts of a scan
        std::atomic<std::int64_t> skipped{0};
    };
    mutable std::array<Past, 2> pasts_;
};

// What the queries of one search may spend on pruning, each under weights of its own. No sample tells beforehand how
// they fare, so that each is watched, and where most fail, few are tried.
class OwnEffort {
   public:
    OwnEffort(const PruneTables& tables, const Lookups& lookups, std::int64_t n_queries);

    bool pays() const { return pays_; }
    const Effort& effort() const { return effort_; }
    bool worth_a_try() const;
    void note(bool finished);

   private:
    static constexpr std::int64_t many = 16;  // queries
    bool pays_;
    Effort effort_;
    std::atomic<std::int64_t> tried_{0}, failed_{0};
    mutable std::atomic<std::int64_t> skipped_{0};
};

}  // namespace cghash
