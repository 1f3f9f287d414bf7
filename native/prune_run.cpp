#include "prune_run.hpp"

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <system_error>
#include <thread>

#include "key_cursor.hpp"
#include "shortlist.hpp"

namespace cghash {
namespace {

// What two threads that share the tables of one query tell each other.
struct Exchange {
    std::atomic<std::int64_t> limit{Reservoir::unlimited};
    std::array<std::atomic<std::int64_t>, 2> bounds{};
    std::atomic<bool> proven{false}, abandoned{false};
};

// How a way through tables ended: no unseen code can be near enough, the budget was spent or would be, or no keys are
// left in order.
enum class End { proven, spent, hopeless, no_keys };

// One query under way, in some of the tables.
class Run {
   public:
    Run(const OrderedTables& on, const CodeQuery& ask, const std::uint8_t* query, const std::uint8_t* stale,
        Reservoir& nearest)
        : on_(on),
          lookups_(on.lookups),
          ask_(ask),
          stale_(stale),
          nearest_(nearest),
          shortlist_(ask.k),
          eager_(ask.allowed || stale) {
        on.tables.bits.apply(query, query_);
        cursors_.reserve(most_tables);
        for (std::size_t t = 0; t < on.tables.tables.size(); ++t) {
            mine_.push_back(t);
            cursors_.emplace_back(on, t, query_);
        }
        for (auto& cursor : cursors_) cursor.begin();
        std::memset(nibbles_, 0, lookups_.bucket_size());
        follow();
    }

    // Go through all tables; false when that ended without proof.
    bool search(Effort& effort) {
        auto& [budget, alone, check, spent] = effort;
        check_ = {check, 0, 0};
        nearest_.tighten();
        for (const auto t : mine_)
            for (std::int64_t step = 0; step < ahead; ++step) cursors_[t].lines(step).ask_all();
        if (!eager_ && ask_.k <= few) probe();
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

    static constexpr std::int64_t ahead = 3;   // keys whose codes are on their way
    static constexpr std::int64_t few = 32;    // nearest, that a probe may find
    static constexpr std::int64_t tries = 16;  // keys, one of which a probe finds codes of

    // How far the k-th nearest is at most, by the codes beside which the query would lie in the first table: while no
    // limit is known, every code is near enough for a closer look.
    void probe() {
        const auto& table = on_.tables.tables.front();
        auto& cursor = cursors_.front();
        std::int64_t step = 0;
        while (step + 1 < std::min(tries, cursor.n_steps()) && cursor.step(step).bucket.empty()) ++step;
        const auto bucket = cursor.step(step).bucket;
        if (bucket.empty()) return;
        const auto key_weight = table.stored_apart(cursor.mask(step), cursor.weight(step), lookups_);
        const auto group = table.find_group(bucket, query_);
        const auto first = std::max<std::int64_t>((group - 1) * group_lanes, bucket.first);
        const auto last = std::min<std::int64_t>((group + 2) * group_lanes, bucket.last);
        Shortlist near(ask_.k);
        for (auto place = first; place < last; ++place) {
            const auto* code_bytes = table.at(place);
            const auto distance = distance_of(table, key_weight, code_bytes);
            if (distance < near.limit()) near.add({distance, 0, 0, 0, table.n_rows(code_bytes)});
        }
        told_ = near.limit();
        follow();
    }

    // Where no keys are left, the other thread goes on with its own.
    void visit_half(double budget, double& spent) {
        const auto end = visit_all(budget, spent);
        if (end == End::spent) shared_->abandoned = true;
        if (end == End::proven && !shared_->abandoned) shared_->proven = true;
    }

    End visit_all(double budget, double& spent) {
        for (const auto t : mine_) cursors_[t].plan(wanted());
        for (;;) {
            table_ = mine_.front();
            for (const auto t : mine_)
                if (cursors_[t].slope() > cursors_[table_].slope()) table_ = t;
            auto& cursor = cursors_[table_];
            if (!cursor.has_more()) return End::no_keys;
            while (cursor.is_planned()) {
                if (spent > budget) return End::spent;
                visit(cursor, spent);
                bound_ += cursor.advance();
                if (cursor.has_shown_all() || is_over()) return End::proven;
            }
            if (shortlist_.tighten() | (eager_ && nearest_.tighten())) follow();
            if (is_over()) return End::proven;
            if (spent >= check_.next && seems_to_need(spent) > budget) return End::hopeless;
            cursor.plan(wanted());
        }
    }

    // What the search will have cost at its end, if the cost goes on to grow with the bound as it did since the last
    // check: by a factor for each step of the bound. It grows less, as the number of masks does.
    double seems_to_need(double spent) {
        const auto left = static_cast<double>(limit() - bound_), won = static_cast<double>(bound_ - check_.bound);
        const double needed = check_.spent > 0 ? spent * std::pow(spent / check_.spent, left / std::max(won, 1.0)) : 0;
        check_ = {2 * spent, spent, bound_};
        return needed;
    }

    // What the bound must still be raised by.
    double wanted() const { return static_cast<double>(limit() - bound_) + 1; }

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

    // Look at the codes of the next key of a table.
    void visit(KeyCursor& cursor, double& spent) {
        const auto& table = on_.tables.tables[table_];
        const Lines soon = cursor.lines(ahead);
        const auto& [bucket, cost] = cursor.step(cursor.at());
        spent += cost;
        if (bucket.empty()) return Lines(soon).ask_all();
        key_ = cursor.key();
        key_weight_ = table.stored_apart(cursor.mask(cursor.at()), cursor.weight(cursor.at()), lookups_);
        set_start();
        set_sheet();
        const BucketQuery query{sheets_[table_], table.n_scanned(), table.n_stored(), &start_, &limit_};
        lookups_.kernels.scan_bucket({table.groups.values.data(), bucket.first, bucket.last, soon}, query, survivors,
                                     this);
        spent += on_.costs.found * static_cast<double>(n_found_);
        n_found_ = 0;
    }

    static void survivors(void* context, const std::uint8_t* group, std::int64_t number, std::uint64_t lanes) {
        auto& self = *static_cast<Run*>(context);
        const auto size = self.on_.tables.tables[self.table_].group_size();
        for (; lanes; lanes &= lanes - 1) {
            const int lane = std::countr_zero(lanes);
            self.look(group + lane / group_lanes * size + lane % group_lanes, number * group_lanes + lane);
        }
    }

    void look(const std::uint8_t* code_bytes, std::int64_t place) {
        const auto& table = on_.tables.tables[table_];
        const auto distance = distance_of(table, key_weight_, code_bytes);
        if (distance > limit()) return;
        std::uint8_t code[most_pruned_bytes];
        table.read(key_, place, code);
        for (std::size_t t = 0; t < cursors_.size(); ++t)  // by another table before?
            if (t != table_ && cursors_[t].has_shown(code, lookups_)) return;
        ++n_found_;
        if (table_ && !eager_) on_.tables.ask_for_place(code);
        if (eager_
                ? take(rows_of(code, place), distance)
                : shortlist_.add({distance, key_, static_cast<std::uint32_t>(place), table_, table.n_rows(code_bytes)}))
            follow();
    }

    // Of a code whose key adds so much.
    std::int64_t distance_of(const PruneTable& table, std::int64_t key_weight, const std::uint8_t* code_bytes) const {
        auto distance = key_weight;
        for (int j = 0; j < table.width(); ++j)
            distance += lookups_.byte_weight(table.rest[j], query_[table.rest[j]] ^ code_bytes[group_lanes * j]);
        return distance;
    }

    std::span<const std::uint32_t> rows_of(const std::uint8_t* code, std::int64_t place) const {
        if (table_) on_.tables.find_places(code, 1, &place);
        return place < 0 ? std::span<const std::uint32_t>{} : on_.tables.rows_at(place);
    }

    // Offer the rows of a code; true when the limit has fallen.
    bool take(std::span<const std::uint32_t> rows, std::int64_t distance) {
        bool fell = false;
        std::int64_t offered = 0;
        for (const std::int64_t row : rows) {
            if (row >= on_.tables.n_codes || !ask_.allows(row) || (stale_ && stale_[row / 8] >> (row % 8) & 1))
                continue;
            fell |= nearest_.offer({distance, ask_.id(row)});
            if (++offered >= ask_.k) break;  // rows are by id: no later one can be among the k nearest
        }
        return fell;
    }

    // Offer the rows of what is on short lists; two threads may both have found a code.
    bool resolve(std::vector<Shortlist::Entry> entries) {
        std::erase_if(entries, [this](const auto& near) { return near.distance > limit(); });
        std::vector<std::pair<std::int64_t, std::int64_t>> found;  // distance, place
        found.reserve(entries.size());
        for (std::size_t begun = 0; begun < entries.size(); begun += PruneTables::at_once)
            find_places(
                std::span(entries).subspan(begun, std::min<std::size_t>(PruneTables::at_once, entries.size() - begun)),
                found);
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        for (const auto& near : found) on_.tables.ask_for_marks(near.second);
        constexpr std::size_t ahead = 8;
        std::array<std::span<const std::uint32_t>, ahead> rows;
        for (std::size_t i = 0; i < found.size() + ahead; ++i) {  // the nearest first: then few enter
            if (i >= ahead) take(rows[i % ahead], found[i - ahead].first);
            if (i >= found.size()) continue;
            rows[i % ahead] = on_.tables.rows_at(found[i].second);
            prefetch(rows[i % ahead].data());
        }
        return true;
    }
    void find_places(std::span<const Shortlist::Entry> entries,
                     std::vector<std::pair<std::int64_t, std::int64_t>>& found) const {
        std::uint8_t codes[PruneTables::at_once * most_pruned_bytes];
        std::array<std::int64_t, PruneTables::at_once> places;
        int n = 0;
        for (const auto& near : entries)
            if (near.table) on_.tables.tables[near.table].read(near.key, near.place, codes + most_pruned_bytes * n++);
        on_.tables.find_places(codes, n, places.data());
        n = 0;
        for (const auto& near : entries) {
            const std::int64_t place = near.table ? places[n++] : near.place;
            if (place < 0) continue;  // in tables that nobody has verified
            on_.tables.ask_for_marked(place);
            found.emplace_back(near.distance, place);
        }
    }

    std::int64_t limit() const { return std::min({nearest_.limit(), shortlist_.limit(), told_}); }

    // Let the tables and their limit follow the reservoir's limit.
    void follow() {
        const auto limit = this->limit();
        if (limit == Reservoir::unlimited) return;
        if (shared_) tell(limit);
        const double wanted = full_scale / std::max(static_cast<double>(limit), 0.5);
        if (wanted > refill * scale_) {
            lookups_.fill_bucket(query_, scale_ = wanted, nibbles_);
            set_sheet();
        }
        limit_ = static_cast<std::uint8_t>(limit_of(limit, scale_));
        set_start();
    }
    void tell(std::int64_t limit) {
        auto known = shared_->limit.load(std::memory_order_relaxed);
        while (limit < known && !shared_->limit.compare_exchange_weak(known, limit, std::memory_order_relaxed)) {
        }
    }
    void set_start() {
        start_ =
            static_cast<std::uint8_t>(std::min(static_cast<double>(key_weight_) * scale_ * (1.0 - 0x1p-20), 255.0));
    }

    // Let the tables of nibbles lie as the codes of the table under way do.
    void set_sheet() {
        if (sheet_scales_[table_] == scale_) return;
        sheet_scales_[table_] = scale_;
        const auto& rest = on_.tables.tables[table_].rest;
        std::uint8_t* sheet = sheets_[table_];
        if (rest.size() % 4) std::memset(sheet + rest.size() / 4 * 128, 0, 128);
        for (std::size_t j = 0; j < rest.size(); ++j) {
            std::memcpy(sheet + j / 4 * 128 + j % 4 * 16, nibbles_ + 32 * rest[j], 16);
            std::memcpy(sheet + j / 4 * 128 + j % 4 * 16 + 64, nibbles_ + 32 * rest[j] + 16, 16);
        }
    }
    const OrderedTables& on_;
    const Lookups& lookups_;
    const CodeQuery& ask_;
    const std::uint8_t* stale_;
    std::uint8_t query_[most_pruned_bytes];  // its bits in the tables' order
    Reservoir& nearest_;
    Shortlist shortlist_;
    bool eager_;                     // take the rows of a code at once: not each has one that counts
    std::vector<std::size_t> mine_;  // the tables it goes through
    Exchange* shared_ = nullptr;     // null for one thread alone
    int self_ = 0;
    std::int64_t told_ = Reservoir::unlimited;
    std::vector<KeyCursor> cursors_;  // of each table
    std::int64_t bound_ = 0;          // no unseen code is nearer
    std::int64_t key_weight_ = 0, n_found_ = 0;
    std::size_t table_ = 0;
    std::uint32_t key_ = 0;
    struct Check {
        double next, spent;  // when the next one is, and what was spent at the last
        std::int64_t bound;
    } check_{};
    double scale_ = 0;
    std::uint8_t start_ = 0, limit_ = 254;
    std::array<double, most_tables> sheet_scales_{-1, -1, -1, -1};
    alignas(64) std::uint8_t nibbles_[2 * most_pruned_bytes * 16];  // two tables for each byte of a code
    alignas(64)
        std::uint8_t sheets_[most_tables][2 * most_pruned_bytes * 16];  // the same, in the order of each table's groups
};

}  // namespace

bool prune_run(const OrderedTables& on, const CodeQuery& ask, const std::uint8_t* query, const std::uint8_t* stale,
               Effort& effort, Reservoir& nearest) {
    effort.spent = 0;
    if (ask.allowed || stale || on.tables.tables.size() < 2) effort.alone = effort.budget;
    return Run(on, ask, query, stale, nearest).search(effort);
}

}  // namespace cghash
