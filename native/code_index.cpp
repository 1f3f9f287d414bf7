#include "code_index.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "parallel.hpp"

namespace cghash {

std::int64_t CodeIndex::prune_memory() const {
    const std::lock_guard lock(mutex_);
    if (!tables_) return 0;
    const auto orders = latest_ && latest_->pruner ? latest_->pruner->memory() : 0;
    return tables_->memory() + orders + static_cast<std::int64_t>(stale_.size() + 8 * changed_.capacity());
}

void CodeIndex::put(std::span<const std::int64_t> positions, std::span<const std::uint8_t> codes) {
    codes_.check_positions(positions);
    if (tables_) mark(positions);  // first: it may fail for want of memory
    codes_.put(positions, codes);
    // they are looked at one by one
    if (tables_ && static_cast<std::int64_t>(changed_.size()) > tables_->n_codes / 64) forget();
}

void CodeIndex::mark(std::span<const std::int64_t> positions) {
    if (stale_.empty()) stale_.resize((tables_->n_codes + 7) / 8);
    changed_.reserve(changed_.size() + positions.size());
    for (auto position : positions) {
        if (position >= tables_->n_codes) continue;
        auto& byte = stale_[position / 8];
        const auto bit = static_cast<std::uint8_t>(1 << position % 8);
        if (!(byte & bit)) changed_.push_back(position);
        byte |= bit;
    }
}

void CodeIndex::truncate(std::int64_t n_codes) {
    if (tables_ && tables_->n_codes > n_codes) forget();
    codes_.truncate(n_codes);
}

void CodeIndex::forget() {
    std::shared_ptr<const Weighted> latest;  // destroyed after the lock: what was handed in may want the GIL
    std::unique_ptr<PruneTables> tables;
    const std::lock_guard lock(mutex_);
    latest.swap(latest_);
    tables.swap(tables_);
    stale_.clear();
    changed_.clear();
    always_ = false;
}

void CodeIndex::reweight(std::span<const std::int64_t> weights) {
    if (tables_ && !tables_->suit(Lookups(weights, codes_.n_bytes(), kernels()))) forget();
}

void CodeIndex::adopt(std::unique_ptr<PruneTables> tables, std::span<const std::int64_t> changed, bool always) {
    tables->check(codes_.n_bytes());
    if (tables->n_codes > codes_.n_codes()) throw std::invalid_argument("tables must cover codes that are here");
    codes_.check_positions(changed);
    forget();
    tables_ = std::move(tables);
    always_ = always;
    if (!changed.empty()) mark(changed);
}

bool CodeIndex::prepare(const Request& request, const TableOptions& options, bool always) {
    forget();
    const Lookups lookups(request.weights, codes_.n_bytes(), kernels());
    tables_ = build_tables(codes_, lookups, samples(request, lookups), request.ids, request.allowed, options,
                           request.n_threads);
    if (!tables_) return false;
    const auto found = weighted(request);
    // tables take memory: they must save a good deal
    const auto pays = [&](std::int64_t n) { return found->pruner->budget(10, n, request.n_threads, 0.3) > 0; };
    always_ = always;
    if (always || pays(1) || pays(100)) return true;
    forget();
    return false;
}

std::vector<Sample> CodeIndex::samples(const Request& request, const Lookups& lookups) const {
    constexpr std::int64_t most = 16,
                           k = 100;  // queries that are no codes have their nearest farther off than codes do
    const auto n = codes_.n_codes(), n_samples = std::min(n, most);
    std::vector<std::uint8_t> queries(n_samples * codes_.n_bytes());
    for (std::int64_t i = 0; i < n_samples; ++i)
        codes_.read((2 * i + 1) * n / (2 * n_samples), queries.data() + i * codes_.n_bytes());
    const CodeQuery ask{codes_, lookups, queries, k, nullptr, request.allowed, request.n_threads};
    const auto answers = scan_search(ask, {}, std::vector<std::int64_t>(n_samples, Reservoir::unlimited), 0, n);
    std::vector<Sample> found;
    for (std::int64_t i = 0; i < n_samples; ++i)
        if (!answers[i].empty())
            found.push_back({{ask.query(i), ask.query(i) + codes_.n_bytes()}, answers[i].back().distance});
    return found;
}

std::shared_ptr<const CodeIndex::Weighted> CodeIndex::weighted(const Request& request) const {
    const std::lock_guard lock(mutex_);
    const auto& chosen = kernels();
    if (latest_ && &latest_->lookups.kernels == &chosen &&
        std::equal(latest_->weights.begin(), latest_->weights.end(), request.weights.begin(), request.weights.end()))
        return latest_;
    auto made = std::make_shared<Weighted>(request.weights, codes_.n_bytes(), chosen);
    if (tables_ && tables_->suit(made->lookups))  // those of a file that nobody has verified may not
        made->pruner = std::make_unique<Pruner>(*tables_, made->lookups, codes_);
    latest_ = made;
    return made;
}

Answers CodeIndex::nearest(const Request& request, std::int64_t k) const {
    return answer(request, k, Reservoir::unlimited);
}

Answers CodeIndex::within(const Request& request, std::int64_t radius) const {
    return answer(request, Reservoir::unlimited, radius);
}

Answers CodeIndex::among(const Request& request, std::span<const std::int64_t> positions, std::int64_t k,
                         std::int64_t radius) const {
    codes_.check_positions(positions);
    const auto found = weighted(request);
    const CodeQuery ask{codes_, found->lookups, request.queries, k, request.ids, nullptr, request.n_threads};
    Answers answers(ask.n_queries());
    const auto workers = std::min<std::int64_t>(request.n_threads, 1 + ask.n_queries() * std::ssize(positions) / 4096);
    parallel_chunks(ask.n_queries(), static_cast<int>(workers), [&](std::int64_t i) {
        Reservoir nearest(k, radius, false);
        offer(ask, i, positions, nearest);
        answers[i] = nearest.sorted();
    });
    return answers;
}

void CodeIndex::offer(const CodeQuery& ask, std::int64_t query, std::span<const std::int64_t> positions,
                      Reservoir& nearest) const {
    for (auto position : positions)
        if (ask.allows(position))
            nearest.offer(
                {ask.lookups.distance(ask.query(query), codes_.block(position / 64), static_cast<int>(position % 64)),
                 ask.id(position)});
}

double CodeIndex::budget_of(const Weighted& found, std::int64_t k, std::int64_t n_queries, int n_threads) const {
    if (!found.pruner || !n_queries) return 0;
    if (always_) return std::numeric_limits<double>::infinity();
    return found.pruner->budget(k == Reservoir::unlimited ? 100 : k, n_queries, n_threads);  // the former: a radius
}

Answers CodeIndex::answer(const Request& request, std::int64_t k, std::int64_t limit) const {
    const auto found = weighted(request);
    const CodeQuery ask{codes_, found->lookups, request.queries, k, request.ids, request.allowed, request.n_threads};
    const auto n = ask.n_queries();
    std::vector<std::int64_t> limits(n, limit);
    const double budget = budget_of(*found, k, n, request.n_threads);
    // pruning finds allowed codes among all, so that it takes longer the fewer they are
    const bool many = !request.allowed || 16 * request.n_allowed >= codes_.n_codes();
    if (budget <= 0 || !(always_ || many)) return scan_search(ask, {}, limits, 0, codes_.n_codes());

    const Pruner& pruner = *found->pruner;
    auto answers = scan_search(ask, {}, limits, tables_->n_codes, codes_.n_codes());
    constexpr double soon = 500;  // where tables are always used, so that small ones are searched both ways
    const bool by_two = n == 1 && request.n_threads > 1;
    const double alone = !by_two ? budget : always_ ? soon : pruner.alone(k, budget);
    std::vector<std::uint8_t> left(n);  // to be scanned
    const auto prune = [&](std::int64_t i) {
        if (!always_ && !pruner.worth_a_try(n)) {
            left[i] = 1;
            return;
        }
        Reservoir nearest(k, limit, false);
        for (const auto& entry : answers[i]) nearest.offer(entry);
        offer(ask, i, changed_, nearest);
        double spent = 0;
        const auto* stale = stale_.empty() ? nullptr : stale_.data();
        const bool finished = prune_run(pruner.on(), ask, ask.query(i), stale, budget, alone, nearest, spent);
        pruner.note(n, request.n_threads, spent, finished);
        if (finished) answers[i] = nearest.sorted();
        else {
            left[i] = 1;
            nearest.tighten();
            limits[i] = std::min(limit, nearest.kth());
        }
    };
    // threads take longer to begin than a few queries to end
    const auto workers = std::min<std::int64_t>(request.n_threads, 1 + n / 8);
    parallel_chunks(n, static_cast<int>(workers), prune);
    std::vector<std::int64_t> which, their_limits;
    for (std::int64_t i = 0; i < n; ++i)
        if (left[i]) {
            which.push_back(i);
            their_limits.push_back(limits[i]);
        }
    if (which.empty()) return answers;
    auto scanned = scan_search(ask, which, their_limits, 0, codes_.n_codes());
    for (auto i : which) answers[i] = std::move(scanned[i]);
    return answers;
}

}  // namespace cghash
