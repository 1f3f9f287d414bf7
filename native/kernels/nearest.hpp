// The rare values of a block of products that enter a list of nearest items.
//
// A list is sorted by score, its last score is its threshold, and a list of no places has no threshold to pass. Items
// come to each list in increasing order of id, so that `<` alone keeps the lower id first among equal scores.
//
// Products over some axes give scores that are too low; what lies below a threshold even so is multiplied out.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "../kernel_table.hpp"
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

inline float threshold(const NearestList& list, std::int64_t item) {
    return list.size ? list.scores[(item + 1) * list.size - 1] : -std::numeric_limits<float>::infinity();
}

// Put `id` in its place in the item's list, unless it is the item itself; the list's new threshold
inline float offer(const NearestList& list, std::int64_t item, float score, std::int64_t id) {
    const float last = threshold(list, item);
    if (id == item || !(score < last)) return last;
    float* scores = list.scores + item * list.size;
    std::int32_t* ids = list.ids + item * list.size;
    std::int64_t place = list.size - 1;
    for (; place > 0 && score < scores[place - 1]; --place) {
        scores[place] = scores[place - 1];
        ids[place] = ids[place - 1];
    }
    scores[place] = score;
    ids[place] = static_cast<std::int32_t>(id);
    return threshold(list, item);
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

// How the products of a block become scores: as they are, or after a look at the whole items.
struct Whole {
    const NearestBlock& block;
    const float* half() const { return block.half; }
    float raised(float threshold, std::int64_t) const { return threshold; }
    float score(std::int64_t, std::int64_t other, float dots) { return block.half[other] - dots; }
};

struct Leading {
    const NearestBlock& block;
    const NearestItems& finish = *block.finish;
    std::int64_t n_finished = 0;
    ~Leading() { finish.n_finished->fetch_add(n_finished, std::memory_order_relaxed); }
    const float* half() const { return finish.low; }
    float raised(float threshold, std::int64_t item) const {
        return std::isinf(threshold) ? threshold : threshold + std::abs(threshold) * 0x1p-21f + finish.extra[item];
    }
    float score(std::int64_t item, std::int64_t other, float) {
        ++n_finished;
        const std::int64_t d = finish.n_features;
        return block.half[other] - product(finish.items + item * d, finish.items + other * d, d);
    }
};

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
inline std::int64_t row_span(const NearestBlock& block, Scores& scores, std::int64_t i, std::int64_t j) {
    const std::int64_t item = block.row + i;
    const float* dots = block.dots + i * block.n_columns;
    const float* half = scores.half() + block.column;
    float near = scores.raised(threshold(block.near, item), item), far = scores.raised(threshold(block.far, item), item);
    for (; j + L::width <= block.n_columns; j += L::width) {
        unsigned hits = L::below(L::load(half + j), L::load(dots + j), L::splat(near), L::splat(far),
                                 kinds<L, by_label>(block, i, j));
        for (; hits; hits &= hits - 1) {
            const std::int64_t column = j + std::countr_zero(hits), other = block.column + column;
            const float score = scores.score(item, other, dots[column]);
            const bool relevant = is_relevant(block, i, column);
            const float last = offer(relevant ? block.near : block.far, item, score, other);
            (relevant ? near : far) = scores.raised(last, item);
        }
    }
    return j;
}

template <bool by_label, class Scores>
inline void rows_of(const NearestBlock& block, std::int64_t first, std::int64_t last) {
    Scores scores{block};
    for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t j = row_span<Lanes, by_label>(block, scores, i, 0);
        row_span<OneLane, by_label>(block, scores, i, j);
    }
}

// Offer row i to the lists of the columns from j to last; near and far hold these lists' thresholds, from `first` on
template <class L, bool by_label, class Scores>
inline std::int64_t column_span(const NearestBlock& block, Scores& scores, std::int64_t i, std::int64_t first,
                                std::int64_t j, std::int64_t last, float* near, float* far) {
    const std::int64_t other = block.row + i;
    const float* dots = block.dots + i * block.n_columns;
    const float half = scores.half()[other];
    for (; j + L::width <= last; j += L::width) {
        unsigned hits = L::below(L::splat(half), L::load(dots + j), L::load(near + j - first), L::load(far + j - first),
                                 kinds<L, by_label>(block, i, j));
        for (; hits; hits &= hits - 1) {
            const std::int64_t column = j + std::countr_zero(hits), item = block.column + column;
            const float score = scores.score(item, other, dots[column]);
            const bool relevant = is_relevant(block, i, column);
            const float last_score = offer(relevant ? block.near : block.far, item, score, other);
            (relevant ? near : far)[column - first] = scores.raised(last_score, item);
        }
    }
    return j;
}

template <bool by_label, class Scores>
inline void columns_of(const NearestBlock& block, std::int64_t first, std::int64_t last) {
    Scores scores{block};
    float near[cghash::nearest_columns], far[cghash::nearest_columns];
    for (std::int64_t j = first; j < last; ++j) {
        const std::int64_t item = block.column + j;
        near[j - first] = scores.raised(threshold(block.near, item), item);
        far[j - first] = scores.raised(threshold(block.far, item), item);
    }
    for (std::int64_t i = 0; i < block.n_rows; ++i) {
        const std::int64_t j = column_span<Lanes, by_label>(block, scores, i, first, first, last, near, far);
        column_span<OneLane, by_label>(block, scores, i, first, j, last, near, far);
    }
}

// Offer every column of the block to the lists of its rows first..last - 1
inline void nearest_rows(const NearestBlock& block, std::int64_t first, std::int64_t last) {
    if (block.finish) (block.relevant ? rows_of<false, Leading> : rows_of<true, Leading>)(block, first, last);
    else (block.relevant ? rows_of<false, Whole> : rows_of<true, Whole>)(block, first, last);
}

// Offer every row of the block to the lists of its columns first..last - 1, at most nearest_columns of them
inline void nearest_columns_of(const NearestBlock& block, std::int64_t first, std::int64_t last) {
    if (block.finish) (block.relevant ? columns_of<false, Leading> : columns_of<true, Leading>)(block, first, last);
    else (block.relevant ? columns_of<false, Whole> : columns_of<true, Whole>)(block, first, last);
}

}  // namespace CGHASH_ISA
