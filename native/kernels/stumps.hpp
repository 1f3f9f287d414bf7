// The pricing of decision stumps: what one block of features adds to its delta tables (stumps.hpp says why).
//
// Ranks lie item after item, a block of features side by side, so that one load serves them all. Item i adds
// c_i = Σ_j s_ij·sign(r_j − r_i), over the other ends j of its slots, to the entry of its own rank. Every lane is one
// feature's own sum, in the order of the slots: all instruction sets give the same bits.
#pragma once
#include "../kernel_table.hpp"
#include "../prefetch.hpp"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace CGHASH_ISA {
using cghash::prefetch;
using cghash::StumpBlock;

#if defined(__AVX512BW__)

template <int BYTES>
inline __m512i load_ranks(const void* p) {  // lanes past BYTES are undefined, and nobody looks at their results
    static_assert(BYTES == 16 || BYTES == 32);
    if constexpr (BYTES == 32) return _mm512_castsi256_si512(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
    return _mm512_castsi128_si512(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}

inline std::uint64_t above(__m512i a, __m512i b, std::uint8_t) { return _mm512_cmpgt_epu8_mask(a, b); }
inline std::uint64_t above(__m512i a, __m512i b, std::uint16_t) { return _mm512_cmpgt_epu16_mask(a, b); }
inline std::uint64_t above(__m512i a, __m512i b, std::uint32_t) { return _mm512_cmpgt_epu32_mask(a, b); }

template <class T, int LANES>
struct Sums {
    __m512d sum[LANES / 8];

    Sums() {
        for (auto& v : sum) v = _mm512_setzero_pd();
    }
    void add(const T* other, const T* own, double s) {
        const __m512i theirs = load_ranks<LANES * sizeof(T)>(other), ours = load_ranks<LANES * sizeof(T)>(own);
        const std::uint64_t up = above(theirs, ours, T{}), down = above(ours, theirs, T{});  // bit l: feature l
        const __m512d plus = _mm512_set1_pd(s);
        for (int k = 0; k < LANES / 8; ++k) {
            sum[k] = _mm512_mask_add_pd(sum[k], static_cast<__mmask8>(up >> (8 * k)), sum[k], plus);
            sum[k] = _mm512_mask_sub_pd(sum[k], static_cast<__mmask8>(down >> (8 * k)), sum[k], plus);
        }
    }
    void store(double* c) const {
        for (int k = 0; k < LANES / 8; ++k) _mm512_storeu_pd(c + 8 * k, sum[k]);
    }
};

#elif defined(__AVX2__)

// Signs of other − own in eight features, as 32-bit numbers; comparisons are signed, so the top bits are turned.
inline __m256i signs(const std::uint8_t* other, const std::uint8_t* own) {
    const __m128i top = _mm_set1_epi8(-128);
    const __m128i a = _mm_xor_si128(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(other)), top);
    const __m128i b = _mm_xor_si128(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(own)), top);
    return _mm256_cvtepi8_epi32(_mm_sub_epi8(_mm_cmpgt_epi8(b, a), _mm_cmpgt_epi8(a, b)));
}
inline __m256i signs(const std::uint16_t* other, const std::uint16_t* own) {
    const __m128i top = _mm_set1_epi16(-32768);
    const __m128i a = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(other)), top);
    const __m128i b = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(own)), top);
    return _mm256_cvtepi16_epi32(_mm_sub_epi16(_mm_cmpgt_epi16(b, a), _mm_cmpgt_epi16(a, b)));
}
inline __m256i signs(const std::uint32_t* other, const std::uint32_t* own) {
    const __m256i top = _mm256_set1_epi32(INT32_MIN);
    const __m256i a = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(other)), top);
    const __m256i b = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(own)), top);
    return _mm256_sub_epi32(_mm256_cmpgt_epi32(b, a), _mm256_cmpgt_epi32(a, b));
}

template <class T, int LANES>
struct Sums {
    __m256d sum[LANES / 4];

    Sums() {
        for (auto& v : sum) v = _mm256_setzero_pd();
    }
    void add(const T* other, const T* own, double s) {
        const __m256d plus = _mm256_set1_pd(s);
        for (int k = 0; k < LANES / 8; ++k) {
            const __m256i sign = signs(other + 8 * k, own + 8 * k);
            const __m256d low = _mm256_cvtepi32_pd(_mm256_castsi256_si128(sign));
            const __m256d high = _mm256_cvtepi32_pd(_mm256_extracti128_si256(sign, 1));
            sum[2 * k] = _mm256_add_pd(sum[2 * k], _mm256_mul_pd(low, plus));
            sum[2 * k + 1] = _mm256_add_pd(sum[2 * k + 1], _mm256_mul_pd(high, plus));
        }
    }
    void store(double* c) const {
        for (int k = 0; k < LANES / 4; ++k) _mm256_storeu_pd(c + 4 * k, sum[k]);
    }
};

#else

template <class T, int LANES>
struct Sums {
    double sum[LANES]{};

    void add(const T* other, const T* own, double s) {
        std::int32_t sign[LANES];
        for (int l = 0; l < LANES; ++l) sign[l] = (other[l] > own[l]) - (other[l] < own[l]);
        for (int l = 0; l < LANES; ++l) sum[l] += s * sign[l];
    }
    void store(double* c) const {
        for (int l = 0; l < LANES; ++l) c[l] = sum[l];
    }
};

#endif

template <class T>
inline void stump_deltas(const StumpBlock& block, const T* ranks) {
    constexpr int LANES = cghash::stump_lanes<T>;
    auto ranks_of = [ranks](std::int64_t item) { return ranks + item * LANES; };
    for (std::int64_t k = 0; k < block.n_items; ++k) {
        const T* own = ranks_of(block.item[k]);
        Sums<T, LANES> sums;
        for (std::int64_t e = block.first[k]; e < block.first[k + 1]; ++e) {
            prefetch(ranks_of(block.ends[e + cghash::stump_padding].item));
            sums.add(ranks_of(block.ends[e].item), own, block.ends[e].s);
        }
        double c[LANES];
        sums.store(c);
        for (int l = 0; l < block.n_features; ++l) block.delta[l][own[l]] += c[l];
    }
}

}  // namespace CGHASH_ISA
