#include "lookups.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace cghash {
namespace {

// out[p] = in[p ^ x] for 2^bits entries: words move by x's upper bits, and the bytes within them by its lower three.
void permute(const std::uint8_t* in, int bits, unsigned x, std::uint8_t* out) {
    const int n_words = (1 << bits) / 8;
    for (int i = 0; i < n_words; ++i) {
        std::uint64_t word;
        std::memcpy(&word, in + 8 * (static_cast<unsigned>(i) ^ (x >> 3)), 8);
        if (x & 1) word = (word & 0x00ff00ff00ff00ff) << 8 | ((word >> 8) & 0x00ff00ff00ff00ff);
        if (x & 2) word = (word & 0x0000ffff0000ffff) << 16 | ((word >> 16) & 0x0000ffff0000ffff);
        if (x & 4) word = word << 32 | word >> 32;
        std::memcpy(out + 8 * i, &word, 8);
    }
}

// Sums over all subsets of some bits, and of one bit more: the first n, and then these with its weight.
template <class T> void double_up(T* sums, int n, T weight) {
    for (int i = 0; i < n; ++i) sums[n + i] = sums[i] + weight;
}

}  // namespace

Lookups::Lookups(std::span<const std::int64_t> weights, int n_bytes_, const KernelTable& kernels_, Serves serves)
    : kernels(kernels_), n_bytes(n_bytes_), exact_(32 * static_cast<std::size_t>(n_bytes_)) {
    if (weights.size() != 8 * static_cast<std::size_t>(n_bytes))
        throw std::invalid_argument("weights must have one entry for each bit of n_bytes");
    std::int64_t sum = 0;
    for (auto w : weights) {
        if (w < 0 || w >= std::int64_t{1} << 53 || (sum += w) >= std::int64_t{1} << 53)
            throw std::invalid_argument("weights must not be negative, and their sum below 2^53");
    }
    for (int bit = 0; bit < 8 * n_bytes; ++bit) double_up(exact_.data() + bit / 4 * 16, 1 << bit % 4, weights[bit]);
    if (serves == Serves::buckets) {
        nibbles_ = values_of(weights, 4);
        return;
    }
    scan_ = values_of(weights, kernels.lookup_bits);
    for (int j = 0; j < n_bytes; j += 8) {
        std::int64_t panel = 0;
        for (int i = j; i < std::min(j + 8, n_bytes); ++i) panel += byte_weight(i, 255);
        largest_panel_ = std::max(largest_panel_, panel);
    }
}

Lookups Lookups::permuted(const BitOrder& order) const {
    std::vector<std::int64_t> weights;
    for (const auto bit : order.from()) weights.push_back(bit_weight(bit));
    return Lookups(weights, n_bytes, kernels, Serves::buckets);
}

std::size_t Lookups::n_groups(int n_bytes, int lookup_bits) {
    const int upper = lookup_bits == 6 ? n_bytes / 8 * 3 + (n_bytes % 8 + 2) / 3 : n_bytes;
    return static_cast<std::size_t>(n_bytes + upper);
}

Lookups::Group Lookups::group(std::size_t number, int n_bytes, int lookup_bits) {
    const int g = static_cast<int>(number);
    if (lookup_bits == 4) return {4 * g, 4 * g + 1, 4 * g + 2, 4 * g + 3, -1, -1};
    constexpr int per_panel = 8 + 3;
    const int first = g / per_panel * 8, end = std::min(first + 8, n_bytes), at = g % per_panel;
    if (first + at < end)
        return {8 * (first + at),     8 * (first + at) + 1, 8 * (first + at) + 2,
                8 * (first + at) + 3, 8 * (first + at) + 4, 8 * (first + at) + 5};
    Group upper{-1, -1, -1, -1, -1, -1};
    const int byte = first + 3 * (at - (end - first));
    for (int i = 0; i < 3 && byte + i < end; ++i) {
        upper[2 * i] = 8 * (byte + i) + 6;
        upper[2 * i + 1] = 8 * (byte + i) + 7;
    }
    return upper;
}

std::vector<float> Lookups::values_of(std::span<const std::int64_t> weights, int lookup_bits) const {
    const std::size_t size = std::size_t{1} << lookup_bits, n = n_groups(n_bytes, lookup_bits);
    std::vector<float> values(n * size);
    for (std::size_t g = 0; g < n; ++g) {
        const auto bits = group(g, n_bytes, lookup_bits);
        for (int i = 0; i < lookup_bits; ++i)
            double_up(values.data() + g * size, 1 << i, bits[i] < 0 ? 0.0f : static_cast<float>(weights[bits[i]]));
    }
    return values;
}

double Lookups::scan_scale(std::int64_t limit) const {
    const auto most = wide() ? std::min(limit, largest_panel_) : limit;
    return full_scale / std::max(static_cast<double>(most), 0.5);
}

void Lookups::fill_scan(const std::uint8_t* query, double scale, std::uint8_t* tables) const {
    const int bits = kernels.lookup_bits, size = 1 << bits;
    std::array<std::uint8_t, 64> plain;
    // rounding to float, of weights, their five sums, scale and product, must not raise an entry
    const auto lowered = static_cast<float>(scale * (1.0 - 0x1p-20));
    for (std::size_t g = 0; g < n_groups(n_bytes, bits); ++g) {
        const auto group_bits = group(g, n_bytes, bits);
        unsigned x = 0;
        for (int i = 0; i < bits; ++i)
            if (const int bit = group_bits[i]; bit >= 0) x |= (query[bit / 8] >> (bit % 8) & 1u) << i;
        kernels.quantize(scan_.data() + g * size, size, lowered, plain.data());
        permute(plain.data(), bits, x, tables + g * size);
    }
}

bool Lookups::lighten(std::uint8_t* tables) const {
    constexpr std::size_t few = 8;             // one of so many: those of masks that differ in most of their bits
    if (n_bytes <= 4 || wide()) return false;  // no kernel asks
    std::uint8_t* end = tables + scan_size();
    const auto n_heavy =
        static_cast<std::size_t>(std::count_if(tables, end, [](std::uint8_t entry) { return entry > 127; }));
    if (few * n_heavy > scan_size()) return false;
    if (n_heavy)
        std::transform(tables, end, tables, [](std::uint8_t entry) { return std::min<std::uint8_t>(entry, 127); });
    return true;
}

void Lookups::fill_bucket(const std::uint8_t* query, double scale, std::uint8_t* tables) const {
    std::array<std::uint8_t, 2 * most_pruned_bytes * 16> plain;
    kernels.quantize(nibbles_.data(), std::ssize(nibbles_), static_cast<float>(scale * (1.0 - 0x1p-20)), plain.data());
    for (int g = 0; g < 2 * n_bytes; ++g)
        permute(plain.data() + 16 * g, 4, query[g / 2] >> (g % 2 * 4) & 15u, tables + 16 * g);
}

int limit_of(std::int64_t limit, double scale) {
    return static_cast<int>(std::min(std::floor(static_cast<double>(limit) * scale * (1.0 + 0x1p-40)), 65534.0));
}

}  // namespace cghash
