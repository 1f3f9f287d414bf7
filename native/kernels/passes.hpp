// The two passes over the features that a pricing evaluation takes: Z·v in floats, and Zᵀ·r, whose sums are doubles:
// they are as long as there are items, and come out the same to ten digits however the items are divided.
#pragma once
#include <algorithm>

#include "../kernel_table.hpp"
#include "vec8.hpp"

namespace CGHASH_ISA {

#if defined(__GNUC__) || defined(__clang__)
typedef float V16 __attribute__((vector_size(64)));
#else
struct alignas(64) V16 {
    float v[16]{};
    float& operator[](int i) { return v[i]; }
    float operator[](int i) const { return v[i]; }
};
template <class F> inline V16 map16(F f) { V16 o; for (int i = 0; i < 16; ++i) o.v[i] = f(i); return o; }
inline V16 operator+(V16 a, V16 b) { return map16([&](int i) { return a.v[i] + b.v[i]; }); }
inline V16 operator*(V16 a, V16 b) { return map16([&](int i) { return a.v[i] * b.v[i]; }); }
inline V16 operator+(V16 a, float b) { return map16([&](int i) { return a.v[i] + b; }); }
inline V16& operator+=(V16& a, V16 b) { return a = a + b; }
#endif

inline V16 load16(const float* p) { V16 a; std::memcpy(&a, p, sizeof a); return a; }
inline float sum16(V16 a) {
    float half[8];
    for (int i = 0; i < 8; ++i) half[i] = a[i] + a[i + 8];
    return ((half[0] + half[1]) + (half[2] + half[3])) + ((half[4] + half[5]) + (half[6] + half[7]));
}

template <int ROWS>
inline void dot_patch(const float* Z, const float* v, std::int64_t d, float* out) {
    V16 sum[ROWS]{};
    const std::int64_t whole = d & ~std::int64_t{15};
    for (std::int64_t f = 0; f < whole; f += 16) {
        const V16 w = load16(v + f);
        for (int r = 0; r < ROWS; ++r) sum[r] += load16(Z + r * d + f) * w;
    }
    for (int r = 0; r < ROWS; ++r) {
        float tail = 0.0f;
        for (std::int64_t f = whole; f < d; ++f) tail += Z[r * d + f] * v[f];
        out[r] = sum16(sum[r]) + tail;
    }
}

// out[row] = Z[row]·v
inline void dot_rows(const float* Z, std::int64_t n, std::int64_t d, const float* v, float* out) {
    std::int64_t r = 0;
    for (; r + 4 <= n; r += 4) dot_patch<4>(Z + r * d, v, d, out + r);
    for (; r < n; ++r) dot_patch<1>(Z + r * d, v, d, out + r);
}

inline V8 widened8(const float* p) {
#if defined(__GNUC__) || defined(__clang__)
    typedef float F8 __attribute__((vector_size(32)));
    F8 a;
    std::memcpy(&a, p, sizeof a);
    return __builtin_convertvector(a, V8);
#else
    return map8([&](int i) { return static_cast<double>(p[i]); });
#endif
}

template <int ROWS>
inline void tdot_patch(const float* Z, const float* r, std::int64_t d, double* g) {
    const std::int64_t whole = d & ~std::int64_t{7};
    for (std::int64_t f = 0; f < whole; f += 8) {
        V8 sum = load8(g + f);
        for (int i = 0; i < ROWS; ++i) sum += widened8(Z + i * d + f) * static_cast<double>(r[i]);
        store8(g + f, sum);
    }
    for (std::int64_t f = whole; f < d; ++f)
        for (int i = 0; i < ROWS; ++i) g[f] += static_cast<double>(Z[i * d + f]) * r[i];
}

// g += Σ_row r[row]·Z[row]
inline void tdot_rows(const float* Z, std::int64_t n, std::int64_t d, const float* r, double* g) {
    std::int64_t i = 0;
    for (; i + 8 <= n; i += 8) tdot_patch<8>(Z + i * d, r + i, d, g);
    for (; i < n; ++i) tdot_patch<1>(Z + i * d, r + i, d, g);
}

}  // namespace CGHASH_ISA
