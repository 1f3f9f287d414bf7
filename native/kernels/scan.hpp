// Lower bounds of distances, 64 codes at a time, by look-ups in tables of bytes.
//
// The codes' bytes are taken in panels of eight. With 6-bit look-ups a panel of m bytes has m groups, the low six bits
// of each byte, and ⌈m/3⌉ more, the upper two bits of three bytes each; with 4-bit look-ups it has 2m, the nibbles.
// A table has an entry for every value of its group (lookups.hpp fills them in the same order).
#pragma once
#include <algorithm>
#include <cstdint>

#include "../kernel_table.hpp"
#include "bytes64.hpp"

namespace CGHASH_ISA {
using namespace cghash;

#if defined(__AVX512VBMI__)
inline constexpr int lookup_bits = 6;
struct Table {
    __m512i v;
    static Table load(const std::uint8_t* p) { return {_mm512_loadu_si512(p)}; }
    Bytes operator[](Bytes index) const { return {_mm512_permutexvar_epi8(index.v, v)}; }  // of the low six bits
};

template <int m> inline void panel_indices(const std::uint8_t* p, Bytes* index) {
    for (int j = 0; j < m; ++j) index[j] = Bytes::load(p + 64 * j);
    for (int e = 0; 3 * e < m; ++e) {  // 0xf8: a | (b & c)
        __m512i two = _mm512_and_si512(_mm512_srli_epi16(index[3 * e].v, 6), _mm512_set1_epi8(3));
        if (3 * e + 1 < m)
            two = _mm512_ternarylogic_epi32(two, _mm512_srli_epi16(index[3 * e + 1].v, 4), _mm512_set1_epi8(12), 0xf8);
        if (3 * e + 2 < m)
            two = _mm512_ternarylogic_epi32(two, _mm512_srli_epi16(index[3 * e + 2].v, 2), _mm512_set1_epi8(48), 0xf8);
        index[m + e] = {two};
    }
}
#else
inline constexpr int lookup_bits = 4;
using Table = Table16;

template <int m> inline void panel_indices(const std::uint8_t* p, Bytes* index) {
    for (int j = 0; j < m; ++j) {
        const Bytes byte = Bytes::load(p + 64 * j);
        index[2 * j] = low4(byte);
        index[2 * j + 1] = high4(byte);
    }
}
#endif
#if defined(__AVX512VBMI__)
inline constexpr double block_ns = 4.5;
#elif defined(__AVX512BW__)
inline constexpr double block_ns = 6.5;
#elif defined(__AVX2__) || defined(__ARM_NEON)
inline constexpr double block_ns = 9.0;
#else
inline constexpr double block_ns = 300.0;
#endif
inline constexpr int table_size = 1 << lookup_bits;
constexpr int panel_lookups(int m) { return lookup_bits == 6 ? m + (m + 2) / 3 : 2 * m; }
constexpr int all_lookups(int n_bytes) { return n_bytes / 8 * panel_lookups(8) + panel_lookups(n_bytes % 8); }

template <int n_bytes> inline void indices(const std::uint8_t* p, Bytes* index) {
    for (int j = 0; j + 8 <= n_bytes; j += 8) panel_indices<8>(p + 64 * j, index + j / 8 * panel_lookups(8));
    panel_indices<n_bytes % 8>(p + n_bytes / 8 * 512, index + n_bytes / 8 * panel_lookups(8));
}

// The bounds of `together` blocks for one query. Light tables have no two entries whose sum exceeds a byte: these are
// added by an instruction that more units of a processor have than the one that saturates.
template <int n_lookups, int together, bool light>
inline void sums_of(const Bytes (&index)[together][n_lookups], const std::uint8_t* tables, Bytes (&sum)[together]) {
    Bytes other[together];
#pragma GCC unroll 32
    for (int l = 0; l < n_lookups; ++l) {
        const Table table = Table::load(tables + l * table_size);
        for (int i = 0; i < together; ++i) {
            const Bytes found = table[index[i][l]];
            if (l == 0) sum[i] = found;
            else if (l & 1) other[i] = light || l == 1 ? found : add(other[i], found);
            else sum[i] = add(sum[i], light ? add_light(other[i], found) : found);
        }
    }
    if constexpr (n_lookups > 1 && !(light && n_lookups % 2))
        for (int i = 0; i < together; ++i) sum[i] = add(sum[i], other[i]);
}

// `together` blocks at a time, whose indices serve all queries.
template <int n_bytes, int together>
void scan_narrow(const ScanRange& range, ScanQuery* queries, int n_queries, Survivors survivors, void* context) {
    constexpr int n_lookups = all_lookups(n_bytes);
    constexpr std::int64_t size = 64 * n_bytes;
    std::int64_t b = 0;
    for (; b + together <= range.n_blocks; b += together) {
        const std::uint8_t* p = range.blocks + b * size;
        Bytes index[together][n_lookups];
        for (int i = 0; i < together; ++i) indices<n_bytes>(p + i * size, index[i]);
        for (int q = 0; q < n_queries; ++q) {
            Bytes sum[together];
            if (n_bytes > 4 && queries[q].light) sums_of<n_lookups, together, true>(index, queries[q].tables, sum);
            else sums_of<n_lookups, together, false>(index, queries[q].tables, sum);
            Bytes smallest = sum[0];
            for (int i = 1; i < together; ++i) smallest = least(smallest, sum[i]);
            if (at_most(smallest, static_cast<std::uint8_t>(queries[q].limit)) == 0) [[likely]]
                continue;
            for (int i = 0; i < together; ++i) {
                const std::uint64_t lanes = at_most(sum[i], static_cast<std::uint8_t>(queries[q].limit));
                if (lanes) survivors(context, q, p + i * size, range.first_block + b + i, lanes);
            }
        }
    }
    if constexpr (together > 1) {
        const ScanRange rest{range.blocks + b * size, range.first_block + b, range.n_blocks - b};
        if (rest.n_blocks) scan_narrow<n_bytes, 1>(rest, queries, n_queries, survivors, context);
    }
}

// One query: its tables stay in registers from one survivor to the next.
template <int n_bytes>
void scan_single(const ScanRange& range, ScanQuery& query, Survivors survivors, void* context) {
    constexpr int n_lookups = all_lookups(n_bytes);
    constexpr std::int64_t size = 64 * n_bytes;
    for (std::int64_t b = 0; b < range.n_blocks; ++b) {
        Table tables[n_lookups];
        for (int l = 0; l < n_lookups; ++l) tables[l] = Table::load(query.tables + l * table_size);
        const auto limit = static_cast<std::uint8_t>(query.limit);
        std::uint64_t lanes = 0;
        for (; b < range.n_blocks; ++b) {
            Bytes index[n_lookups];
            indices<n_bytes>(range.blocks + b * size, index);
            Bytes sum = tables[0][index[0]], other = Bytes::fill(0);
#pragma GCC unroll 32
            for (int l = 1; l < n_lookups; ++l) {
                if (l & 1) other = add(other, tables[l][index[l]]);
                else sum = add(sum, tables[l][index[l]]);
            }
            lanes = at_most(add(sum, other), limit);
            if (lanes) [[unlikely]]
                break;
        }
        if (lanes) survivors(context, 0, range.blocks + b * size, range.first_block + b, lanes);
    }
}

template <int m> inline Bytes panel_sum(const std::uint8_t* tables, const Bytes* index) {
    Bytes sum = Table::load(tables)[index[0]];
    for (int l = 1; l < panel_lookups(m); ++l) sum = add(sum, Table::load(tables + l * table_size)[index[l]]);
    return sum;
}

using PanelIndices = void (*)(const std::uint8_t*, Bytes*);
using PanelSum = Bytes (*)(const std::uint8_t*, const Bytes*);

// More than 16 bytes: bytes within a panel, 16-bit words over panels.
template <int last>  // bytes in the last panel, 0 to 7
void scan_wide(const ScanRange& range, int n_bytes, ScanQuery* queries, int n_queries, Survivors survivors,
               void* context) {
    constexpr int per_panel = panel_lookups(8);
    const int n_panels = n_bytes / 8;
    Bytes index[all_lookups(512)];
    for (std::int64_t b = 0; b < range.n_blocks; ++b) {
        const std::uint8_t* p = range.blocks + b * 64 * n_bytes;
        for (int panel = 0; panel < n_panels; ++panel) panel_indices<8>(p + 512 * panel, index + per_panel * panel);
        if constexpr (last > 0) panel_indices<last>(p + 512 * n_panels, index + per_panel * n_panels);
        for (int q = 0; q < n_queries; ++q) {
            const std::uint8_t* tables = queries[q].tables;
            Words sum;
            for (int panel = 0; panel < n_panels; ++panel)
                sum.add(panel_sum<8>(tables + per_panel * table_size * panel, index + per_panel * panel));
            if constexpr (last > 0)
                sum.add(panel_sum<last>(tables + per_panel * table_size * n_panels, index + per_panel * n_panels));
            const std::uint64_t lanes = sum.at_most(queries[q].limit);
            if (lanes) survivors(context, q, p, range.first_block + b, lanes);
        }
    }
}

template <int n_bytes>
void scan_narrow_any(const ScanRange& range, ScanQuery* queries, int n_queries, Survivors survivors, void* context) {
    constexpr int together = n_bytes <= 4 ? 4 : n_bytes <= 8 ? 2 : 1;
    if (n_queries == 1) scan_single<n_bytes>(range, queries[0], survivors, context);
    else scan_narrow<n_bytes, together>(range, queries, n_queries, survivors, context);
}

inline void scan(const ScanRange& range, int n_bytes, ScanQuery* queries, int n_queries, Survivors survivors,
                 void* context) {
    // clang-format off
#define CGHASH_NARROW(B) case B: return scan_narrow_any<B>(range, queries, n_queries, survivors, context);
    switch (n_bytes) {
        CGHASH_NARROW(1) CGHASH_NARROW(2) CGHASH_NARROW(3) CGHASH_NARROW(4) CGHASH_NARROW(5) CGHASH_NARROW(6)
        CGHASH_NARROW(7) CGHASH_NARROW(8) CGHASH_NARROW(9) CGHASH_NARROW(10) CGHASH_NARROW(11) CGHASH_NARROW(12)
        CGHASH_NARROW(13) CGHASH_NARROW(14) CGHASH_NARROW(15) CGHASH_NARROW(16)
        default: break;
    }
#undef CGHASH_NARROW
#define CGHASH_WIDE(M) case M: return scan_wide<M>(range, n_bytes, queries, n_queries, survivors, context);
    switch (n_bytes % 8) {
        CGHASH_WIDE(0) CGHASH_WIDE(1) CGHASH_WIDE(2) CGHASH_WIDE(3) CGHASH_WIDE(4) CGHASH_WIDE(5) CGHASH_WIDE(6)
        CGHASH_WIDE(7)
    }
#undef CGHASH_WIDE
    // clang-format on
}

inline void quantize(const float* values, std::int64_t n, float scale, std::uint8_t* out) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<std::uint8_t>(std::min(values[i] * scale, 255.0f));
}

}  // namespace CGHASH_ISA
