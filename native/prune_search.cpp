#include "prune_search.hpp"

#include <limits>

namespace cghash {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

Pruner::Pruner(const PruneTables& tables, const Lookups& lookups, const CodeBlocks& codes)
    : plain_(lookups), on_(tables, lookups), n_blocks_(static_cast<double>(tables.n_codes) / 64) {
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
    const double cost = n_blocks_ * (on_.costs.scan_read / static_cast<double>(n_queries) + on_.costs.scan_compute);
    if (n_queries > 1) return cost;
    const auto n_bytes = static_cast<std::int64_t>(64 * n_blocks_) * on_.lookups.n_bytes;
    return cost / scan_workers(n_bytes, 1, n_threads, on_.lookups.kernels);  // by several threads; pruned mostly by one
}

double Pruner::budget(std::int64_t k, std::int64_t n_queries, int n_threads, double saved) const {
    const double scan = scan_cost(n_queries, n_threads);
    const auto& samples = samples_[k <= 30 ? 0 : 1];
    const double harder = k <= 100 ? 1.0 : static_cast<double>(k) / 100.0;  // at most: work grows slower than k
    double best = 0, least = (1 - saved) * scan;  // the mean cost of a query under the best budget so far
    double given_up = 0;                          // share of queries that are scanned then
    for (const double budget : samples) {
        if (!(budget * harder < 2 * scan)) continue;
        double sum = 0, n_beyond = 0;
        for (const double cost : samples) {
            sum += harder * (cost <= budget ? cost : budget) + (cost <= budget ? 0 : scan);
            n_beyond += cost > budget;
        }
        const double mean = sum / static_cast<double>(samples.size());
        if (mean < least) {
            least = mean;
            best = harder * budget;
            given_up = n_beyond / static_cast<double>(samples.size());
        }
    }
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
        const CodeQuery ask{codes, plain_, {}, sampled_k[i], nullptr, nullptr, 1};
        for (std::int64_t sample = 0; sample < n_samples; ++sample) {
            codes.read((2 * sample + 1) * on_.tables.n_codes / (2 * n_samples), query.data());
            Reservoir nearest(sampled_k[i], Reservoir::unlimited, false);
            double spent = 0;
            const bool finished = prune_run(on_, ask, query.data(), nullptr, most, most, nearest, spent);
            samples_[i].push_back(finished ? spent : infinity);
        }
        std::sort(samples_[i].begin(), samples_[i].end());
    }
}

}  // namespace cghash
