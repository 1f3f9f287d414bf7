// The two passes over the features that a pricing evaluation takes: Z·v in floats, and Zᵀ·r, whose sums are doubles:
// they are as long as there are items, and come out the same to ten digits however the items are divided. Features are
// floats or, where items are, bytes: a quarter of what memory has to bring.
#pragma once
#include <algorithm>

#include "../kernel_table.hpp"
#include "vec8.hpp"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace CGHASH_ISA {
using cghash::prefetch;

#if defined(__GNUC__) || defined(__clang__)
typedef float F8 __attribute__((vector_size(32)));
#else
struct alignas(32) F8 {
    float v[8]{};
    float& operator[](int i) { return v[i]; }
    float operator[](int i) const { return v[i]; }
};
template <class F> inline F8 map_f8(F f) {
    F8 o;
    for (int i = 0; i < 8; ++i) o.v[i] = f(i);
    return o;
}
inline F8 operator+(F8 a, F8 b) {
    return map_f8([&](int i) { return a.v[i] + b.v[i]; });
}
inline F8 operator*(F8 a, F8 b) {
    return map_f8([&](int i) { return a.v[i] * b.v[i]; });
}
inline F8& operator+=(F8& a, F8 b) { return a = a + b; }
#endif

inline F8 load_f8(const float* p) {
    F8 a;
    std::memcpy(&a, p, sizeof a);
    return a;
}
inline F8 load_f8(const std::uint8_t* p) {
#if defined(__AVX2__)  // written out: compilers take bytes one by one
    const __m256 eight = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
    F8 a;
    std::memcpy(&a, &eight, sizeof a);
    return a;
#elif defined(__GNUC__) || defined(__clang__)
    typedef std::uint8_t U8 __attribute__((vector_size(8)));
    U8 bytes;
    std::memcpy(&bytes, p, sizeof bytes);
    return __builtin_convertvector(bytes, F8);
#else
    return map_f8([&](int i) { return static_cast<float>(p[i]); });
#endif
}
inline float sum_f8(F8 a) { return ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7])); }

// One row after the other: memory is read as one stream, at twice the speed of several rows side by side.
template <class T>
inline float dot_row(const T* z, const float* v, std::int64_t d) {
    F8 low{}, high{};
    const std::int64_t whole = d & ~std::int64_t{15};
    for (std::int64_t f = 0; f < whole; f += 16) {
        low += load_f8(z + f) * load_f8(v + f);
        high += load_f8(z + f + 8) * load_f8(v + f + 8);
    }
    float tail = 0.0f;
    for (std::int64_t f = whole; f < d; ++f) tail += z[f] * v[f];
    return sum_f8(low + high) + tail;
}

// out[row] = Z[row]·v
template <class T>
inline void dot_rows(const T* Z, std::int64_t n, std::int64_t d, const float* v, float* out) {
    for (std::int64_t r = 0; r < n; ++r) out[r] = dot_row(Z + r * d, v, d);
}

inline V8 widened8(const float* p) {
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_convertvector(load_f8(p), V8);
#else
    return map8([&](int i) { return static_cast<double>(p[i]); });
#endif
}
inline V8 widened8(const std::uint8_t* p) {
#if defined(__AVX2__)
    const __m256i eight = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
#if defined(__AVX512F__)
    const __m512d doubles = _mm512_cvtepi32_pd(eight);
#else
    const __m256d doubles[2]{_mm256_cvtepi32_pd(_mm256_castsi256_si128(eight)),
                             _mm256_cvtepi32_pd(_mm256_extracti128_si256(eight, 1))};
#endif
    V8 a;
    std::memcpy(&a, &doubles, sizeof a);
    return a;
#else
    V8 a{};
    for (int i = 0; i < 8; ++i) a[i] = p[i];
    return a;
#endif
}

// a·b + c. A product of floats is exact in doubles, so that one rounding gives what two operations do.
inline V8 add_product(V8 c, V8 a, V8 b) {
#if defined(__AVX512F__)
    return (V8)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__AVX2__) && defined(__FMA__)
    __m256d x[2], y[2], z[2];
    std::memcpy(x, &a, sizeof a);
    std::memcpy(y, &b, sizeof b);
    std::memcpy(z, &c, sizeof c);
    for (int half = 0; half < 2; ++half) z[half] = _mm256_fmadd_pd(x[half], y[half], z[half]);
    std::memcpy(&c, z, sizeof c);
    return c;
#else
    return c + a * b;
#endif
}

// g += Σ_row r[row]·Z[row] of some rows, one after the other. The rows behind them are asked for meanwhile, in the order
// of their bytes: left to itself, memory brings several rows side by side at half the speed of one stream.
template <int ROWS, class T>
inline void tdot_patch(const T* Z, const float* r, std::int64_t d, double* g) {
    constexpr std::int64_t line = 64 / sizeof(T), ahead = 8 * ROWS;  // numbers: in a line, and read in a turn
    const std::int64_t whole = d & ~std::int64_t{7};
    V8 factor[ROWS];
    for (int i = 0; i < ROWS; ++i) factor[i] = splat(r[i]);
    for (std::int64_t f = 0; f < whole; f += 8) {
        if constexpr (ROWS > 1)
            for (std::int64_t at = 0; at < ahead; at += line) prefetch(Z + ROWS * (d + f) + at);
        V8 sum = load8(g + f);
        for (int i = 0; i < ROWS; ++i) sum = add_product(sum, widened8(Z + i * d + f), factor[i]);
        store8(g + f, sum);
    }
    for (std::int64_t f = whole; f < d; ++f)
        for (int i = 0; i < ROWS; ++i) g[f] += static_cast<double>(Z[i * d + f]) * r[i];
}

// g += Σ_row r[row]·Z[row]. Some rows at a time: going through g for each would cost more than its products.
template <class T>
inline void tdot_rows(const T* Z, std::int64_t n, std::int64_t d, const float* r, double* g) {
    constexpr int together = 8;
    std::int64_t i = 0;
    for (; i + together <= n; i += together) tdot_patch<together>(Z + i * d, r + i, d, g);
    for (; i < n; ++i) tdot_patch<1>(Z + i * d, r + i, d, g);
}

}  // namespace CGHASH_ISA
