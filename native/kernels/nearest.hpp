// The rare values of a block of products that enter a list of nearest items.
//
// A list is sorted by (score, id), its last entry is its threshold, and a list of no places has no threshold to pass.
//
// Products over some axes give scores that are too low; what lies below a threshold even so is multiplied over more axes,
// and what is left then over all features.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "../kernel_table.hpp"
#include "../prefetch.hpp"
#include "passes.hpp"
#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace CGHASH_ISA {
using cghash::NearestBlock;
using cghash::NearestItems;
using cghash::NearestList;

// Lanes: values half - dots, and one bit for each that lies below the threshold of its kind.
struct OneLane {
    static constexpr int width = 1;
    using Floats = float;
    using Kinds = bool;  // is it relevant?
    static Floats load(const float* p) { return *p; }
    static Floats splat(float a) { return a; }
    static Kinds same(const std::int32_t* labels, std::int32_t label) { return *labels == label; }
    static Kinds marked(const std::uint8_t* marks) { return *marks != 0; }
    static unsigned below(Floats half, Floats dots, Floats near, Floats far, Kinds relevant) {
        return half - dots < (relevant ? near : far);
    }
};

#if defined(__AVX512F__)
struct Lanes {
    static constexpr int width = 16;
    using Floats = __m512;
    using Kinds = __mmask16;
    static Floats load(const float* p) { return _mm512_loadu_ps(p); }
    static Floats splat(float a) { return _mm512_set1_ps(a); }
    static Kinds same(const std::int32_t* labels, std::int32_t label) {
        return _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(labels), _mm512_set1_epi32(label));
    }
    static Kinds marked(const std::uint8_t* marks) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(marks));
        return _mm_test_epi8_mask(bytes, bytes);
    }
    static unsigned below(Floats half, Floats dots, Floats near, Floats far, Kinds relevant) {
        return _mm512_cmp_ps_mask(_mm512_sub_ps(half, dots), _mm512_mask_blend_ps(relevant, far, near), _CMP_LT_OQ);
    }
};
#elif defined(__AVX2__)
struct Lanes {
    static constexpr int width = 8;
    using Floats = __m256;
    using Kinds = __m256i;
    static Floats load(const float* p) { return _mm256_loadu_ps(p); }
    static Floats splat(float a) { return _mm256_set1_ps(a); }
    static Kinds same(const std::int32_t* labels, std::int32_t label) {
        return _mm256_cmpeq_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(labels)),
                                  _mm256_set1_epi32(label));
    }
    static Kinds marked(const std::uint8_t* marks) {
        const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(marks));
        return _mm256_cmpgt_epi32(_mm256_cvtepu8_epi32(bytes), _mm256_setzero_si256());
    }
    static unsigned below(Floats half, Floats dots, Floats near, Floats far, Kinds relevant) {
        const __m256 threshold = _mm256_blendv_ps(far, near, _mm256_castsi256_ps(relevant));
        return _mm256_movemask_ps(_mm256_cmp_ps(_mm256_sub_ps(half, dots), threshold, _CMP_LT_OQ));
    }
};
#else
using Lanes = OneLane;
#endif

// What a score of an item from first_other on must lie below to enter the item's list: the last score there, or just
// above it where an equal one may come with a lower id
inline float threshold(const NearestList& list, std::int64_t item, std::int64_t first_other) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    if (!list.size) return -infinity;
    const std::int64_t last = (item + 1) * list.size - 1;
    return first_other < list.ids[last] ? std::nextafter(list.scores[last], infinity) : list.scores[last];
}

// Put `id` in its place in the item's list, unless it is the item itself
inline void offer(const NearestList& list, std::int64_t item, float score, std::int64_t id) {
    if (!list.size || id == item) return;
    float* scores = list.scores + item * list.size;
    std::int32_t* ids = list.ids + item * list.size;
    auto before = [&](std::int64_t place) {
        return score < scores[place] || (score == scores[place] && id < ids[place]);
    };
    std::int64_t place = list.size - 1;
    if (!before(place)) return;
    for (; place > 0 && before(place - 1); --place) {
        scores[place] = scores[place - 1];
        ids[place] = ids[place - 1];
    }
    scores[place] = score;
    ids[place] = static_cast<std::int32_t>(id);
}

// x·y in floats
inline float product(const float* x, const float* y, std::int64_t d) {
    F8 sum[8]{};
    std::int64_t f = 0;
    for (; f + 64 <= d; f += 64)
        for (int part = 0; part < 8; ++part) sum[part] += load_f8(x + f + 8 * part) * load_f8(y + f + 8 * part);
    for (; f + 16 <= d; f += 16)
        for (int part = 0; part < 2; ++part) sum[part] += load_f8(x + f + 8 * part) * load_f8(y + f + 8 * part);
    float tail = 0.0f;
    for (; f < d; ++f) tail += x[f] * y[f];
    const F8 low = (sum[0] + sum[2]) + (sum[4] + sum[6]), high = (sum[1] + sum[3]) + (sum[5] + sum[7]);
    return sum_f8(low + high) + tail;
}

// Pairs of a block that lie below a threshold, to be looked at together: their items are fetched ahead.
struct Pair {
    std::int64_t item, other;
    float dots, limit;  // its product, and what its score must lie below
    bool relevant;
};

struct Pairs {
    static constexpr int most = 64, ahead = 4;
    Pair pairs[most + 16];
    int n = 0;
    bool full() const { return n >= most; }
    void add(const Pair& pair) { pairs[n++] = pair; }
    const Pair& after(int at, int steps) const { return pairs[std::min(at + steps, n - 1)]; }
};

inline void fetch(const float* row, std::int64_t n) {
    for (std::int64_t f = 0; f < n; f += 16) cghash::prefetch(row + f);
}

// How the products of a block become scores: as they are, or after a look at more axes and at the whole items.
struct Whole {
    const NearestBlock& block;
    const float* half() const { return block.half; }
    float raised(float threshold, std::int64_t) const { return threshold; }
    void settle(Pairs&) const {}
    float score(const Pairs& pairs, int at) const { return block.half[pairs.pairs[at].other] - pairs.pairs[at].dots; }
};

template <bool by_rows>  // pairs that are looked at together share their item, else the other
struct Leading {
    const NearestBlock& block;
    const NearestItems& finish = *block.finish;
    const float* half() const { return finish.low; }
    float raised(float threshold, std::int64_t item) const {
        return std::isinf(threshold) ? threshold : threshold + std::abs(threshold) * 0x1p-21f + finish.extra[item];
    }
    bool below(const Pair& pair) const {
        const std::int64_t m = finish.n_more;
        const float rest = finish.rest[pair.item] * finish.rest[pair.other];
        const float more = product(finish.more + pair.item * m, finish.more + pair.other * m, m);
        return finish.low[pair.other] - (pair.dots - rest + more) < pair.limit;
    }
    // Keep the pairs that lie below even by more axes
    void settle(Pairs& pairs) const {
        const std::int64_t m = finish.n_more;
        int n = 0;
        for (int at = 0; at < pairs.n; ++at) {
            const Pair& next = pairs.after(at, Pairs::ahead);
            fetch(finish.more + (by_rows ? next.other : next.item) * m, m);
            const Pair pair = pairs.pairs[at];
            pairs.pairs[n] = pair;
            n += below(pair);
        }
        pairs.n = n;
        *finish.n_finished += n;
    }
    float score(const Pairs& pairs, int at) const {
        const std::int64_t d = finish.n_features;
        const Pair &pair = pairs.pairs[at], &next = pairs.after(at, 1);
        fetch(finish.items + (by_rows ? next.other : next.item) * d, d);
        return block.half[pair.other] - product(finish.items + pair.item * d, finish.items + pair.other * d, d);
    }
};

// Offer what is left of the pairs to the lists; `seen` is told of each
template <class Scores, class Seen>
inline void offer_all(const NearestBlock& block, const Scores& scores, Pairs& pairs, Seen seen) {
    scores.settle(pairs);
    for (int at = 0; at < pairs.n; ++at) {
        const Pair& pair = pairs.pairs[at];
        offer(pair.relevant ? block.near : block.far, pair.item, scores.score(pairs, at), pair.other);
        seen(pair);
    }
    pairs.n = 0;
}

// Is column j of the block relevant to row i?
inline bool is_relevant(const NearestBlock& block, std::int64_t i, std::int64_t j) {
    if (block.relevant) return block.relevant[i * block.n_columns + j] != 0;
    return block.labels[block.row + i] == block.labels[block.column + j];
}

template <class L, bool by_label>
inline typename L::Kinds kinds(const NearestBlock& block, std::int64_t i, std::int64_t j) {
    if constexpr (by_label) return L::same(block.labels + block.column + j, block.labels[block.row + i]);
    else return L::marked(block.relevant + i * block.n_columns + j);
}

// Offer the columns from j to the list of row i, as many whole vectors as there are; where it stopped
template <class L, bool by_label, class Scores>
inline std::int64_t row_span(const NearestBlock& block, const Scores& scores, Pairs& pairs, std::int64_t i,
                             std::int64_t j) {
    const std::int64_t item = block.row + i;
    const float* dots = block.dots + i * block.n_columns;
    const float* half = scores.half() + block.column;
    float near, far;
    auto look = [&] {
        near = scores.raised(threshold(block.near, item, block.column), item);
        far = scores.raised(threshold(block.far, item, block.column), item);
    };
    look();
    for (; j + L::width <= block.n_columns; j += L::width) {
        unsigned hits = L::below(L::load(half + j), L::load(dots + j), L::splat(near), L::splat(far),
                                 kinds<L, by_label>(block, i, j));
        if (!hits) continue;
        for (; hits; hits &= hits - 1) {
            const std::int64_t column = j + std::countr_zero(hits);
            const bool relevant = is_relevant(block, i, column);
            pairs.add({item, block.column + column, dots[column], relevant ? near : far, relevant});
        }
        if (pairs.full()) {
            offer_all(block, scores, pairs, [](const Pair&) {});
            look();
        }
    }
    return j;
}

template <bool by_label, class Scores>
inline void rows_of(const NearestBlock& block) {
    const Scores scores{block};
    Pairs pairs;
    for (std::int64_t i = 0; i < block.n_rows; ++i) {
        const std::int64_t j = row_span<Lanes, by_label>(block, scores, pairs, i, 0);
        row_span<OneLane, by_label>(block, scores, pairs, i, j);
        offer_all(block, scores, pairs, [](const Pair&) {});
    }
}

// The thresholds of some columns' lists.
template <class Scores>
struct ColumnThresholds {
    const NearestBlock& block;
    const Scores& scores;
    std::int64_t first;  // column
    float near[cghash::nearest_columns], far[cghash::nearest_columns];
    void look(std::int64_t column) {
        const std::int64_t item = block.column + column;
        near[column - first] = scores.raised(threshold(block.near, item, block.row), item);
        far[column - first] = scores.raised(threshold(block.far, item, block.row), item);
    }
    void offer_all(Pairs& pairs) {
        CGHASH_ISA::offer_all(block, scores, pairs, [this](const Pair& pair) { look(pair.item - block.column); });
    }
};

// Offer row i to the lists of the columns from j to last
template <class L, bool by_label, class Scores>
inline std::int64_t column_span(const NearestBlock& block, Pairs& pairs, ColumnThresholds<Scores>& limits,
                                std::int64_t i, std::int64_t j, std::int64_t last) {
    const std::int64_t other = block.row + i, first = limits.first;
    const float* dots = block.dots + i * block.n_columns;
    const float half = limits.scores.half()[other];
    for (; j + L::width <= last; j += L::width) {
        unsigned hits = L::below(L::splat(half), L::load(dots + j), L::load(limits.near + j - first),
                                 L::load(limits.far + j - first), kinds<L, by_label>(block, i, j));
        for (; hits; hits &= hits - 1) {
            const std::int64_t column = j + std::countr_zero(hits);
            const bool relevant = is_relevant(block, i, column);
            const float limit = (relevant ? limits.near : limits.far)[column - first];
            pairs.add({block.column + column, other, dots[column], limit, relevant});
        }
        if (pairs.full()) limits.offer_all(pairs);
    }
    return j;
}

template <bool by_label, class Scores>
inline void columns_of(const NearestBlock& block, std::int64_t first, std::int64_t last) {
    const Scores scores{block};
    Pairs pairs;
    ColumnThresholds<Scores> limits{block, scores, first, {}, {}};
    for (std::int64_t j = first; j < last; ++j) limits.look(j);
    for (std::int64_t i = 0; i < block.n_rows; ++i) {
        const std::int64_t j = column_span<Lanes, by_label>(block, pairs, limits, i, first, last);
        column_span<OneLane, by_label>(block, pairs, limits, i, j, last);
    }
    limits.offer_all(pairs);
}

template <bool by_label, class RowScores, class ColumnScores>
inline void both_of(const NearestBlock& block) {
    rows_of<by_label, RowScores>(block);
    if (block.row == block.column) return;
    constexpr std::int64_t step = cghash::nearest_columns;
    for (std::int64_t first = 0; first < block.n_columns; first += step)
        columns_of<by_label, ColumnScores>(block, first, std::min(first + step, block.n_columns));
}

// Offer every column of the block to the lists of its rows, and the other way round
inline void nearest(const NearestBlock& block) {
    using ByRows = Leading<true>;
    using ByColumns = Leading<false>;
    if (block.finish) (block.relevant ? both_of<false, ByRows, ByColumns> : both_of<true, ByRows, ByColumns>)(block);
    else (block.relevant ? both_of<false, Whole, Whole> : both_of<true, Whole, Whole>)(block);
}

}  // namespace CGHASH_ISA
