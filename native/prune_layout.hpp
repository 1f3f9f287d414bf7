// Which bits the keys of tables take, and how many tables there are.
//
// Keys take the bits that tell most, the first key the strongest of all: under heavy bits few masks are light, so that
// the first table raises the bound at little cost. Codes in tables have their bits in that order (BitOrder), the weakest
// of a key lowest, so that what light masks lead to lies close together. Few long keys pay where the nearest codes are
// near: each has few codes, and the first ones suffice. Many short keys pay where even the nearest are far. Sample
// queries decide.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "bit_order.hpp"
#include "lookups.hpp"

namespace cghash {

struct Layout {
    std::vector<int> key_bits;  // of each table, 24 at most
    BitOrder bits;              // bytes of the first key, then of the second, …, then those in none
};

// Bytes of a code that tables hold, of those in order: all that count, and all of keys. Bits of weight 0 are last.
int held_bytes(const std::vector<int>& key_bits, const Lookups&);

// A code, and how far the k-th nearest is from it.
struct Sample {
    std::vector<std::uint8_t> code;
    std::int64_t distance;
};

// Bytes that tables with so many bits in their keys take, where so many of each table's keys have codes.
using Memory = std::function<double(const std::vector<int>& key_bits, const std::vector<double>& n_used)>;

// Keys that take less: the last is shorter, or is no more.
void shorten(std::vector<int>& key_bits);

struct TableOptions {
    double most_bytes;
    std::vector<int> key_bits;  // of each key; chosen where there are none
};

// The best for codes (n, n_bytes) by the samples, of those within the limits; no keys where none is. Throws
// std::invalid_argument where codes have no room for the keys that are wanted.
Layout lay_out(std::span<const std::uint8_t> codes, const Lookups&, std::span<const Sample>, const Memory&,
               const TableOptions&);

}  // namespace cghash
