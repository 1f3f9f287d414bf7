// Distances of a query to rows that lie anywhere in memory and hold floats, half floats or scaled bytes.
//
// All are sums of doubles in one order: value f of a row is added to sum f mod 32, but for the last d mod 8, which are
// added to the last of these sums. Each value is exact as a double, and so are products of two floats, where one
// rounding gives what two operations do.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "../kernel_table.hpp"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace CGHASH_ISA {
using cghash::RowMetric;
using cghash::RowTask;
using cghash::RowType;

// Doubles, as many as a register holds: of wider vectors, compilers keep sums in memory.
#if defined(__AVX512F__)
typedef __m512d Doubles;
#elif defined(__AVX2__)
typedef __m256d Doubles;
#elif defined(__GNUC__) || defined(__clang__)
typedef double Doubles __attribute__((vector_size(16)));
#else
typedef double Doubles;
#endif
inline constexpr int n_lanes = sizeof(Doubles) / sizeof(double);
inline constexpr int n_registers = 8 / n_lanes;  // registers that hold eight

inline Doubles load_doubles(const double* p) {
    Doubles a;
    std::memcpy(&a, p, sizeof a);
    return a;
}

// Ones in the last n of the eight places from n on
inline constexpr std::int64_t last_places[16]{0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1};

// Zeros but where the bits are ones
inline Doubles masked(Doubles a, const std::int64_t* bits) {
#if defined(__GNUC__) || defined(__clang__)
    typedef std::int64_t Bits __attribute__((vector_size(sizeof(Doubles))));
#else
    typedef std::int64_t Bits;
#endif
    Bits of_a, kept;
    std::memcpy(&of_a, &a, sizeof a);
    std::memcpy(&kept, bits, sizeof kept);
    of_a &= kept;
    std::memcpy(&a, &of_a, sizeof a);
    return a;
}

// sum + a·b; exact: is the product a double?
template <bool exact> inline Doubles plus_product(Doubles sum, Doubles a, Doubles b) {
#if defined(__AVX512F__)
    if constexpr (exact) return _mm512_fmadd_pd(a, b, sum);
#elif defined(__AVX2__) && defined(__FMA__)
    if constexpr (exact) return _mm256_fmadd_pd(a, b, sum);
#endif
    return sum + a * b;
}

inline float half_float(std::uint16_t half) {
#if defined(__ARM_FP16_FORMAT_IEEE)
    return std::bit_cast<__fp16>(half);
#else
    const std::uint32_t size = half & 0x7fffu;
    const std::uint32_t normal = (size << 13) + (size < 0x7c00u ? 112u << 23 : 224u << 23);  // another bias; ∞ and NaN
    const float subnormal = static_cast<float>(static_cast<std::int32_t>(size)) * 0x1p-24f;
    const std::uint32_t chosen = size < 0x400u ? ~0u : 0u;
    const std::uint32_t bits = (std::bit_cast<std::uint32_t>(subnormal) & chosen) | (normal & ~chosen);
    return std::bit_cast<float>(bits | (half & 0x8000u) << 16);
#endif
}

#if !defined(__AVX2__)
inline void widen(const float (&values)[8], Doubles (&x)[n_registers]) {
    double wide[8];
    for (int i = 0; i < 8; ++i) wide[i] = values[i];
    std::memcpy(x, wide, sizeof x);
}
#endif

// What rows hold: `load` takes eight values.
struct FloatRows {
    static constexpr int size = 4;  // bytes of a value
    static constexpr bool scaled = false;
    static void load(const std::uint8_t* p, Doubles (&x)[n_registers]) {
#if defined(__AVX512F__)
        x[0] = _mm512_cvtps_pd(_mm256_loadu_ps(reinterpret_cast<const float*>(p)));
#elif defined(__AVX2__)
        x[0] = _mm256_cvtps_pd(_mm_loadu_ps(reinterpret_cast<const float*>(p)));
        x[1] = _mm256_cvtps_pd(_mm_loadu_ps(reinterpret_cast<const float*>(p + 16)));
#else
        float values[8];
        std::memcpy(values, p, sizeof values);
        widen(values, x);
#endif
    }
};

struct HalfRows {
    static constexpr int size = 2;
    static constexpr bool scaled = false;
    static void load(const std::uint8_t* p, Doubles (&x)[n_registers]) {
#if defined(__AVX2__)
        const __m256 eight = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#if defined(__AVX512F__)
        x[0] = _mm512_cvtps_pd(eight);
#else
        x[0] = _mm256_cvtps_pd(_mm256_castps256_ps128(eight));
        x[1] = _mm256_cvtps_pd(_mm256_extractf128_ps(eight, 1));
#endif
#else
        std::uint16_t halves[8];
        std::memcpy(halves, p, sizeof halves);
        float values[8];
        for (int i = 0; i < 8; ++i) values[i] = half_float(halves[i]);
        widen(values, x);
#endif
    }
};

struct ByteRows {
    static constexpr int size = 1;
    static constexpr bool scaled = true;
    static void load(const std::uint8_t* p, Doubles (&x)[n_registers]) {
#if defined(__AVX2__)
        const __m256i eight = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
#if defined(__AVX512F__)
        x[0] = _mm512_cvtepi32_pd(eight);
#else
        x[0] = _mm256_cvtepi32_pd(_mm256_castsi256_si128(eight));
        x[1] = _mm256_cvtepi32_pd(_mm256_extracti128_si256(eight, 1));
#endif
#else
        float values[8];
        for (int i = 0; i < 8; ++i) values[i] = static_cast<std::int8_t>(p[i]);
        widen(values, x);
#endif
    }
};

// What a metric sums over the values of a query and a row, and the distance that it makes of the sums.
struct Euclidean {
    Doubles squares{};
    template <bool exact> void add(Doubles q, Doubles x) {
        const Doubles difference = q - x;
        squares += difference * difference;
    }
    template <class Sum> static double distance(Sum sum, const RowTask&) { return std::sqrt(sum(&Euclidean::squares)); }
};

struct Inner {
    Doubles products{};
    template <bool exact> void add(Doubles q, Doubles x) { products = plus_product<exact>(products, q, x); }
    template <class Sum> static double distance(Sum sum, const RowTask&) { return 0.0 - sum(&Inner::products); }
};

struct Cosine {
    Doubles products{}, squares{};
    template <bool exact> void add(Doubles q, Doubles x) {
        products = plus_product<exact>(products, q, x);
        squares = plus_product<exact>(squares, x, x);
    }
    template <class Sum> static double distance(Sum sum, const RowTask& task) {
        const double squares = sum(&Cosine::squares) * task.square;
        if (squares == 0.0) return 1.0;
        const double cosine = sum(&Cosine::products) / std::sqrt(squares);
        return 1.0 - (cosine > 1.0 ? 1.0 : cosine < -1.0 ? -1.0 : cosine);
    }
};

inline double sum8(const Doubles (&parts)[n_registers]) {
    double a[8];
    std::memcpy(a, parts, sizeof a);
    return ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]));
}

template <class Rows, class Metric>
inline double row_distance(const RowTask& task, const std::uint8_t* row) {
    Metric sums[4][n_registers];
    // Eight values p, those from f on; of the last ones, those that are not masked
    auto add = [&](Metric(&to)[n_registers], std::int64_t f, const std::uint8_t* p,
                   const std::int64_t* mask = nullptr) {
        Doubles x[n_registers];
        Rows::load(p, x);
        for (int i = 0; i < n_registers; ++i) {
            Doubles q = load_doubles(task.query + f + i * n_lanes);
            if constexpr (Rows::scaled) x[i] = x[i] * load_doubles(task.scale + f + i * n_lanes);
            if (mask) q = masked(q, mask + i * n_lanes), x[i] = masked(x[i], mask + i * n_lanes);
            to[i].template add<!Rows::scaled>(q, x[i]);
        }
    };
    const std::int64_t dim = task.dim, whole = dim & ~std::int64_t{7};
    auto at = [&](std::int64_t f) { return row + f * Rows::size; };
    std::int64_t f = 0;
    for (; f + 32 <= whole; f += 32)
        for (int place = 0; place < 4; ++place) add(sums[place], f + 8 * place, at(f + 8 * place));
    for (int place = 0; place < 3; ++place)
        if (f + 8 * place < whole) add(sums[place], f + 8 * place, at(f + 8 * place));
    if (whole < dim && dim >= 8) add(sums[3], dim - 8, at(dim - 8), last_places + dim % 8);
    if (dim < 8) {
        std::uint8_t padded[8 * Rows::size]{};
        std::memcpy(padded + (8 - dim) * Rows::size, row, static_cast<std::size_t>(dim * Rows::size));
        add(sums[3], dim - 8, padded, last_places + dim);
    }
    return Metric::distance(
        [&](Doubles Metric::* which) {
            Doubles parts[n_registers];
            for (int i = 0; i < n_registers; ++i)
                parts[i] = (sums[0][i].*which + sums[1][i].*which) + (sums[2][i].*which + sums[3][i].*which);
            return sum8(parts);
        },
        task);
}

// Rows are asked for while those before them are worked on: early enough to be there, few enough to stay in cache.
template <class Rows, class Metric>
inline void distances_to(const RowTask& task, const std::int64_t* candidates, std::int64_t n, double* out) {
    const std::int64_t bytes = task.dim * Rows::size, ahead = std::clamp<std::int64_t>(65536 / bytes, 2, 16);
    auto row = [&](std::int64_t i) { return task.rows + candidates[i] * task.stride; };
    auto ask = [&](std::int64_t i) { cghash::Lines(row(i), row(i) + bytes).ask_all(); };
    for (std::int64_t i = 0; i < std::min(ahead, n); ++i) ask(i);
    for (std::int64_t i = 0; i < n; ++i) {
        if (i + ahead < n) ask(i + ahead);
        out[i] = row_distance<Rows, Metric>(task, row(i));
    }
}

template <class Rows>
inline void distances_by(const RowTask& task, const std::int64_t* candidates, std::int64_t n, double* out) {
    switch (task.metric) {
        case RowMetric::euclidean:
            return distances_to<Rows, Euclidean>(task, candidates, n, out);
        case RowMetric::inner:
            return distances_to<Rows, Inner>(task, candidates, n, out);
        case RowMetric::cosine:
            return distances_to<Rows, Cosine>(task, candidates, n, out);
    }
}

// The distances of n candidates, row numbers
inline void row_distances(const RowTask& task, const std::int64_t* candidates, std::int64_t n, double* out) {
    switch (task.type) {
        case RowType::float32:
            return distances_by<FloatRows>(task, candidates, n, out);
        case RowType::float16:
            return distances_by<HalfRows>(task, candidates, n, out);
        case RowType::int8:
            return distances_by<ByteRows>(task, candidates, n, out);
    }
}

}  // namespace CGHASH_ISA
