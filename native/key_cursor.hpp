// A query's way through the keys of one table, the nearest first: where their codes are, and what they cost.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "ordered_tables.hpp"
#include "prefetch.hpp"

namespace cghash {

class KeyCursor {
   public:
    struct Step {
        Bucket bucket;
        float cost;
    };

    KeyCursor(const OrderedTables& on, std::size_t number, const std::uint8_t* query)
        : table_(&on.tables.tables[number]),
          order_(&on.orders[number]),
          costs_(&on.costs),
          key_(table_->key_of(query)) {
        for (std::int64_t step = 0; step < 2 * window; ++step) ask_for_word(step);
    }
    // To be called once before anything else, when the words that were asked for may have come.
    void begin() {
        for (std::int64_t step = 0; step < window; ++step) find_number(step);
    }

    std::int64_t at() const { return at_; }
    std::int64_t n_steps() const { return order_->size(); }
    bool has_more() const { return at_ < order_->size(); }
    bool has_shown_all() const { return !has_more() && order_->whole; }
    // Steps after the last are as far as the last.
    std::int64_t weight(std::int64_t step) const { return order_->weights[std::min(step, order_->size() - 1)]; }
    std::uint32_t mask(std::int64_t step) const { return order_->masks[step]; }
    std::uint32_t key() const { return key_ ^ mask(at_); }
    const Step& step(std::int64_t number) {
        for (; read_ <= number; ++read_) {
            ask_for_word(read_ + 2 * window);
            find_number(read_ + window);
            const auto bucket = table_->bucket(numbers_[read_ % kept]);
            steps_[read_ % kept] = {bucket, static_cast<float>(costs_->of(bucket))};
        }
        return steps_[number % kept];
    }
    // Whether a code was among those of earlier steps.
    bool has_shown(const std::uint8_t* code, const Lookups& lookups) const {
        if (!at_) return false;
        const auto mask = key_ ^ table_->key_of(code);
        return order_->before(table_->key_weight(mask, lookups), mask, at_);
    }

    // To the next step; what the distance of unseen codes grows by.
    std::int64_t advance() {
        ++at_;
        return weight(at_) - weight(at_ - 1);
    }

    // Plan the next steps, those that raise the bound most for what they cost; to raise it by more than `most` is of no use.
    void plan(double most) {
        // the first keys hold the most codes and are weighed one by one; later ones are much alike
        constexpr std::int64_t few = 32;
        const auto n = order_->size(), before = weight(at_);
        const auto last = std::min(n, at_ + window + 1);
        planned_ = at_;
        double cost = 0, best_gain = -1, best_cost = 1;
        for (auto number = at_; number < n; ++number) {
            if (number >= last && (best_gain > 0 || number - at_ > 4 * window)) break;  // the latter: weights of 0
            cost += step(number).cost;
            const bool whole = number + 1 == n && order_->whole;
            const double gain = whole ? most : std::min(most, static_cast<double>(weight(number + 1) - before));
            if (gain * best_cost > best_gain * cost || at_ >= few) {
                best_gain = gain;
                best_cost = cost;
                planned_ = number + 1;
            }
            if (gain >= most) break;  // more steps cost more for no more
        }
        slope_ = best_gain / best_cost;
    }
    bool is_planned() const { return at_ < planned_; }
    double slope() const { return slope_; }

    // Where the first codes of the key after some others are.
    Lines lines(std::int64_t ahead) {
        if (at_ + ahead >= order_->size()) return {};
        const auto bucket = step(at_ + ahead).bucket;
        if (bucket.empty()) return {};
        const std::uint8_t* p = table_->groups.values.data() + bucket.first_group() * table_->group_size();
        return {p, p + std::min(bucket.n_groups(), BucketRange::asked(table_->n_stored())) * table_->group_size()};
    }

   private:
    static constexpr std::int64_t window = 16;  // keys that are planned at once
    static constexpr std::int64_t kept = 128;   // steps that were read, at least as many as a plan looks at

    // Have it ready whether a key has codes, and where they begin.
    void ask_for_word(std::int64_t step) const {
        if (step >= order_->size()) return;
        order_->list(step + 1);
        table_->keys.ask_for_word(key_ ^ order_->masks[step]);
    }
    void find_number(std::int64_t step) {
        if (step >= order_->size()) return;
        const auto number = numbers_[step % kept] = table_->keys.number_of(key_ ^ order_->masks[step]);
        table_->keys.ask_for_start(number);
    }

    const PruneTable* table_;
    MaskOrder* order_;
    const PruneCosts* costs_;
    std::uint32_t key_;
    std::int64_t at_ = 0, read_ = 0, planned_ = 0;
    double slope_ = 0;
    std::array<Step, kept> steps_;
    std::array<std::uint32_t, kept> numbers_;  // of keys in the directory, `window` steps ahead of those that were read
};

}  // namespace cghash
