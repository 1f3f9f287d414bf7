#include "prune_search.hpp"

#include <limits>

namespace cghash {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Of one query among so many, by several threads where it is alone.
double cost_of_scan(const PruneTables& tables, const PruneCosts& costs, const Lookups& lookups, std::int64_t n_queries,
                    int n_threads) {
    const double n_blocks = static_cast<double>(tables.n_codes) / 64;
    const double cost = n_blocks * (costs.scan_read / static_cast<double>(n_queries) + costs.scan_compute);
    if (n_queries > 1) return cost;
    const auto n_bytes = static_cast<std::int64_t>(64 * n_blocks) * lookups.n_bytes;
    return cost / scan_workers(n_bytes, 1, n_threads, lookups.kernels);  // pruned mostly by one
}

struct Budget {
    double spent = 0;     // by a query; 0 where none pays
    double given_up = 0;  // share of queries that are scanned then
};

// Of what samples took, in rising order, the one that leaves least to do, and less than `least` a query; for queries that
// are so much harder than the samples.
Budget best_budget(const std::vector<double>& samples, double harder, double scan, double least) {
    Budget best;
    for (const double sample : samples) {
        const double spent = harder * sample;
        if (!(spent < 2 * scan)) continue;
        double sum = 0, n_beyond = 0;
        for (const double cost : samples) {
            sum += cost <= sample ? harder * cost : spent + scan;
            n_beyond += cost > sample;
        }
        const auto n = static_cast<double>(samples.size());
        if (sum / n < least) {
            least = sum / n;
            best = {spent, n_beyond / n};
        }
    }
    return best;
}

}  // namespace

Pruner::Pruner(const PruneTables& tables, const Lookups& lookups, const CodeBlocks& codes)
    : plain_(lookups), on_(tables, lookups) {
    calibrate(codes);
}

std::int64_t Pruner::memory() const {
    std::size_t bytes = 0;
    for (const auto& order : on_.orders) bytes += 12 * order.weights.capacity();
    return static_cast<std::int64_t>(bytes);
}

double Pruner::alone(std::int64_t k, double budget) const {
    constexpr double worth = 5e5;  // what a thread takes to begin varies; it must not matter
    if (budget < 2 * worth) return budget;
    const auto& samples = samples_[k <= 30 ? 0 : 1];
    return samples[samples.size() / 2] > 2 * worth ? 0 : worth;  // 0: nearly every query will be worth it
}

double Pruner::scan_cost(std::int64_t n_queries, int n_threads) const {
    return cost_of_scan(on_.tables, on_.costs, on_.lookups, n_queries, n_threads);
}

double Pruner::budget(std::int64_t k, std::int64_t n_queries, int n_threads, double saved) const {
    const double scan = scan_cost(n_queries, n_threads);
    const double harder = k <= 100 ? 1.0 : static_cast<double>(k) / 100.0;  // at most: work grows slower than k
    const auto [best, given_up] = best_budget(samples_[k <= 30 ? 0 : 1], harder, scan, (1 - saved) * scan);
    if (best == 0) return 0;
    // queries may be harder than the samples: give more than these took, and mind what becomes of it (worth_a_try);
    // the few that are scanned have the reading of the codes to themselves
    const auto n_scanned =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(given_up * static_cast<double>(n_queries)));
    return std::max(1.2 * best, 0.5 * scan_cost(n_scanned, n_queries > 1 ? 1 : n_threads));
}

bool Pruner::worth_a_try(std::int64_t n_queries) const {
    auto& past = pasts_[n_queries > 1];
    const double tried = past.tried.load(std::memory_order_relaxed);
    if (past.spent.load(std::memory_order_relaxed) <= 4 + 1.05 * tried) return true;
    return past.skipped.fetch_add(1, std::memory_order_relaxed) % 64 == 63;
}

void Pruner::note(std::int64_t n_queries, int n_threads, double spent, bool finished) const {
    auto& past = pasts_[n_queries > 1];
    past.spent.fetch_add(spent / scan_cost(n_queries, n_threads) + !finished, std::memory_order_relaxed);
    if (past.tried.fetch_add(1, std::memory_order_relaxed) < 256) return;
    past.tried = past.tried / 2;  // what was long ago counts less and less
    past.spent = past.spent / 2;
}

void Pruner::calibrate(const CodeBlocks& codes) {
    constexpr std::int64_t n_samples = 8;
    const double most = scan_cost(1, 1);
    std::vector<std::uint8_t> query(codes.n_bytes());
    for (std::size_t i = 0; i < sampled_k.size(); ++i) {
        const CodeQuery ask{codes, plain_.kernels, &plain_, {}, {}, sampled_k[i], nullptr, nullptr, 1};
        for (std::int64_t sample = 0; sample < n_samples; ++sample) {
            codes.read((2 * sample + 1) * on_.tables.n_codes / (2 * n_samples), query.data());
            Reservoir nearest(sampled_k[i], Reservoir::unlimited, false);
            Effort effort{most, most};
            const bool finished = prune_run(on_, ask, query.data(), nullptr, effort, nearest);
            samples_[i].push_back(finished ? effort.spent : infinity);
        }
        std::sort(samples_[i].begin(), samples_[i].end());
    }
}

OwnEffort::OwnEffort(const PruneTables& tables, const Lookups& lookups, std::int64_t n_queries) {
    constexpr double prepared = 10'000;  // nanoseconds, for the look-ups and the order of keys of a query
    const auto costs = costs_of(lookups, tables.memory(), Listing::as_needed);
    // as if the codes were in a cache: the least that a scan takes
    const double scan = static_cast<double>(tables.n_codes) / 64 * costs.scan_compute;
    pays_ = scan > (n_queries < many ? 16 : 4) * prepared;
    effort_ = {.budget = scan / 2, .alone = scan / 2, .check = scan / 128};
}

bool OwnEffort::worth_a_try() const {
    if (failed_.load(std::memory_order_relaxed) <= many / 4 + tried_.load(std::memory_order_relaxed) / 2) return true;
    return skipped_.fetch_add(1, std::memory_order_relaxed) % many == many - 1;
}

void OwnEffort::note(bool finished) {
    tried_.fetch_add(1, std::memory_order_relaxed);
    failed_.fetch_add(!finished, std::memory_order_relaxed);
}

}  // namespace cghash
