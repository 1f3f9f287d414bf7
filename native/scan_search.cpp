#include <atomic>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>

#include "code_search.hpp"
#include "parallel.hpp"

namespace cghash {
namespace {

constexpr std::int64_t tile_bytes = 1 << 18;    // codes that stay in the second-level cache while queries pass
constexpr std::size_t tables_bytes = 24 << 10;  // tables that stay in the first-level cache while codes pass
constexpr std::int64_t state_bytes = 64 << 20;  // for the states of queries that are scanned together

struct Aligned {
    void operator()(std::uint8_t* p) const { ::operator delete(p, std::align_val_t{64}); }
};

// A query under way in one thread.
class Scanned {
   public:
    Scanned(const CodeQuery& ask, const Lookups& lookups, const std::uint8_t* query, std::int64_t limit,
            std::uint8_t* tables, bool alone, ScanQuery& seen)
        : nearest(ask.k, limit, ask.ids == nullptr),
          query_(query),
          lookups_(lookups),
          tables_(tables),
          alone_(alone),
          seen_(seen) {
        std::fill_n(tables_, lookups_.scan_size(), std::uint8_t{0});
        seen_ = {tables_, 254, true};
        if (limit != Reservoir::unlimited) follow();
    }

    Reservoir nearest;

    void look(const CodeQuery& ask, const std::uint8_t* block, std::int64_t first, std::uint64_t lanes) {
        for (; lanes; lanes &= lanes - 1) {
            const int lane = std::countr_zero(lanes);
            if (!ask.allows(first + lane)) continue;
            const Found found{lookups_.distance(query_, block, lane), ask.id(first + lane)};
            if (nearest.offer(found)) follow();
        }
    }
    void lower(std::int64_t limit) {
        if (limit >= nearest.limit()) return;
        nearest.lower(limit);
        follow();
    }

   private:
    // Let the tables and their limit follow the reservoir's limit.
    void follow() {
        const auto limit = nearest.limit();
        if (limit < 0) {  // nothing can enter any more
            std::fill_n(tables_, lookups_.scan_size(), std::uint8_t{255});
            seen_.limit = 0;
            seen_.light = false;
            return;
        }
        const double wanted = lookups_.scan_scale(limit);
        if (wanted > refill * scale_) {
            lookups_.fill_scan(query_, scale_ = wanted, tables_);
            seen_.light = !alone_ && lookups_.lighten(tables_);
        }
        seen_.limit = static_cast<std::uint16_t>(limit_of(limit, scale_));
    }

    const std::uint8_t* query_;
    const Lookups& lookups_;
    std::uint8_t* tables_;
    bool alone_;  // no other query is scanned with it
    ScanQuery& seen_;
    double scale_ = 0;
};

// Queries that are scanned together.
struct Group {
    std::span<const std::int64_t> which, limits;
    std::vector<std::optional<Lookups>> own;  // of each, where they have weights of their own

    const Lookups& lookups(const CodeQuery& ask, std::size_t i) const { return ask.lookups ? *ask.lookups : *own[i]; }
};

// All queries of a group in one thread.
class Worker {
   public:
    Worker(const CodeQuery& ask, const Group& group, std::span<const std::int64_t> limits)
        : ask_(ask),
          seen_(group.which.size()),
          last_(0),
          scan_size_(Lookups::scan_size(ask.codes.n_bytes(), ask.kernels)),
          tables_(static_cast<std::uint8_t*>(::operator new(group.which.size() * scan_size_, std::align_val_t{64}))) {
        states_.reserve(group.which.size());
        for (std::size_t i = 0; i < group.which.size(); ++i)
            states_.emplace_back(ask, group.lookups(ask, i), ask.query(group.which[i]), limits[i],
                                 tables_.get() + i * scan_size_, group.which.size() == 1, seen_[i]);
    }

    // Blocks that lie together, of which the codes first … last − 1 count.
    void scan(const ScanRange& range, std::int64_t first, std::int64_t last) {
        first_ = first;
        last_ = last;
        const auto together = std::max<std::size_t>(1, tables_bytes / scan_size_);
        for (begun_ = 0; begun_ < states_.size(); begun_ += together)
            ask_.kernels.scan(range, ask_.codes.n_bytes(), seen_.data() + begun_,
                              static_cast<int>(std::min(together, states_.size() - begun_)), survivors, this);
    }
    std::vector<Scanned>& states() { return states_; }

   private:
    static void survivors(void* context, int query, const std::uint8_t* block, std::int64_t number,
                          std::uint64_t lanes) {
        auto& self = *static_cast<Worker*>(context);
        const auto code = number * 64;
        if (code < self.first_) lanes &= ~std::uint64_t{0} << (self.first_ - code);
        if (code + 64 > self.last_) lanes &= ~std::uint64_t{0} >> (code + 64 - self.last_);
        self.states_[self.begun_ + query].look(self.ask_, block, code, lanes);
    }

    const CodeQuery& ask_;
    std::vector<ScanQuery> seen_;
    std::vector<Scanned> states_;
    std::size_t begun_ = 0;
    std::int64_t first_ = 0, last_;
    std::size_t scan_size_;
    std::unique_ptr<std::uint8_t, Aligned> tables_;
};

// Codes first … last − 1; of their tiles, so many blocks each, one in `step`.
struct Range {
    std::int64_t first, last, tile, step = 1;
};

// What each query of a group finds.
Answers scan_tiles(const CodeQuery& ask, const Group& group, std::span<const std::int64_t> limits, const Range& range,
                   std::int64_t n_workers) {
    const auto n = group.which.size();
    const auto first_block = range.first / 64, last_block = (range.last + 63) / 64, apart = range.tile * range.step;
    const auto n_tiles = (last_block - first_block + apart - 1) / apart;
    std::atomic<std::int64_t> next{0};
    std::vector<std::atomic<std::int64_t>> kth(n);
    for (std::size_t i = 0; i < n; ++i) kth[i] = limits[i];
    std::vector<Answers> found(n_workers);
    parallel_chunks(n_workers, static_cast<int>(n_workers), [&](std::int64_t self) {
        Worker worker(ask, group, limits);
        for (std::int64_t at; (at = next.fetch_add(1)) < n_tiles;) {
            const auto begin = first_block + at * apart, end = std::min(begin + range.tile, last_block);
            ask.codes.each_piece(begin, end, [&](const std::uint8_t* blocks, std::int64_t number, std::int64_t count) {
                worker.scan({blocks, number, count}, range.first, range.last);
            });
            if (n_workers == 1) continue;
            for (std::size_t i = 0; i < n; ++i) {  // what one thread knows helps the others
                auto& state = worker.states()[i];
                auto known = kth[i].load(std::memory_order_relaxed);
                const auto mine = state.nearest.kth();
                while (mine < known && !kth[i].compare_exchange_weak(known, mine, std::memory_order_relaxed)) {
                }
                state.lower(std::min(known, mine));
            }
        }
        for (auto& state : worker.states()) found[self].push_back(state.nearest.sorted());
    });
    for (std::size_t i = 0; i < n; ++i) {
        auto& answer = found[0][i];
        for (std::int64_t worker = 1; worker < n_workers; ++worker)
            answer.insert(answer.end(), found[worker][i].begin(), found[worker][i].end());
        if (n_workers > 1) std::sort(answer.begin(), answer.end());
        if (std::ssize(answer) > ask.k) answer.resize(static_cast<std::size_t>(ask.k));
    }
    return std::move(found[0]);
}

// Distances within which the k nearest lie, most likely: of a sample of the codes, that of so many as it should have of
// the k nearest, and three deviations more. Without them, many more codes are compared exactly than are found in the end.
std::vector<std::int64_t> sampled_limits(const CodeQuery& ask, const Group& group, const Range& range,
                                         std::int64_t n_workers) {
    constexpr std::int64_t blocks = 1, in_sample = 64;  // that lie together; of the k nearest, about
    CodeQuery some = ask;
    const auto step = std::clamp<std::int64_t>(ask.k / in_sample, 4, 64);
    const double expected = static_cast<double>(ask.k) / static_cast<double>(step);
    some.k = static_cast<std::int64_t>(expected + 3 * std::sqrt(expected)) + 3;
    const auto found = scan_tiles(some, group, group.limits, {range.first, range.last, blocks, step}, n_workers);
    std::vector<std::int64_t> limits(group.limits.begin(), group.limits.end());
    for (std::size_t i = 0; i < limits.size(); ++i)
        if (std::ssize(found[i]) == some.k) limits[i] = std::min(limits[i], found[i].back().distance);
    return limits;
}

void scan_group(const CodeQuery& ask, Group group, const Range& range, Answers& answers, std::int64_t n_workers) {
    const auto n = group.which.size();
    if (!ask.lookups) group.own.resize(n);
    constexpr std::int64_t few = 16;  // look-ups of which are made sooner than threads begin
    const auto own = std::ssize(group.own);
    parallel_chunks(own, static_cast<int>(std::min(n_workers, 1 + own / few)),
                    [&](std::int64_t i) { group.own[i].emplace(ask.own_lookups(group.which[i])); });
    constexpr std::int64_t least = 256, share = 64;  // a sample pays for so many of the codes, one in so many
    const bool sampled = ask.k >= least && ask.k <= (range.last - range.first) / share;
    const auto limits = sampled ? sampled_limits(ask, group, range, n_workers)
                                : std::vector<std::int64_t>(group.limits.begin(), group.limits.end());
    auto found = scan_tiles(ask, group, limits, range, n_workers);
    std::vector<std::int64_t> missed, their_limits;  // queries that have fewer codes near than the sample promised
    std::vector<std::optional<Lookups>> their_own;
    for (std::size_t i = 0; i < n; ++i) {
        if (limits[i] < group.limits[i] && std::ssize(found[i]) < ask.k) {
            missed.push_back(group.which[i]);
            their_limits.push_back(group.limits[i]);
            if (!ask.lookups) their_own.push_back(std::move(group.own[i]));
        } else {
            answers[group.which[i]] = std::move(found[i]);
        }
    }
    if (missed.empty()) return;
    const Group again{missed, their_limits, std::move(their_own)};
    auto all = scan_tiles(ask, again, their_limits, range, n_workers);
    for (std::size_t i = 0; i < missed.size(); ++i) answers[missed[i]] = std::move(all[i]);
}

}  // namespace

Answers scan_search(const CodeQuery& ask, std::span<const std::int64_t> which, std::span<const std::int64_t> limits,
                    std::int64_t first, std::int64_t last) {
    Answers answers(ask.n_queries());
    if (first >= last) return answers;
    std::vector<std::int64_t> all;
    if (which.empty()) {
        all.resize(ask.n_queries());
        std::iota(all.begin(), all.end(), 0);
        which = all;
    }
    const auto n_bytes = (last - first) * ask.codes.n_bytes(), tiles = 1 + n_bytes / tile_bytes;
    const auto kept = std::min(ask.k, last - first);
    const bool many = 64 * kept > last - first;  // whose distances and order take longer than the scan
    const auto workers = many ? ask.n_threads : scan_workers(n_bytes, std::ssize(which), ask.n_threads, ask.kernels);
    const auto n_workers = std::clamp<std::int64_t>(workers, 1, tiles);
    const auto tables = static_cast<std::int64_t>(Lookups::scan_size(ask.codes.n_bytes(), ask.kernels));
    const auto own = ask.lookups ? 0 : Lookups::memory(ask.codes.n_bytes());
    const auto state = own + n_workers * (tables + 24 * kept + 256);
    const auto together = static_cast<std::size_t>(std::max<std::int64_t>(1, state_bytes / state));
    const Range range{first, last, std::max<std::int64_t>(1, tile_bytes / ask.codes.block_size())};
    for (std::size_t begun = 0; begun < which.size(); begun += together) {
        const auto count = std::min(together, which.size() - begun);
        const Group group{which.subspan(begun, count), limits.subspan(begun, count), {}};
        scan_group(ask, group, range, answers, n_workers);
    }
    return answers;
}

}  // namespace cghash
