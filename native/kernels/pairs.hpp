// The master problem's inner loops over one tile of pair slots (design §3.1).
//
// A tile holds whole blocks; a block is `near` slots followed by `far` slots of one anchor. Column j of a tile is a
// row of 64-bit words: bit i says whether the two items of slot i differ under hash function j.
#pragma once
#include <algorithm>
#include <limits>

#include "../kernel_table.hpp"
#include "vec8.hpp"
#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace CGHASH_ISA {
using cghash::Loss;
using cghash::Tile;

#ifndef __AVX512F__
struct ByteMasks {
    V8 of[256];
    ByteMasks() {
        for (int byte = 0; byte < 256; ++byte)
            for (int i = 0; i < 8; ++i) of[byte][i] = (byte >> i) & 1;
    }
};
inline const ByteMasks& byte_masks() {
    static const ByteMasks masks;
    return masks;
}
#endif

// sum + value in the lanes whose bit of `byte` is set
inline V8 add_where(V8 sum, unsigned byte, V8 value) {
#ifdef __AVX512F__
    return (V8)_mm512_mask_add_pd((__m512d)sum, static_cast<__mmask8>(byte), (__m512d)sum, (__m512d)value);
#else
    return sum + value * byte_masks().of[byte];
#endif
}

// D[slot] = Σ_j w_j·bit_j(slot)
inline void tile_distances(const Tile& tile, const double* w, int n_columns, double* D) {
    for (std::int64_t word = 0; word < tile.n_words; ++word) {
        V8 sum[8]{};
        for (int j = 0; j < n_columns; ++j) {
            if (w[j] == 0.0) continue;
            const std::uint64_t bits = tile.columns[j * tile.n_words + word];
            const V8 weight = splat(w[j]);
            for (int k = 0; k < 8; ++k) sum[k] = add_where(sum[k], (bits >> (8 * k)) & 255, weight);
        }
        for (int k = 0; k < 8; ++k) store8(D + 64 * word + 8 * k, sum[k]);
    }
}

// g_j += Σ_slot q[slot]·bit_j(slot); four columns share each load of q
inline void tile_adjoint(const Tile& tile, const double* q, int n_columns, double* g) {
    for (int first = 0; first < n_columns; first += 4) {
        const int n = std::min(4, n_columns - first);
        V8 sum[4][2]{};
        for (std::int64_t word = 0; word < tile.n_words; ++word) {
            std::uint64_t bits[4]{};
            for (int c = 0; c < n; ++c) bits[c] = tile.columns[(first + c) * tile.n_words + word];
            for (int k = 0; k < 8; ++k) {
                const V8 value = load8(q + 64 * word + 8 * k);
                for (int c = 0; c < 4; ++c) sum[c][k & 1] = add_where(sum[c][k & 1], (bits[c] >> (8 * k)) & 255, value);
            }
        }
        for (int c = 0; c < n; ++c) g[first + c] += sum8(sum[c][0] + sum[c][1]);
    }
}

// Each loss of a margin ρ: value(ρ), and slope(ρ) = -f'(ρ), which is the multiplier u.
struct SquaredHinge {
    static void at(V8 margin, V8& value, V8& slope) {
        const V8 slack = max0(1.0 - margin);
        value = slack * slack;
        slope = 2.0 * slack;
    }
};
struct Hinge {
    static void at(V8 margin, V8& value, V8& slope) {
        const V8 slack = 1.0 - margin;
        value = max0(slack);
        slope = step(slack);
    }
};
struct Logistic {
    static void at(V8 margin, V8& value, V8& slope) {
        const V8 size = max0(margin) + max0(0.0 - margin);  // |ρ|
        const V8 e = exp8(0.0 - size);
        value = log1p8(e) + max0(0.0 - margin);
        slope = select(margin, e, splat(1.0)) / (1.0 + e);
    }
};

struct BlockScratch {
    std::vector<double> far, slope;  // padded to a multiple of 8
};

// Σ f(D_far - D_near) over the product of a block; q gets p·∂/∂D of each slot
template <class L>
inline double product_block(double* D, double* q, int near, int far, double p, BlockScratch& scratch) {
    const int padded = (far + 7) & ~7;
    scratch.far.assign(padded, std::numeric_limits<double>::infinity());  // a margin of ∞ costs nothing
    scratch.slope.assign(padded, 0.0);
    std::copy(D + near, D + near + far, scratch.far.begin());
    V8 total{};
    for (int i = 0; i < near; ++i) {
        const V8 own = splat(D[i]);
        V8 slopes{};
        for (int j = 0; j < padded; j += 8) {
            V8 value, slope;
            L::at(load8(&scratch.far[j]) - own, value, slope);
            total += value;
            slopes += slope;
            store8(&scratch.slope[j], load8(&scratch.slope[j]) + slope);
        }
        q[i] = p * sum8(slopes);
    }
    for (int j = 0; j < far; ++j) q[near + j] = -p * scratch.slope[j];
    return p * sum8(total);
}

// The exponential loss separates: Σ_ij exp(n_i - f_j) = (Σ_i exp n_i)(Σ_j exp -f_j), here around c = min f.
inline double exponential_block(double* D, double* q, int near, int far, double p, BlockScratch& scratch) {
    if (near == 0 || far == 0) {
        std::fill(q, q + near + far, 0.0);
        return 0.0;
    }
    const double centre = *std::min_element(D + near, D + near + far);
    auto exponentials = [&](const double* from, int n, double sign, std::vector<double>& out) {
        const int padded = (n + 7) & ~7;
        out.assign(padded, -std::numeric_limits<double>::infinity());
        for (int i = 0; i < n; ++i) out[i] = sign * (from[i] - centre);
        double total = 0.0;
        for (int i = 0; i < padded; i += 8) store8(&out[i], exp8(load8(&out[i])));
        for (int i = 0; i < n; ++i) total += out[i];
        return total;
    };
    const double near_total = exponentials(D, near, 1.0, scratch.far);
    const double far_total = exponentials(D + near, far, -1.0, scratch.slope);
    for (int i = 0; i < near; ++i) q[i] = p * scratch.far[i] * far_total;
    for (int j = 0; j < far; ++j) q[near + j] = -p * scratch.slope[j] * near_total;
    return p * near_total * far_total;
}

inline double block_loss(Loss loss, double* D, double* q, int near, int far, double p, BlockScratch& scratch) {
    switch (loss) {
        case Loss::squared_hinge:
            return product_block<SquaredHinge>(D, q, near, far, p, scratch);
        case Loss::hinge:
            return product_block<Hinge>(D, q, near, far, p, scratch);
        case Loss::logistic:
            return product_block<Logistic>(D, q, near, far, p, scratch);
        case Loss::exponential:
            return exponential_block(D, q, near, far, p, scratch);
    }
    return 0.0;
}

inline double tile_loss(const Tile& tile, Loss loss, double* D, double* q) {
    static thread_local BlockScratch scratch;
    double value = 0.0;
    std::fill(q, q + 64 * tile.n_words, 0.0);
    for (std::int64_t b = 0; b < tile.n_blocks; ++b) {
        const std::int64_t at = tile.block_slot[b];
        value += block_loss(loss, D + at, q + at, tile.block_near[b], tile.block_far[b], tile.block_weight[b], scratch);
    }
    return value;
}

// Share (weighted by p) of triplets with a margin above `low`, and how many have one below `high`
inline void tile_counts(const Tile& tile, const double* D, double low, double high, double& share, std::int64_t& live) {
    for (std::int64_t b = 0; b < tile.n_blocks; ++b) {
        const double* near = D + tile.block_slot[b];
        const double* far = near + tile.block_near[b];
        std::int64_t above = 0;
        for (int i = 0; i < tile.block_near[b]; ++i)
            for (int j = 0; j < tile.block_far[b]; ++j) {
                above += far[j] - near[i] > low;
                live += far[j] - near[i] < high;
            }
        share += tile.block_weight[b] * static_cast<double>(above);
    }
}

}  // namespace CGHASH_ISA
