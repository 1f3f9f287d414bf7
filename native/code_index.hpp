// Codes, the tables that search prunes by, and the choice between scan and prune.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>

#include "code_search.hpp"
#include "prune_build.hpp"
#include "prune_check.hpp"
#include "prune_search.hpp"

namespace cghash {

// Searches may run at the same time; nothing may change meanwhile.
class CodeIndex {
   public:
    explicit CodeIndex(int n_bytes) : codes_(n_bytes) {}

    struct Request {
        std::span<const std::uint8_t> queries;
        std::span<const std::int64_t> weights;  // (8·n_bytes,), or, where they are `own`, a row for each query too
        bool own;                               // weights of these queries alone, not of the index
        const std::int64_t* ids;
        const std::uint8_t* allowed;
        std::int64_t n_allowed;  // bits in it; all codes when it is null
        int n_threads;
    };

    const CodeBlocks& codes() const { return codes_; }
    const PruneTables* tables() const { return tables_.get(); }
    // Positions of codes that are not those of the tables any more.
    const std::vector<std::int64_t>& changed() const { return changed_; }
    std::int64_t prune_memory() const;

    void append(std::span<const std::uint8_t> codes) { codes_.append(codes); }
    void truncate(std::int64_t n_codes);
    void attach(std::span<std::uint8_t> blocks, std::int64_t n, std::shared_ptr<void> owner) {
        codes_.attach(blocks, n, std::move(owner));
    }
    void put(std::span<const std::int64_t> positions, std::span<const std::uint8_t> codes);

    // Build tables; false where they do not pay, and are dropped again. `always` keeps and uses them even then.
    bool prepare(const Request&, const TableOptions&, bool always);
    void adopt(std::unique_ptr<PruneTables> tables, std::span<const std::int64_t> changed, bool always);
    void forget();
    // In a process that was just forked: threads that may have held the mutex are not here.
    void forked() { new (&mutex_) std::mutex; }
    // Throws std::invalid_argument where the tables do not say what is so.
    void verify(const std::int64_t* ids, const std::uint8_t* allowed) const {
        if (tables_) check_tables(*tables_, {codes_, stale_, ids, allowed});
    }
    // Forget tables that lack a bit that counts from now on.
    void reweight(std::span<const std::int64_t> weights);

    Answers nearest(const Request&, std::int64_t k) const;
    // Within a radius of each query.
    Answers within(const Request&, std::span<const std::int64_t> radii) const;
    // The same among some positions only, which differ; `allowed` is not looked at. Without radii there is no limit.
    Answers among(const Request&, std::span<const std::int64_t> positions, std::int64_t k,
                  std::span<const std::int64_t> radii) const;

   private:
    // What follows from weights; kept for the next search under the same.
    struct Weighted {
        Weighted(std::span<const std::int64_t> weights, int n_bytes, const KernelTable& kernels)
            : weights(weights.begin(), weights.end()), lookups(weights, n_bytes, kernels) {}
        std::vector<std::int64_t> weights;
        Lookups lookups;
        std::unique_ptr<Pruner> pruner;  // null without tables, and where they do not suit
    };
    std::shared_ptr<const Weighted> weighted(const Request&) const;
    // Some codes as queries, with how far their nearest are.
    std::vector<Sample> samples(const Request&, const Lookups&) const;
    void mark(std::span<const std::int64_t> positions);
    // Of distances, for each query.
    using Limits = std::vector<std::int64_t>;
    Answers answer(const Request&, std::int64_t k, Limits limits) const;
    Answers answer_own(const Request&, std::int64_t k, Limits limits) const;
    CodeQuery query_of(const Request&, const Lookups* shared, std::int64_t k) const;
    bool may_prune(const Request&) const;
    double budget_of(const Weighted&, std::int64_t k, std::int64_t n_queries, int n_threads) const;
    // Search the tables for one query, whose answer among later codes is known already; false where it is to be scanned.
    bool prune(const CodeQuery&, const OrderedTables&, const Lookups&, std::int64_t query, Effort&, Limits&,
               Answers&) const;
    // Scan for those queries that are left.
    void scan(const CodeQuery&, std::span<const std::uint8_t> left, const Limits&, Answers&) const;
    void offer(const CodeQuery&, const Lookups&, std::int64_t query, std::span<const std::int64_t> positions,
               Reservoir&) const;

    CodeBlocks codes_;
    std::unique_ptr<PruneTables> tables_;
    bool always_ = false;                // prune, whatever the estimate says
    std::vector<std::uint8_t> stale_;    // a bit for each code of the tables that was changed since
    std::vector<std::int64_t> changed_;  // their positions
    mutable std::mutex mutex_;           // guards latest_
    mutable std::shared_ptr<const Weighted> latest_;
};

}  // namespace cghash
