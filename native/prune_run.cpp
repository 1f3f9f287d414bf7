#include "prune_run.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <system_error>
#include <thread>

#include "prefetch.hpp"
#include "shortlist.hpp"

namespace cghash {
namespace {

// What two threads that share the tables of one query tell each other.
struct Exchange {
    std::atomic<std::int64_t> limit{Reservoir::unlimited};
    std::array<std::atomic<std::int64_t>, 2> bounds{};
    std::atomic<bool> proven{false}, abandoned{false};
};

// How a way through tables ended: no unseen code can be near enough, the budget was spent, or no keys are left in order.
enum class End { proven, spent, no_keys };

// One query under way, in some of the tables.
class Run {
   public:
    Run(const OrderedTables& on, const CodeQuery& ask, const std::uint8_t* query, const std::uint8_t* stale,
        Reservoir& nearest)
        : on_(on), lookups_(on.lookups), ask_(ask), stale_(stale), nearest_(nearest),
          shortlist_(ask.k), eager_(ask.allowed || stale) {
        const auto& tables = on.tables.tables;
        on.tables.bits.apply(query, query_);
        for (std::size_t t = 0; t < tables.size(); ++t) {
            mine_.push_back(t);
            keys_[t] = tables[t].key_of(query_);
            for (std::int64_t step = 0; step < window; ++step) ask_for_start(t, step);
        }
        std::memset(nibbles_, 0, lookups_.bucket_size());
        follow();
    }

    // Go through all tables; false when that ended without proof. Past `alone`, another thread helps.
    bool search(double budget, double alone, double& spent) {
        nearest_.tighten();
        const auto end = visit_all(std::min(budget, alone), spent);
        if (end == End::spent && spent <= budget) return search_together(budget, spent);
        return end == End::proven && resolve(shortlist_.entries());
    }

   private:
    // The rest by two threads, half of the tables each: the strongest, which come first, go with the weakest.
    bool search_together(double budget, double& spent) {
        Exchange shared;
        shared.bounds[0] = bound_;
        Run other(*this);
        const auto all = mine_;
        std::erase_if(mine_, [](std::size_t t) { return t != 0 && t != 3; });
        std::erase_if(other.mine_, [](std::size_t t) { return t == 0 || t == 3; });
        shared_ = other.shared_ = &shared;
        other.self_ = 1;
        other.bound_ = 0;  // from here on
        other.told_ = limit();
        other.shortlist_ = Shortlist(ask_.k);
        double other_spent = spent;
        std::exception_ptr failure;
        std::thread helper;
        try {
            helper = std::thread([&] {
                try {
                    other.visit_half(budget, other_spent);
                } catch (...) {
                    failure = std::current_exception();
                    shared.abandoned = true;
                }
            });
        } catch (const std::system_error&) {  // no more threads to be had
            mine_ = all;
            shared_ = nullptr;
            return visit_all(budget, spent) == End::proven && resolve(shortlist_.entries());
        }
        try {
            visit_half(budget, spent);
        } catch (...) {
            shared.abandoned = true;
            helper.join();
            throw;
        }
        helper.join();
        if (failure) std::rethrow_exception(failure);
        spent = std::max(spent, other_spent);
        if (!shared.proven) return false;
        auto entries = shortlist_.entries();
        entries.insert(entries.end(), other.shortlist_.entries().begin(), other.shortlist_.entries().end());
        return resolve(entries);
    }

    static constexpr std::int64_t window = 16;  // keys that are planned at once
    static constexpr std::int64_t ahead = 2;    // keys whose codes are on their way

    // Where no keys are left, the other thread goes on with its own.
    void visit_half(double budget, double& spent) {
        const auto end = visit_all(budget, spent);
        if (end == End::spent) shared_->abandoned = true;
        if (end == End::proven && !shared_->abandoned) shared_->proven = true;
    }

    End visit_all(double budget, double& spent) {
        for (const auto t : mine_)
            for (std::int64_t step = 0; step < ahead; ++step) lines_of(t, at_[t] + step).ask_all();
        for (const auto t : mine_) plans_[t] = planned(t);
        for (;;) {
            table_ = mine_.front();
            for (const auto t : mine_)
                if (plans_[t].slope > plans_[table_].slope) table_ = t;
            const auto& order = on_.orders[table_];
            if (at_[table_] == order.size()) return End::no_keys;
            while (at_[table_] < plans_[table_].end) {
                if (spent > budget) return End::spent;
                visit(spent);
                if (++at_[table_] == order.size() && order.whole) return End::proven;  // this table has shown all
                bound_ += weight_at(table_, at_[table_]) - weight_at(table_, at_[table_] - 1);
                if (is_over()) return End::proven;
            }
            if (shortlist_.tighten() | (eager_ && nearest_.tighten())) follow();
            if (is_over()) return End::proven;
            plans_[table_] = planned(table_);
        }
    }

    // Whether no unseen code can be near enough, or the other thread has made an end.
    bool is_over() {
        if (!shared_) return bound_ > limit();
        shared_->bounds[self_].store(bound_, std::memory_order_relaxed);
        if (shared_->proven || shared_->abandoned) return true;
        const auto known = shared_->limit.load(std::memory_order_relaxed);
        if (known < told_) {  // by the other thread
            told_ = known;
            follow();
        }
        return bound_ + shared_->bounds[1 - self_].load(std::memory_order_relaxed) > limit();
    }

    // The next keys of a table that raise the bound most for what they cost.
    struct Plan {
        std::int64_t end = 0;
        double slope = 0;
    };

    std::int64_t weight_at(std::size_t table, std::int64_t step) const {
        const auto& weights = on_.orders[table].weights;
        return weights[std::min<std::size_t>(step, weights.size() - 1)];
    }

    Plan planned(std::size_t t) const {
        // the first keys hold the most codes and are weighed one by one; later ones are much alike
        constexpr std::int64_t few = 32;
        const auto& order = on_.orders[t];
        const auto& table = on_.tables.tables[t];
        const auto begin = at_[t], n = order.size();
        const auto weight = weight_at(t, begin);
        Plan best{begin, -1};
        const double most = static_cast<double>(limit() - bound_) + 1;  // to raise it further is of no use
        double cost = 0;
        for (auto step = begin; step < n; ++step) {
            ask_for_start(t, step + window);
            cost += cost_of(table, keys_[t] ^ order.masks[step]);
            const bool last = step + 1 == n;
            const double gain = last && order.whole ? most : static_cast<double>(weight_at(t, step + 1) - weight);
            const double slope = std::min(gain, most) / cost;
            if (slope > best.slope || begin >= few) best = {step + 1, slope};
            if (step - begin >= (best.slope > 0 ? window : 4 * window)) break;  // the latter: weights of 0
        }
        return best;
    }

    // Have it ready where the codes of a key begin.
    void ask_for_start(std::size_t t, std::int64_t step) const {
        if (step < on_.orders[t].size()) prefetch(&on_.tables.tables[t].starts[keys_[t] ^ on_.orders[t].masks[step]]);
    }

    double cost_of(const PruneTable& table, std::uint32_t key) const {
        const auto& costs = on_.costs;
        const auto bucket = table.bucket(key);
        return costs.step + (bucket.empty() ? 0 : costs.bucket + costs.block * static_cast<double>(bucket.n_blocks()));
    }

    // Where the first codes of a key are.
    Lines lines_of(std::size_t t, std::int64_t step) const {
        if (step >= on_.orders[t].size()) return {};
        const auto& table = on_.tables.tables[t];
        const auto bucket = table.bucket(keys_[t] ^ on_.orders[t].masks[step]);
        if (bucket.empty()) return {};
        const auto size = 64 * static_cast<std::int64_t>(table.rest.size());
        const std::uint8_t* p = table.blocks.values.data() + bucket.first / 64 * size;
        return {p, p + std::min(bucket.n_blocks(), BucketRange::asked(static_cast<int>(table.rest.size()))) * size};
    }

    // Look at the codes of the next key of a table.
    void visit(double& spent) {
        const auto& table = on_.tables.tables[table_];
        const auto& order = on_.orders[table_];
        Lines soon = lines_of(table_, at_[table_] + ahead);
        const auto mask = order.masks[at_[table_]];
        key_ = keys_[table_] ^ mask;
        spent += cost_of(table, key_);
        const auto bucket = table.bucket(key_);
        if (bucket.empty()) return soon.ask_all();
        key_weight_ = table.stored_apart(mask, order.weights[at_[table_]], lookups_);
        set_start();
        const BucketQuery query{nibbles_, table.rest.data(), static_cast<int>(table.rest.size()), &start_, &limit_};
        lookups_.kernels.scan_bucket({table.blocks.values.data(), bucket.first, bucket.last, soon}, query, survivors, this);
        spent += on_.costs.found * static_cast<double>(n_found_);
        n_found_ = 0;
    }

    static void survivors(void* context, int, const std::uint8_t* block, std::int64_t number, std::uint64_t lanes) {
        auto& self = *static_cast<Run*>(context);
        for (; lanes; lanes &= lanes - 1) {
            const int lane = std::countr_zero(lanes);
            self.look(block, number * 64 + lane, lane);
        }
    }

    void look(const std::uint8_t* block, std::int64_t place, int lane) {
        const auto& tables = on_.tables.tables;
        const auto& table = tables[table_];
        auto distance = key_weight_;
        for (std::size_t j = 0; j < table.rest.size(); ++j)
            distance += lookups_.byte_weight(table.rest[j], query_[table.rest[j]] ^ block[64 * j + lane]);
        if (distance > limit()) return;
        std::uint8_t code[128];
        table.read(key_, place, code);
        for (std::size_t t = 0; t < tables.size(); ++t)  // shown by another table before?
            if (t != table_ && at_[t] && has_shown(t, keys_[t] ^ tables[t].key_of(code))) return;
        ++n_found_;
        if (table_ && !eager_) on_.tables.ask_for_place(code);
        if (eager_ ? take(table_ ? on_.tables.place_of(code, lookups_.kernels) : place, distance)
                   : shortlist_.add({distance, key_, static_cast<std::uint32_t>(place), table_}))
            follow();
    }

    bool has_shown(std::size_t t, std::uint32_t mask) const {
        return on_.orders[t].before(on_.tables.tables[t].key_weight(mask, lookups_), mask, at_[t]);
    }

    // Offer the rows at a place; true when the limit has fallen.
    bool take(std::int64_t place, std::int64_t distance) {
        if (place < 0) return false;
        bool fell = false;
        std::int64_t offered = 0;
        for (const std::int64_t row : on_.tables.rows_at(place)) {
            if (row >= on_.tables.n_codes || !ask_.allows(row) || (stale_ && stale_[row / 8] >> (row % 8) & 1)) continue;
            fell |= nearest_.offer({distance, ask_.id(row)});
            if (++offered >= ask_.k) break;  // rows are by id: no later one can be among the k nearest
        }
        return fell;
    }

    // Offer the rows of what is on short lists; two threads may both have found a code.
    bool resolve(const std::vector<Shortlist::Entry>& entries) {
        std::uint8_t code[128];
        std::vector<std::pair<std::int64_t, std::int64_t>> found;  // distance, place
        for (const auto& near : entries) {
            if (near.distance > limit()) continue;
            std::int64_t place = near.place;
            if (near.table) {
                on_.tables.tables[near.table].read(near.key, near.place, code);
                place = on_.tables.place_of(code, lookups_.kernels);
            }
            on_.tables.ask_for_rows(place);
            found.emplace_back(near.distance, place);
        }
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        for (const auto& [distance, place] : found) take(place, distance);  // the nearest first: then few enter
        return true;
    }

    std::int64_t limit() const { return std::min({nearest_.limit(), shortlist_.limit(), told_}); }

    // Let the tables and their limit follow the reservoir's limit.
    void follow() {
        const auto limit = this->limit();
        if (limit == Reservoir::unlimited) return;
        if (shared_) tell(limit);
        const double wanted = full_scale / std::max(static_cast<double>(limit), 0.5);
        if (wanted > refill * scale_) lookups_.fill_bucket(query_, scale_ = wanted, nibbles_);
        limit_ = static_cast<std::uint8_t>(limit_of(limit, scale_));
        set_start();
    }
    void tell(std::int64_t limit) {
        auto known = shared_->limit.load(std::memory_order_relaxed);
        while (limit < known && !shared_->limit.compare_exchange_weak(known, limit, std::memory_order_relaxed)) {}
    }
    void set_start() {
        start_ = static_cast<std::uint8_t>(std::min(static_cast<double>(key_weight_) * scale_ * (1.0 - 0x1p-20), 255.0));
    }

    const OrderedTables& on_;
    const Lookups& lookups_;
    const CodeQuery& ask_;
    const std::uint8_t* stale_;
    std::uint8_t query_[128];           // its bits in the tables' order
    Reservoir& nearest_;
    Shortlist shortlist_;
    bool eager_;                        // take the rows of a code at once: not each has one that counts
    std::vector<std::size_t> mine_;      // the tables it goes through
    Exchange* shared_ = nullptr;         // null for one thread alone
    int self_ = 0;
    std::int64_t told_ = Reservoir::unlimited;
    std::array<std::uint32_t, 4> keys_{};
    std::array<std::int64_t, 4> at_{};  // the next step of each table
    std::array<Plan, 4> plans_{};
    std::int64_t bound_ = 0;            // no unseen code is nearer
    std::int64_t key_weight_ = 0, n_found_ = 0;
    std::size_t table_ = 0;
    std::uint32_t key_ = 0;
    double scale_ = 0;
    std::uint8_t start_ = 0, limit_ = 254;
    alignas(64) std::uint8_t nibbles_[2 * 128 * 16];
};

}  // namespace

bool prune_run(const OrderedTables& on, const CodeQuery& ask, const std::uint8_t* query, const std::uint8_t* stale,
               double budget, double alone, Reservoir& nearest, double& spent) {
    spent = 0;
    if (ask.allowed || stale || on.tables.tables.size() < 2) alone = budget;
    return Run(on, ask, query, stale, nearest).search(budget, alone, spent);
}

}  // namespace cghash
