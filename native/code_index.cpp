#include "code_index.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "parallel.hpp"

namespace cghash {
namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();

}  // namespace

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
    if (tables_ && !tables_->suit(weights)) forget();
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
    if (codes_.n_bytes() > most_pruned_bytes) return false;
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
    const CodeQuery ask{codes_, lookups.kernels, &lookups, {}, queries, k, nullptr, request.allowed, request.n_threads};
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
    if (tables_ && tables_->suit(request.weights))  // those of a file that nobody has verified may not
        made->pruner = std::make_unique<Pruner>(*tables_, made->lookups, codes_);
    latest_ = made;
    return made;
}

Answers CodeIndex::nearest(const Request& request, std::int64_t k) const {
    return answer(request, k, Limits(request.queries.size() / codes_.n_bytes(), Reservoir::unlimited));
}

Answers CodeIndex::within(const Request& request, std::span<const std::int64_t> radii) const {
    return answer(request, Reservoir::unlimited, {radii.begin(), radii.end()});
}

Answers CodeIndex::among(const Request& request, std::span<const std::int64_t> positions, std::int64_t k,
                         std::span<const std::int64_t> radii) const {
    codes_.check_positions(positions);
    const auto shared = request.own ? nullptr : weighted(request);
    const auto ask = query_of(request, shared ? &shared->lookups : nullptr, k);
    Answers answers(ask.n_queries());
    const auto workers = std::min<std::int64_t>(request.n_threads, 1 + ask.n_queries() * std::ssize(positions) / 4096);
    parallel_chunks(ask.n_queries(), static_cast<int>(workers), [&](std::int64_t i) {
        Reservoir nearest(k, radii.empty() ? Reservoir::unlimited : radii[i], false);
        if (shared) offer(ask, shared->lookups, i, positions, nearest);
        else offer(ask, ask.own_lookups(i), i, positions, nearest);
        answers[i] = nearest.sorted();
    });
    return answers;
}

CodeQuery CodeIndex::query_of(const Request& request, const Lookups* shared, std::int64_t k) const {
    const auto& chosen = shared ? shared->kernels : kernels();
    return {codes_, chosen,      shared,          request.weights,  request.queries,
            k,      request.ids, request.allowed, request.n_threads};
}

void CodeIndex::offer(const CodeQuery& ask, const Lookups& lookups, std::int64_t query,
                      std::span<const std::int64_t> positions, Reservoir& nearest) const {
    for (auto position : positions)
        if (ask.allows(position))
            nearest.offer(
                {lookups.distance(ask.query(query), codes_.block(position / 64), static_cast<int>(position % 64)),
                 ask.id(position)});
}

double CodeIndex::budget_of(const Weighted& found, std::int64_t k, std::int64_t n_queries, int n_threads) const {
    if (!found.pruner || !n_queries) return 0;
    if (always_) return unbounded;
    return found.pruner->budget(k == Reservoir::unlimited ? 100 : k, n_queries, n_threads);  // the former: a radius
}

bool CodeIndex::may_prune(const Request& request) const {
    // pruning finds allowed codes among all, so that it takes longer the fewer they are
    return tables_ && (always_ || !request.allowed || 16 * request.n_allowed >= codes_.n_codes());
}

Answers CodeIndex::answer(const Request& request, std::int64_t k, Limits limits) const {
    if (request.own) return answer_own(request, k, std::move(limits));
    const auto found = weighted(request);
    const auto ask = query_of(request, &found->lookups, k);
    const auto n = ask.n_queries();
    const double budget = budget_of(*found, k, n, request.n_threads);
    if (budget <= 0 || !may_prune(request)) return scan_search(ask, {}, limits, 0, codes_.n_codes());

    const Pruner& pruner = *found->pruner;
    auto answers = scan_search(ask, {}, limits, tables_->n_codes, codes_.n_codes());
    constexpr double soon = 500;  // where tables are always used, so that small ones are searched both ways
    const bool by_two = n == 1 && request.n_threads > 1;
    const double alone = !by_two ? budget : always_ ? soon : pruner.alone(k, budget);
    std::vector<std::uint8_t> left(n);  // to be scanned
    // threads take longer to begin than a few queries to end
    const auto workers = std::min<std::int64_t>(request.n_threads, 1 + n / 8);
    parallel_chunks(n, static_cast<int>(workers), [&](std::int64_t i) {
        left[i] = !always_ && !pruner.worth_a_try(n);
        if (left[i]) return;
        Effort effort{budget, alone};
        left[i] = !prune(ask, pruner.on(), found->lookups, i, effort, limits, answers);
        pruner.note(n, request.n_threads, effort.spent, !left[i]);
    });
    scan(ask, left, limits, answers);
    return answers;
}

Answers CodeIndex::answer_own(const Request& request, std::int64_t k, Limits limits) const {
    const auto ask = query_of(request, nullptr, k);
    const auto n = ask.n_queries();
    const auto scan_all = [&] { return scan_search(ask, {}, limits, 0, codes_.n_codes()); };
    if (!n || !may_prune(request)) return scan_all();
    OwnEffort tries(*tables_, ask.own_lookups(0), n);
    if (!always_ && !tries.pays()) return scan_all();

    auto answers = scan_search(ask, {}, limits, tables_->n_codes, codes_.n_codes());
    std::vector<std::uint8_t> left(n, 1);
    const auto workers = std::min<std::int64_t>(request.n_threads, 1 + n / 8);
    parallel_chunks(n, static_cast<int>(workers), [&](std::int64_t i) {
        if (!always_ && !tries.worth_a_try()) return;
        if (!tables_->suit(ask.own_weights(i))) return;
        const auto lookups = ask.own_lookups(i);
        const OrderedTables on(*tables_, lookups, Listing::as_needed);
        auto effort = always_ ? Effort{unbounded, unbounded} : tries.effort();
        left[i] = !prune(ask, on, lookups, i, effort, limits, answers);
        tries.note(!left[i]);
    });
    scan(ask, left, limits, answers);
    return answers;
}

bool CodeIndex::prune(const CodeQuery& ask, const OrderedTables& on, const Lookups& lookups, std::int64_t query,
                      Effort& effort, Limits& limits, Answers& answers) const {
    Reservoir nearest(ask.k, limits[query], false);
    for (const auto& entry : answers[query]) nearest.offer(entry);
    offer(ask, lookups, query, changed_, nearest);
    const auto* stale = stale_.empty() ? nullptr : stale_.data();
    if (prune_run(on, ask, ask.query(query), stale, effort, nearest)) {
        answers[query] = nearest.sorted();
        return true;
    }
    nearest.tighten();
    limits[query] = std::min(limits[query], nearest.kth());
    return false;
}

void CodeIndex::scan(const CodeQuery& ask, std::span<const std::uint8_t> left, const Limits& limits,
                     Answers& answers) const {
    std::vector<std::int64_t> which, their_limits;
    for (std::size_t i = 0; i < left.size(); ++i)
        if (left[i]) {
            which.push_back(static_cast<std::int64_t>(i));
            their_limits.push_back(limits[i]);
        }
    if (which.empty()) return;
    auto scanned = scan_search(ask, which, their_limits, 0, codes_.n_codes());
    for (auto i : which) answers[i] = std::move(scanned[i]);
}

}  // namespace cghash
