#include "rankings.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "parallel.hpp"

namespace cghash {
namespace {

using Key = std::uint64_t;

constexpr std::int64_t chunk_queries = 8;  // what one thread takes at a time, with one set of buffers
constexpr std::int64_t few = 24;           // keys that are compared with each other
constexpr int most_bits = 16;              // of a bucket's number: the counts should stay in cache

// 1/(t + 1) and 1 + … + 1/t, for t from 0.
struct Harmonic {
    std::vector<double> inverse, sum;
    explicit Harmonic(std::int64_t n) : inverse(static_cast<std::size_t>(n)), sum(static_cast<std::size_t>(n) + 1) {
        for (std::int64_t t = 0; t < n; ++t) sum[t + 1] = sum[t] + (inverse[t] = 1.0 / static_cast<double>(t + 1));
    }
    // 1/(t + 1) + … + 1/(t + m); short sums are added up, as differences of long ones cancel
    double between(std::int64_t t, std::int64_t m) const {
        if (m > few) return sum[t + m] - sum[t];
        return std::accumulate(inverse.begin() + t, inverse.begin() + t + m, 0.0);
    }
};

void sort_few(std::span<Key> keys) {
    for (std::size_t i = 1; i < keys.size(); ++i) {
        const Key key = keys[i];
        std::size_t j = i;
        for (; j > 0 && keys[j - 1] > key; --j) keys[j] = keys[j - 1];
        keys[j] = key;
    }
}

// Takes the tie groups of a query in order; a run of items that are all relevant or all not counts like a tie group.
class Counter {
   public:
    Counter(const RankTask& task, const Harmonic& harmonic, double* within)
        : cuts_(task.cuts), harmonic_(harmonic), within_(within), n_head_(task.n_head) {
        find_stop();
    }

    // m items, c of them relevant, none above `high`; all that follow are.
    void group(std::int64_t m, std::int64_t c, Key high) {
        if (c) precision_ += precision(start_, m, found_, c);
        if (start_ + m >= stop_) stop(m, c, high);
        start_ += m;
        found_ += c;
    }

    // The tie groups of these few keys, all that follow being above them. Only where the relevant ones stand matters.
    void few_keys(std::span<Key> others, std::span<Key> relevant) {
        sort_few(relevant);
        const auto m = static_cast<std::int64_t>(others.size() + relevant.size());
        if (start_ + m >= stop_) return each_group(others, relevant);
        std::int64_t c = 0;
        for (std::size_t j = 0; j < relevant.size(); j += static_cast<std::size_t>(c)) {
            const Key key = relevant[j];
            std::int64_t below = 0, equal = 0;
            for (const Key other : others) below += other < key, equal += other == key;
            for (c = 1; j + c < relevant.size() && relevant[j + c] == key;) ++c;
            const auto before = static_cast<std::int64_t>(j);
            precision_ += precision(start_ + below + before, c + equal, found_ + before, c);
        }
        start_ += m;
        found_ += static_cast<std::int64_t>(relevant.size());
    }

    double average_precision() const {
        return found_ ? precision_ / static_cast<double>(found_) : std::numeric_limits<double>::quiet_NaN();
    }
    Key head_high() const { return head_high_; }  // no item of the head is above it

   private:
    // Expected sum of the precisions at c relevant items among m tied ones, which start at t after r relevant ones
    // (McSherry and Najork, 2008)
    double precision(std::int64_t t, std::int64_t m, std::int64_t r, std::int64_t c) const {
        const double next = static_cast<double>(r + 1);
        if (m == 1) return next * harmonic_.inverse[t];
        const double S = harmonic_.between(t, m), size = static_cast<double>(m);
        const double own = static_cast<double>(c - 1) / (size - 1.0) * (size - static_cast<double>(t + 1) * S);
        return static_cast<double>(c) / size * (next * S + own);
    }

    void each_group(std::span<Key> others, std::span<Key> relevant) {
        sort_few(others);
        for (std::size_t i = 0, j = 0; i < others.size() || j < relevant.size();) {
            const Key key =
                std::min(i < others.size() ? others[i] : relevant[j], j < relevant.size() ? relevant[j] : others[i]);
            std::int64_t m = 0, c = 0;
            for (; i < others.size() && others[i] == key; ++i) ++m;
            for (; j < relevant.size() && relevant[j] == key; ++j) ++m, ++c;
            group(m, c, key);
        }
    }

    // What a group through a cut or the end of the head means for them.
    void stop(std::int64_t m, std::int64_t c, Key high) {
        const std::int64_t end = start_ + m;
        for (; next_ < cuts_.size() && cuts_[next_] <= end; ++next_)
            within_[next_] = static_cast<double>(found_) + static_cast<double>(cuts_[next_] - start_) /
                                                               static_cast<double>(m) * static_cast<double>(c);
        if (start_ < n_head_ && n_head_ <= end) head_high_ = high;
        start_ = end;
        find_stop();
        start_ -= m;
    }

    void find_stop() {
        stop_ = next_ < cuts_.size() ? cuts_[next_] : std::numeric_limits<std::int64_t>::max();
        if (start_ < n_head_) stop_ = std::min(stop_, n_head_);
    }

    std::span<const std::int64_t> cuts_;
    const Harmonic& harmonic_;
    double* within_;
    std::int64_t n_head_, start_ = 0, found_ = 0;
    std::int64_t stop_ = 0;  // the next cut or the end of the head, whichever is nearer
    std::size_t next_ = 0;
    double precision_ = 0.0;
    Key head_high_ = 0;
};

// Puts one query's keys into order, as far as the counter must see it. The relevant keys and the others lie apart.
class Orderer {
   public:
    explicit Orderer(std::int64_t n_items) {
        for (auto& side : sides_)
            for (auto& buffer : side) buffer.resize(static_cast<std::size_t>(n_items));
    }

    void order(std::span<const Key> keys, const std::int32_t* kinds, const std::uint8_t* relevant, Counter& counter) {
        std::int64_t n[2] = {0, 0};  // others, relevant
        Key* const sides[2] = {sides_[0][0].data(), sides_[1][0].data()};
        for (std::size_t i = 0; i < keys.size(); ++i) {
            const std::int64_t is_relevant = relevant[kinds[i]];
            sides[0][n[0]] = sides[1][n[1]] = keys[i];
            n[0] += 1 - is_relevant;
            n[1] += is_relevant;
        }
        counter_ = &counter;
        order({0, 0}, {n[0], n[1]}, 0, std::numeric_limits<Key>::max());
    }

   private:
    using Pair = std::array<std::int64_t, 2>;  // of the others and of the relevant
    using Counts = std::vector<std::array<std::uint32_t, 2>>;

    std::span<Key> keys_at(int side, const Pair& first, const Pair& n, int depth) {
        return std::span(sides_[side][depth % 2]).subspan(first[side], n[side]);
    }

    // Keys first.. of both sides, in the buffers of this depth.
    void order(const Pair& first, const Pair& n, int depth, Key high) {
        const std::int64_t m = n[0] + n[1];
        if (n[0] == 0 || n[1] == 0) {
            if (m) counter_->group(m, n[1], high);
            return;
        }
        const std::span<Key> keys[2] = {keys_at(0, first, n, depth), keys_at(1, first, n, depth)};
        if (m <= few) return counter_->few_keys(keys[0], keys[1]);
        Key low = keys[0][0], top = low;
        for (const auto& side : keys)
            for (const Key key : side) low = std::min(low, key), top = std::max(top, key);
        const int bits = std::min<int>(std::bit_width(static_cast<Key>(m)) - 2, most_bits);
        const int shift = std::max(0, static_cast<int>(std::bit_width(top - low)) - bits);
        if (levels_.size() <= static_cast<std::size_t>(depth)) levels_.resize(depth + 1);
        Counts counts = std::move(levels_[depth]);
        counts.assign(((top - low) >> shift) + 1, {0, 0});
        for (int side = 0; side < 2; ++side)
            for (const Key key : keys[side]) ++counts[(key - low) >> shift][side];
        if (shift == 0)
            for (std::size_t b = 0; b < counts.size(); ++b) {
                if (counts[b] != Counts::value_type{0, 0})
                    counter_->group(std::int64_t{counts[b][0]} + counts[b][1], counts[b][1], low + b);
            }
        else descend(keys, counts, first, depth, low, top, shift);
        levels_[depth] = std::move(counts);
    }

    // Spread the keys over the buckets, in the other buffers, and order each.
    void descend(const std::span<Key>* keys, Counts& counts, const Pair& first, int depth, Key low, Key top,
                 int shift) {
        for (int side = 0; side < 2; ++side) {
            std::uint32_t end = 0;
            for (auto& count : counts) count[side] = end += count[side];
            Key* const out = sides_[side][(depth + 1) % 2].data() + first[side];
            for (const Key key : keys[side]) out[--counts[(key - low) >> shift][side]] = key;  // ends become starts
        }
        for (std::size_t b = 0; b < counts.size(); ++b) {
            const bool last = b + 1 == counts.size();
            Pair from, n;
            for (int side = 0; side < 2; ++side) {
                const std::int64_t end = last ? static_cast<std::int64_t>(keys[side].size()) : counts[b + 1][side];
                from[side] = first[side] + counts[b][side];
                n[side] = end - counts[b][side];
            }
            order(from, n, depth + 1, last ? top : low + ((static_cast<Key>(b) + 1) << shift) - 1);
        }
    }

    std::vector<Key> sides_[2][2];  // others and relevant, two buffers each: depths take turns
    std::vector<Counts> levels_;    // of the buckets, one for each depth
    Counter* counter_ = nullptr;
};

struct Entry {
    std::int32_t group, kind;
    std::int64_t count;
};

// The first n_head items and all that tie with the last of them, where no such item's key is above `high`.
class Header {
   public:
    explicit Header(std::int64_t n_kinds) : counts_(static_cast<std::size_t>(n_kinds)) {}

    std::vector<Entry> entries(std::span<const Key> keys, const std::int32_t* kinds, std::int64_t n_head, Key high) {
        found_.clear();
        for (std::size_t i = 0; i < keys.size(); ++i)
            if (keys[i] <= high) found_.push_back({keys[i], kinds[i]});
        const auto cut = found_.begin() + (n_head - 1);
        std::nth_element(found_.begin(), cut, found_.end(), [](auto& a, auto& b) { return a.first < b.first; });
        const Key last = cut->first;
        // the nearer ones are fewer than n_head and are sorted; those of the last group may be many and are counted
        const auto nearer = std::partition(found_.begin(), found_.end(), [&](auto& f) { return f.first < last; });
        std::sort(found_.begin(), nearer);
        std::vector<Entry> entries;
        std::int32_t group = -1;
        for (auto f = found_.begin(); f != nearer; ++f) {
            const bool tied = f != found_.begin() && f->first == (f - 1)->first;
            if (!tied) ++group;
            if (tied && f->second == (f - 1)->second) ++entries.back().count;
            else entries.push_back({group, f->second, 1});
        }
        count_last(nearer, last, group + 1, entries);
        return entries;
    }

   private:
    using Found = std::vector<std::pair<Key, std::int32_t>>;

    void count_last(Found::const_iterator from, Key last, std::int32_t group, std::vector<Entry>& entries) {
        seen_.clear();
        for (auto f = from; f != found_.end(); ++f)
            if (f->first == last && counts_[f->second]++ == 0) seen_.push_back(f->second);
        std::sort(seen_.begin(), seen_.end());
        for (const auto kind : seen_) entries.push_back({group, kind, std::exchange(counts_[kind], 0)});
    }

    Found found_;
    std::vector<std::int64_t> counts_;  // (n_kinds,) zeros between queries
    std::vector<std::int32_t> seen_;
};

void check(const RankTask& task) {
    const auto n = static_cast<std::int64_t>(task.kinds.size());
    if (n < 1 || n > std::numeric_limits<std::int32_t>::max())
        throw std::invalid_argument("there must be 1 to 2^31 - 1 items");
    if (std::any_of(task.kinds.begin(), task.kinds.end(), [&](auto k) { return k < 0 || k >= task.n_kinds; }))
        throw std::invalid_argument("kinds must lie between 0 and the columns of relevant");
    if (std::any_of(task.relevant.begin(), task.relevant.end(), [](auto r) { return r > 1; }))
        throw std::invalid_argument("relevant must be 0 and 1");
    if (!std::is_sorted(task.cuts.begin(), task.cuts.end()) ||
        (!task.cuts.empty() && (task.cuts.front() < 1 || task.cuts.back() > n)))
        throw std::invalid_argument("cuts must ascend and lie between 1 and the number of items");
    if (task.n_head < 0 || task.n_head > n)
        throw std::invalid_argument("n_head must lie between 0 and the number of items");
}

Ranked join(Ranked ranked, const std::vector<std::vector<Entry>>& heads) {
    ranked.first.push_back(0);
    for (const auto& head : heads) {
        for (const auto& entry : head) {
            ranked.group.push_back(entry.group);
            ranked.kind.push_back(entry.kind);
            ranked.count.push_back(entry.count);
        }
        ranked.first.push_back(static_cast<std::int64_t>(ranked.group.size()));
    }
    return ranked;
}

// `keys_of(query, buffer)` gives the keys of a query's items, in the buffer or elsewhere.
template <class KeysOf>
Ranked rank(const RankTask& task, int n_threads, KeysOf keys_of) {
    const auto n = static_cast<std::int64_t>(task.kinds.size());
    const Harmonic harmonic(n);
    Ranked ranked;
    ranked.average_precision.resize(static_cast<std::size_t>(task.n_queries));
    ranked.within.resize(static_cast<std::size_t>(task.n_queries) * task.cuts.size());
    std::vector<std::vector<Entry>> heads(static_cast<std::size_t>(task.n_queries));
    parallel_chunks((task.n_queries + chunk_queries - 1) / chunk_queries, n_threads, [&](std::int64_t chunk) {
        Orderer orderer(n);
        Header header(task.n_kinds);
        std::vector<Key> buffer;
        const auto last = std::min((chunk + 1) * chunk_queries, task.n_queries);
        for (auto query = chunk * chunk_queries; query < last; ++query) {
            const std::span<const Key> keys = keys_of(query, buffer);
            Counter counter(task, harmonic, ranked.within.data() + query * static_cast<std::int64_t>(task.cuts.size()));
            orderer.order(keys, task.kinds.data(), task.relevant.data() + query * task.n_kinds, counter);
            ranked.average_precision[query] = counter.average_precision();
            if (task.n_head) heads[query] = header.entries(keys, task.kinds.data(), task.n_head, counter.head_high());
        }
    });
    return join(std::move(ranked), heads);
}

// What each value of each byte adds to a distance, (n_bytes, 256), in the largest unit that all weights are multiples
// of: equal weights then give the least keys, and a bucket for each.
std::vector<Key> byte_tables(std::span<const std::int64_t> weights) {
    std::int64_t unit = 0, total = 0;
    for (const auto w : weights) {
        if (w < 0 || w >= (std::int64_t{1} << 53) - total)
            throw std::invalid_argument("weights must be 0 or more, and their sum below 2^53");
        unit = std::gcd(unit, w);
        total += w;
    }
    std::vector<Key> tables(weights.size() / 8 * 256);
    for (std::size_t byte = 0; byte < weights.size() / 8; ++byte)
        for (unsigned value = 1; value < 256; ++value) {
            const auto bit = static_cast<unsigned>(std::countr_zero(value));
            const Key rest = tables[256 * byte + (value & (value - 1))];
            tables[256 * byte + value] =
                rest + static_cast<Key>(weights[8 * byte + bit] / std::max<std::int64_t>(unit, 1));
        }
    return tables;
}

// n_bytes as a constant lets the loop over the bytes of the usual codes unroll.
template <std::int64_t fixed_bytes>
void distances(const std::uint8_t* query, std::span<const std::uint8_t> items, const Key* tables,
               std::int64_t any_bytes, std::vector<Key>& out) {
    const std::int64_t n_bytes = fixed_bytes ? fixed_bytes : any_bytes;
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::uint8_t* code = items.data() + static_cast<std::int64_t>(i) * n_bytes;
        Key sum = 0;
        for (std::int64_t j = 0; j < n_bytes; ++j) sum += tables[256 * j + (query[j] ^ code[j])];
        out[i] = sum;
    }
}

}  // namespace

Ranked rank_keys(const RankTask& task, std::span<const std::uint64_t> keys, int n_threads) {
    check(task);
    const std::size_t n = task.kinds.size();
    if (keys.size() != static_cast<std::size_t>(task.n_queries) * n)
        throw std::invalid_argument("keys must have a row for each query and a column for each item");
    return rank(task, n_threads, [&](std::int64_t query, std::vector<Key>&) {
        return keys.subspan(static_cast<std::size_t>(query) * n, n);
    });
}

Ranked rank_codes(const RankTask& task, std::span<const std::uint8_t> queries, std::span<const std::uint8_t> items,
                  std::span<const std::int64_t> weights, int n_threads) {
    check(task);
    const auto n_bytes = static_cast<std::int64_t>(weights.size()) / 8;
    if (weights.size() % 8 || queries.size() != static_cast<std::size_t>(task.n_queries * n_bytes) ||
        items.size() != task.kinds.size() * static_cast<std::size_t>(n_bytes))
        throw std::invalid_argument("codes must have a row for each query and item, of a byte for 8 weights");
    const std::vector<Key> tables = byte_tables(weights);
    const auto compute = n_bytes == 4 ? distances<4> : n_bytes == 8 ? distances<8> : distances<0>;
    return rank(task, n_threads, [&](std::int64_t query, std::vector<Key>& buffer) {
        buffer.resize(task.kinds.size());
        compute(queries.data() + query * n_bytes, items, tables.data(), n_bytes, buffer);
        return std::span<const Key>(buffer);
    });
}

}  // namespace cghash
