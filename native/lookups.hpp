// What searches look up: exact distances by bytes, and tables of bytes that bound distances from below.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "bit_order.hpp"
#include "kernel_table.hpp"

namespace cghash {

inline constexpr int most_pruned_bytes = 128;  // of codes that have tables (prune_tables.hpp)

// Depends on the weights and the kernels alone; a table is indexed by the XOR of two codes' bits.
class Lookups {
   public:
    // What is made beside exact distances: tables for the scan of all codes, or for buckets of a table's.
    enum class Serves { scan, buckets };
    // One weight for each bit of n_bytes, none negative, their sum below 2^53.
    Lookups(std::span<const std::int64_t> weights, int n_bytes, const KernelTable& kernels,
            Serves serves = Serves::scan);

    const KernelTable& kernels;
    const int n_bytes;

    std::int64_t byte_weight(int byte, std::uint8_t differing) const {
        const auto* halves = exact_.data() + 32 * byte;
        return halves[differing & 15] + halves[16 + (differing >> 4)];
    }
    std::int64_t bit_weight(int bit) const { return byte_weight(bit / 8, static_cast<std::uint8_t>(1 << bit % 8)); }
    // The same for codes whose bits are in another order, and their buckets.
    Lookups permuted(const BitOrder&) const;
    // Distance of a query from a lane of a block that stores all bytes.
    std::int64_t distance(const std::uint8_t* query, const std::uint8_t* block, int lane) const {
        std::int64_t sum = 0;
        for (int j = 0; j < n_bytes; ++j) sum += byte_weight(j, query[j] ^ block[64 * j + lane]);
        return sum;
    }

    // Bytes that they take, or a little more.
    static std::int64_t memory(int n_bytes) { return std::int64_t{n_bytes} * (32 * 8 + 88 * 4 + 32 * 4); }

    // Tables for KernelTable::scan: size, and the scale at which a limit uses their range.
    static std::size_t scan_size(int n_bytes, const KernelTable& kernels) {
        return n_groups(n_bytes, kernels.lookup_bits) << kernels.lookup_bits;
    }
    std::size_t scan_size() const { return scan_.size(); }
    double scan_scale(std::int64_t limit) const;
    bool wide() const { return n_bytes > 16; }
    void fill_scan(const std::uint8_t* query, double scale, std::uint8_t* tables) const;
    // Lower the few entries that are above 127, so that the tables are light (ScanQuery); false where they are not few.
    bool lighten(std::uint8_t* tables) const;

    // Tables of nibbles for KernelTable::scan_bucket.
    std::size_t bucket_size() const { return nibbles_.size(); }
    void fill_bucket(const std::uint8_t* query, double scale, std::uint8_t* tables) const;

   private:
    using Group = std::array<int, 6>;  // bit numbers, -1 for none
    static std::size_t n_groups(int n_bytes, int lookup_bits);
    static Group group(std::size_t number, int n_bytes, int lookup_bits);
    std::vector<float> values_of(std::span<const std::int64_t> weights, int lookup_bits) const;

    std::vector<std::int64_t> exact_;  // (2·n_bytes, 16): small, so that those of many queries stay in a cache
    std::vector<float> scan_;          // (groups, 2^lookup_bits)
    std::vector<float> nibbles_;       // (2·n_bytes, 16)
    std::int64_t largest_panel_ = 0;   // weight of the heaviest eight bytes that are summed in bytes
};

// Which table entries a bound reaches: sums of entries ≤ limit_of(limit, scale) whenever the distance is ≤ limit.
inline constexpr double full_scale = 254.0;
inline constexpr double refill = 1.27;  // tables are made anew when a limit leaves more than this of their range idle
int limit_of(std::int64_t limit, double scale);

}  // namespace cghash
