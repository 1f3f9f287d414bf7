// The rare values of a block of products that enter a list of nearest items.
//
// A list is sorted by score, its last score is its threshold, and a list of no places has no threshold to pass. Items
// come to each list in increasing order of id, so that `<` alone keeps the lower id first among equal scores.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>

#include "../kernel_table.hpp"
#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace CGHASH_ISA {
using cghash::NearestBlock;
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
template <class L, bool by_label>
inline std::int64_t row_span(const NearestBlock& block, std::int64_t i, std::int64_t j) {
    const std::int64_t item = block.row + i;
    const float* dots = block.dots + i * block.n_columns;
    const float* half = block.half + block.column;
    float near = threshold(block.near, item), far = threshold(block.far, item);
    for (; j + L::width <= block.n_columns; j += L::width) {
        unsigned hits = L::below(L::load(half + j), L::load(dots + j), L::splat(near), L::splat(far),
                                 kinds<L, by_label>(block, i, j));
        for (; hits; hits &= hits - 1) {
            const std::int64_t column = j + std::countr_zero(hits);
            const float score = half[column] - dots[column];
            if (is_relevant(block, i, column)) near = offer(block.near, item, score, block.column + column);
            else far = offer(block.far, item, score, block.column + column);
        }
    }
    return j;
}

template <bool by_label>
inline void rows_of(const NearestBlock& block, std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) row_span<OneLane, by_label>(block, i, row_span<Lanes, by_label>(block, i, 0));
}

// Offer row i to the lists of the columns from j to last; near and far hold these lists' thresholds, from `first` on
template <class L, bool by_label>
inline std::int64_t column_span(const NearestBlock& block, std::int64_t i, std::int64_t first, std::int64_t j,
                                std::int64_t last, float* near, float* far) {
    const float* dots = block.dots + i * block.n_columns;
    const float half = block.half[block.row + i];
    for (; j + L::width <= last; j += L::width) {
        unsigned hits = L::below(L::splat(half), L::load(dots + j), L::load(near + j - first), L::load(far + j - first),
                                 kinds<L, by_label>(block, i, j));
        for (; hits; hits &= hits - 1) {
            const std::int64_t column = j + std::countr_zero(hits), item = block.column + column;
            const float score = half - dots[column];
            if (is_relevant(block, i, column)) near[column - first] = offer(block.near, item, score, block.row + i);
            else far[column - first] = offer(block.far, item, score, block.row + i);
        }
    }
    return j;
}

template <bool by_label>
inline void columns_of(const NearestBlock& block, std::int64_t first, std::int64_t last) {
    float near[cghash::nearest_columns], far[cghash::nearest_columns];
    for (std::int64_t j = first; j < last; ++j) {
        near[j - first] = threshold(block.near, block.column + j);
        far[j - first] = threshold(block.far, block.column + j);
    }
    for (std::int64_t i = 0; i < block.n_rows; ++i) {
        const std::int64_t j = column_span<Lanes, by_label>(block, i, first, first, last, near, far);
        column_span<OneLane, by_label>(block, i, first, j, last, near, far);
    }
}

// Offer every column of the block to the lists of its rows first..last - 1
inline void nearest_rows(const NearestBlock& block, std::int64_t first, std::int64_t last) {
    if (block.relevant) rows_of<false>(block, first, last);
    else rows_of<true>(block, first, last);
}

// Offer every row of the block to the lists of its columns first..last - 1, at most nearest_columns of them
inline void nearest_columns_of(const NearestBlock& block, std::int64_t first, std::int64_t last) {
    if (block.relevant) columns_of<false>(block, first, last);
    else columns_of<true>(block, first, last);
}

}  // namespace CGHASH_ISA
