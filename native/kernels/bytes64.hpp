// The same byte of 64 codes, or four bytes of 16, in whatever registers the instruction set has.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace CGHASH_ISA {

#if defined(__AVX512BW__)

struct Bytes {
    __m512i v;
    static Bytes load(const std::uint8_t* p) { return {_mm512_loadu_si512(p)}; }
    static Bytes fill(std::uint8_t x) { return {_mm512_set1_epi8(static_cast<char>(x))}; }
};
inline Bytes low4(Bytes a) { return {_mm512_and_si512(a.v, _mm512_set1_epi8(15))}; }
inline Bytes high4(Bytes a) { return {_mm512_and_si512(_mm512_srli_epi16(a.v, 4), _mm512_set1_epi8(15))}; }
inline Bytes add(Bytes a, Bytes b) { return {_mm512_adds_epu8(a.v, b.v)}; }
inline Bytes add_light(Bytes a, Bytes b) { return {_mm512_add_epi8(a.v, b.v)}; }
inline Bytes least(Bytes a, Bytes b) { return {_mm512_min_epu8(a.v, b.v)}; }
inline std::uint64_t at_most(Bytes a, std::uint8_t limit) {
    return _mm512_cmple_epu8_mask(a.v, _mm512_set1_epi8(static_cast<char>(limit)));
}
// The first n bytes, zeros behind them.
inline Bytes load_first(const std::uint8_t* p, int n) {
    return {_mm512_maskz_loadu_epi8((std::uint64_t{1} << n) - 1, p)};
}
// Each argument is 4 × 16 bytes, the sums of which over the four stand one behind the other in the result.
inline Bytes sums_of_four(Bytes a, Bytes b, Bytes c, Bytes d) {
    const auto halves = [](__m512i x, __m512i y) {
        return _mm512_adds_epu8(_mm512_shuffle_i64x2(x, y, 0x88), _mm512_shuffle_i64x2(x, y, 0xdd));
    };
    return {halves(halves(a.v, b.v), halves(c.v, d.v))};
}
// Likewise of one, those that are at most the limit when something is added.
inline std::uint32_t sums_at_most(Bytes a, std::uint8_t start, std::uint8_t limit) {
    const __m256i two = _mm256_adds_epu8(_mm512_castsi512_si256(a.v), _mm512_extracti64x4_epi64(a.v, 1));
    __m128i sum = _mm_adds_epu8(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
    sum = _mm_adds_epu8(sum, _mm_set1_epi8(static_cast<char>(start)));
    return _mm_cmple_epu8_mask(sum, _mm_set1_epi8(static_cast<char>(limit)));
}

struct Table16 {
    __m512i v;
    static Table16 load(const std::uint8_t* p) {
        return {_mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
    }
    Bytes operator[](Bytes index) const { return {_mm512_shuffle_epi8(v, index.v)}; }
};
// Four tables, one for each 16 bytes.
struct Tables4 {
    __m512i v;
    static Tables4 load(const std::uint8_t* p) { return {_mm512_loadu_si512(p)}; }
    Bytes operator[](Bytes index) const { return {_mm512_shuffle_epi8(v, index.v)}; }
};

// 64 sums of 16 bits, saturating.
struct Words {
    __m512i v[2]{_mm512_setzero_si512(), _mm512_setzero_si512()};
    void add(Bytes a) {
        v[0] = _mm512_adds_epu16(v[0], _mm512_cvtepu8_epi16(_mm512_castsi512_si256(a.v)));
        v[1] = _mm512_adds_epu16(v[1], _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(a.v, 1)));
    }
    std::uint64_t at_most(std::uint16_t limit) const {
        const __m512i most = _mm512_set1_epi16(static_cast<short>(limit));
        return _mm512_cmple_epu16_mask(v[0], most) | static_cast<std::uint64_t>(_mm512_cmple_epu16_mask(v[1], most))
                                                         << 32;
    }
};

#elif defined(__AVX2__)

struct Bytes {
    __m256i v[2];
    static Bytes load(const std::uint8_t* p) {
        return {{_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
                 _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))}};
    }
    static Bytes fill(std::uint8_t x) {
        const __m256i all = _mm256_set1_epi8(static_cast<char>(x));
        return {{all, all}};
    }
};
inline __m256i high4(__m256i a) { return _mm256_and_si256(_mm256_srli_epi16(a, 4), _mm256_set1_epi8(15)); }
inline Bytes low4(Bytes a) {
    const __m256i mask = _mm256_set1_epi8(15);
    return {{_mm256_and_si256(a.v[0], mask), _mm256_and_si256(a.v[1], mask)}};
}
inline Bytes high4(Bytes a) { return {{high4(a.v[0]), high4(a.v[1])}}; }
inline Bytes add(Bytes a, Bytes b) { return {{_mm256_adds_epu8(a.v[0], b.v[0]), _mm256_adds_epu8(a.v[1], b.v[1])}}; }
inline Bytes add_light(Bytes a, Bytes b) {
    return {{_mm256_add_epi8(a.v[0], b.v[0]), _mm256_add_epi8(a.v[1], b.v[1])}};
}
inline Bytes least(Bytes a, Bytes b) { return {{_mm256_min_epu8(a.v[0], b.v[0]), _mm256_min_epu8(a.v[1], b.v[1])}}; }
inline std::uint64_t lanes_of(__m256i low, __m256i high) {
    return static_cast<std::uint32_t>(_mm256_movemask_epi8(low)) |
           static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm256_movemask_epi8(high))) << 32;
}
inline std::uint64_t at_most(Bytes a, std::uint8_t limit) {
    const Bytes smaller = least(a, Bytes::fill(limit));
    return lanes_of(_mm256_cmpeq_epi8(smaller.v[0], a.v[0]), _mm256_cmpeq_epi8(smaller.v[1], a.v[1]));
}
inline Bytes load_first(const std::uint8_t* p, int n) {
    alignas(64) std::uint8_t some[64] = {};
    std::memcpy(some, p, static_cast<std::size_t>(n));
    return Bytes::load(some);
}
inline Bytes sums_of_four(Bytes a, Bytes b, Bytes c, Bytes d) {
    const auto sums = [](Bytes x, Bytes y) {
        const __m256i two = _mm256_adds_epu8(x.v[0], x.v[1]), other = _mm256_adds_epu8(y.v[0], y.v[1]);
        return _mm256_adds_epu8(_mm256_permute2x128_si256(two, other, 0x20),
                                _mm256_permute2x128_si256(two, other, 0x31));
    };
    return {{sums(a, b), sums(c, d)}};
}
inline std::uint32_t sums_at_most(Bytes a, std::uint8_t start, std::uint8_t limit) {
    const __m256i two = _mm256_adds_epu8(a.v[0], a.v[1]);
    __m128i sum = _mm_adds_epu8(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
    sum = _mm_adds_epu8(sum, _mm_set1_epi8(static_cast<char>(start)));
    const __m128i smaller = _mm_min_epu8(sum, _mm_set1_epi8(static_cast<char>(limit)));
    return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(smaller, sum)));
}

struct Table16 {
    __m256i v;
    static Table16 load(const std::uint8_t* p) {
        return {_mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
    }
    Bytes operator[](Bytes index) const {
        return {{_mm256_shuffle_epi8(v, index.v[0]), _mm256_shuffle_epi8(v, index.v[1])}};
    }
};
struct Tables4 {
    Bytes v;
    static Tables4 load(const std::uint8_t* p) { return {Bytes::load(p)}; }
    Bytes operator[](Bytes index) const {
        return {{_mm256_shuffle_epi8(v.v[0], index.v[0]), _mm256_shuffle_epi8(v.v[1], index.v[1])}};
    }
};

struct Words {
    __m256i v[4]{_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
    void add(Bytes a) {
        for (int half = 0; half < 2; ++half) {
            v[2 * half] = _mm256_adds_epu16(v[2 * half], _mm256_cvtepu8_epi16(_mm256_castsi256_si128(a.v[half])));
            v[2 * half + 1] =
                _mm256_adds_epu16(v[2 * half + 1], _mm256_cvtepu8_epi16(_mm256_extracti128_si256(a.v[half], 1)));
        }
    }
    std::uint64_t at_most(std::uint16_t limit) const {
        const __m256i most = _mm256_set1_epi16(static_cast<short>(limit));
        __m256i below[4];
        for (int i = 0; i < 4; ++i) below[i] = _mm256_cmpeq_epi16(_mm256_min_epu16(v[i], most), v[i]);
        // packs interleaves the 128-bit halves of its two operands; the permutation puts them back in order
        const auto bytes = [](__m256i a, __m256i b) {
            return _mm256_permute4x64_epi64(_mm256_packs_epi16(a, b), 0xd8);
        };
        return lanes_of(bytes(below[0], below[1]), bytes(below[2], below[3]));
    }
};

#elif defined(__ARM_NEON) && defined(__aarch64__)

struct Bytes {
    uint8x16_t v[4];
    static Bytes load(const std::uint8_t* p) {
        return {{vld1q_u8(p), vld1q_u8(p + 16), vld1q_u8(p + 32), vld1q_u8(p + 48)}};
    }
    static Bytes fill(std::uint8_t x) {
        const uint8x16_t all = vdupq_n_u8(x);
        return {{all, all, all, all}};
    }
};
template <class Function> inline Bytes each(Bytes a, Function f) {
    return {{f(a.v[0]), f(a.v[1]), f(a.v[2]), f(a.v[3])}};
}
template <class Function> inline Bytes each(Bytes a, Bytes b, Function f) {
    return {{f(a.v[0], b.v[0]), f(a.v[1], b.v[1]), f(a.v[2], b.v[2]), f(a.v[3], b.v[3])}};
}
inline Bytes low4(Bytes a) {
    return each(a, [](uint8x16_t x) { return vandq_u8(x, vdupq_n_u8(15)); });
}
inline Bytes high4(Bytes a) {
    return each(a, [](uint8x16_t x) { return vshrq_n_u8(x, 4); });
}
inline Bytes add(Bytes a, Bytes b) {
    return each(a, b, [](uint8x16_t x, uint8x16_t y) { return vqaddq_u8(x, y); });
}
inline Bytes add_light(Bytes a, Bytes b) {
    return each(a, b, [](uint8x16_t x, uint8x16_t y) { return vaddq_u8(x, y); });
}
inline Bytes least(Bytes a, Bytes b) {
    return each(a, b, [](uint8x16_t x, uint8x16_t y) { return vminq_u8(x, y); });
}
inline std::uint64_t lanes_of(Bytes marks) {  // 0 or 255 each
    const uint8x16_t place = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    std::uint64_t lanes = 0;
    for (int i = 0; i < 4; ++i) {
        const uint8x16_t bits = vandq_u8(marks.v[i], place);
        const std::uint64_t two = vaddv_u8(vget_low_u8(bits)) | static_cast<unsigned>(vaddv_u8(vget_high_u8(bits)))
                                                                    << 8;
        lanes |= two << (16 * i);
    }
    return lanes;
}
inline std::uint64_t at_most(Bytes a, std::uint8_t limit) {
    return lanes_of(each(a, [=](uint8x16_t x) { return vcleq_u8(x, vdupq_n_u8(limit)); }));
}
inline Bytes load_first(const std::uint8_t* p, int n) {
    std::uint8_t some[64] = {};
    std::memcpy(some, p, static_cast<std::size_t>(n));
    return Bytes::load(some);
}
inline uint8x16_t sum_of(Bytes a) { return vqaddq_u8(vqaddq_u8(a.v[0], a.v[1]), vqaddq_u8(a.v[2], a.v[3])); }
inline Bytes sums_of_four(Bytes a, Bytes b, Bytes c, Bytes d) { return {{sum_of(a), sum_of(b), sum_of(c), sum_of(d)}}; }
inline std::uint32_t sums_at_most(Bytes a, std::uint8_t start, std::uint8_t limit) {
    const uint8x16_t marks = vcleq_u8(vqaddq_u8(sum_of(a), vdupq_n_u8(start)), vdupq_n_u8(limit)), none = vdupq_n_u8(0);
    return static_cast<std::uint32_t>(lanes_of({{marks, none, none, none}}));
}

struct Table16 {
    uint8x16_t v;
    static Table16 load(const std::uint8_t* p) { return {vld1q_u8(p)}; }
    Bytes operator[](Bytes index) const {
        return each(index, [this](uint8x16_t i) { return vqtbl1q_u8(v, i); });
    }
};
struct Tables4 {
    Bytes v;
    static Tables4 load(const std::uint8_t* p) { return {Bytes::load(p)}; }
    Bytes operator[](Bytes index) const {
        return each(v, index, [](uint8x16_t table, uint8x16_t i) { return vqtbl1q_u8(table, i); });
    }
};

struct Words {
    std::uint16_t v[64]{};
    void add(Bytes a) {
        for (int i = 0; i < 4; ++i) {
            vst1q_u16(v + 16 * i, vqaddq_u16(vld1q_u16(v + 16 * i), vmovl_u8(vget_low_u8(a.v[i]))));
            vst1q_u16(v + 16 * i + 8, vqaddq_u16(vld1q_u16(v + 16 * i + 8), vmovl_u8(vget_high_u8(a.v[i]))));
        }
    }
    std::uint64_t at_most(std::uint16_t limit) const {
        std::uint64_t lanes = 0;
        for (int i = 0; i < 64; ++i) lanes |= static_cast<std::uint64_t>(v[i] <= limit) << i;
        return lanes;
    }
};

#else

struct Bytes {
    std::uint8_t v[64];
    static Bytes load(const std::uint8_t* p) {
        Bytes a;
        std::memcpy(a.v, p, 64);
        return a;
    }
    static Bytes fill(std::uint8_t x) {
        Bytes a;
        std::memset(a.v, x, 64);
        return a;
    }
};
template <class Function> inline Bytes each(Function f) {
    Bytes a;
    for (int i = 0; i < 64; ++i) a.v[i] = static_cast<std::uint8_t>(f(i));
    return a;
}
template <class Function> inline std::uint64_t lanes_where(Function f) {
    std::uint64_t lanes = 0;
    for (int i = 0; i < 64; ++i) lanes |= static_cast<std::uint64_t>(f(i)) << i;
    return lanes;
}
inline Bytes low4(const Bytes& a) {
    return each([&](int i) { return a.v[i] & 15; });
}
inline Bytes high4(const Bytes& a) {
    return each([&](int i) { return a.v[i] >> 4; });
}
inline Bytes add(const Bytes& a, const Bytes& b) {
    return each([&](int i) { return a.v[i] + b.v[i] > 255 ? 255 : a.v[i] + b.v[i]; });
}
inline Bytes add_light(const Bytes& a, const Bytes& b) {
    return each([&](int i) { return a.v[i] + b.v[i]; });
}
inline Bytes least(const Bytes& a, const Bytes& b) {
    return each([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
inline std::uint64_t at_most(const Bytes& a, std::uint8_t limit) {
    return lanes_where([&](int i) { return a.v[i] <= limit; });
}
inline Bytes load_first(const std::uint8_t* p, int n) {
    Bytes a = Bytes::fill(0);
    std::memcpy(a.v, p, static_cast<std::size_t>(n));
    return a;
}
inline int sum_of(const Bytes& a, int i) { return a.v[i] + a.v[i + 16] + a.v[i + 32] + a.v[i + 48]; }
inline Bytes sums_of_four(const Bytes& a, const Bytes& b, const Bytes& c, const Bytes& d) {
    const Bytes* all[] = {&a, &b, &c, &d};
    return each([&](int i) { return std::min(255, sum_of(*all[i / 16], i % 16)); });
}
inline std::uint32_t sums_at_most(const Bytes& a, std::uint8_t start, std::uint8_t limit) {
    std::uint32_t lanes = 0;
    for (int i = 0; i < 16; ++i) lanes |= static_cast<std::uint32_t>(start + sum_of(a, i) <= limit) << i;
    return lanes;
}

struct Table16 {
    const std::uint8_t* v;
    static Table16 load(const std::uint8_t* p) { return {p}; }
    Bytes operator[](const Bytes& index) const {
        return each([&](int i) { return v[index.v[i]]; });
    }
};
struct Tables4 {
    const std::uint8_t* v;
    static Tables4 load(const std::uint8_t* p) { return {p}; }
    Bytes operator[](const Bytes& index) const {
        return each([&](int i) { return v[i / 16 * 16 + index.v[i]]; });
    }
};

struct Words {
    std::uint16_t v[64]{};
    void add(const Bytes& a) {
        for (int i = 0; i < 64; ++i) v[i] = static_cast<std::uint16_t>(v[i] + a.v[i] > 65535 ? 65535 : v[i] + a.v[i]);
    }
    std::uint64_t at_most(std::uint16_t limit) const {
        return lanes_where([&](int i) { return v[i] <= limit; });
    }
};

#endif

}  // namespace CGHASH_ISA
