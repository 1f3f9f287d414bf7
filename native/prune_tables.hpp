// Tables keyed by some bits of the codes each, over the distinct codes, whose bits are in an order of their own.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bit_order.hpp"
#include "code_blocks.hpp"
#include "key_directory.hpp"
#include "lookups.hpp"
#include "prefetch.hpp"

namespace cghash {

inline constexpr std::size_t most_tables = 4;

// The distinct codes by key; bytes that are all key are not stored again, and those that count nothing not at all: codes
// that differ only there are one code here. In the first table, the codes of a key are sorted by their other bytes; in the
// others, as in the first.
struct PruneTable {
    std::vector<std::uint8_t>
        key;  // one to three byte numbers, the highest byte first; of the last, the upper bits may be key alone
    int key_bits = 0;
    std::vector<std::uint8_t>
        rest;              // the numbers of bytes that are not all key, as stored: one that is partly key first
    bool counted = false;  // whether a byte behind the others tells how many rows a code has, 255 at most
    KeyDirectory keys;
    SharedArray<std::uint8_t> groups;  // of 16 codes
    std::int64_t n_distinct = 0;

    std::uint32_t n_keys() const { return std::uint32_t{1} << key_bits; }
    int width() const { return static_cast<int>(rest.size()); }
    int n_stored() const { return width() + counted; }  // bytes of a code
    // Bytes that are looked up to bound a distance: four at a time, and the last, which were the weakest when the table was
    // built, is not worth another four.
    int n_scanned() const { return width() > 4 && width() % 4 == 1 ? width() - 1 : width(); }
    std::int64_t n_groups() const { return (n_distinct + group_lanes - 1) / group_lanes; }
    std::int64_t group_size() const { return group_lanes * n_stored(); }
    std::uint32_t key_of(const std::uint8_t* code) const {
        std::uint32_t found = 0;
        for (std::size_t i = 0; i + 1 < key.size(); ++i) found = found << 8 | code[key[i]];
        return found << last_bits() | code[key.back()] >> (8 - last_bits());
    }
    // Of keys, by their XOR.
    std::int64_t key_weight(std::uint32_t mask, const Lookups& lookups) const {
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < key.size(); ++i) sum += lookups.byte_weight(key[i], key_byte(mask, i));
        return sum;
    }
    // The same without the bits that are stored too.
    std::int64_t stored_apart(std::uint32_t mask, std::int64_t weight, const Lookups& lookups) const {
        return last_bits() == 8 ? weight : weight - lookups.byte_weight(key.back(), key_byte(mask, key.size() - 1));
    }
    // Of the key with this number among those that have codes.
    Bucket bucket(std::uint32_t number) const { return keys.bucket(number, static_cast<std::uint32_t>(n_distinct)); }
    // Store all bytes that are held and are not all key.
    void set_rest(int n_held);
    // The code at a place whose key is known.
    void read(std::uint32_t key_value, std::int64_t place, std::uint8_t* code) const;
    // Order of the stored bytes of a code and of the code at a place: below 0, 0 or above 0.
    int compare(const std::uint8_t* rest_of_code, std::int64_t place) const;
    // Of the groups of a key, in the first table, the last that does not begin with a code later than this one.
    std::int64_t find_group(const Bucket& bucket, const std::uint8_t* code) const;
    // The lanes of a group whose stored bytes are these.
    std::uint32_t match(std::int64_t group, const std::uint8_t* rest_of_code) const;
    const std::uint8_t* at(std::int64_t place) const {
        return group_size() ? groups.values.data() + place / group_lanes * group_size() + place % group_lanes : nullptr;
    }
    // How many rows a code has at least.
    std::int64_t n_rows(const std::uint8_t* code_bytes) const {
        return counted ? std::max<std::int64_t>(code_bytes[group_lanes * width()], 1) : 1;
    }

   private:
    int last_bits() const { return key_bits - 8 * (static_cast<int>(key.size()) - 1); }
    std::uint8_t key_byte(std::uint32_t key_value, std::size_t i) const {
        if (i + 1 == key.size()) return static_cast<std::uint8_t>(key_value << (8 - last_bits()));
        return static_cast<std::uint8_t>(key_value >> (last_bits() + 8 * (key.size() - 2 - i)));
    }
};

// A table without codes for each key of a layout, for codes of which tables hold so many bytes.
std::vector<PruneTable> keyed_tables(const std::vector<int>& key_bits, int n_held);

// Covers the codes 0 … n_codes − 1 that were allowed. Places are those of the first table.
struct PruneTables {
    std::int64_t n_codes = 0, n_distinct = 0;
    BitOrder bits;   // of the codes in tables
    int n_held = 0;  // bytes of a code in that order; those behind counted nothing when tables were built
    std::vector<PruneTable> tables;
    SharedArray<std::uint32_t> rows;    // positions, by place; those of equal codes by id
    SharedArray<std::uint32_t> marks;   // a bit for each that is the first of its place; empty when each place has one
    SharedArray<std::uint32_t> marked;  // where the rows of each 16th place begin; empty likewise

    std::int64_t memory() const;
    // Whether all that counts under some weights is held.
    bool suit(std::span<const std::int64_t> weights) const;
    // The places of up to `at_once` codes, (n, most_pruned_bytes) bytes whose bits are in order, in the first table; -1 for none. Each
    // waits for memory, all together.
    static constexpr int at_once = 16;
    void find_places(const std::uint8_t* codes, int n, std::int64_t* places) const;
    // Have ready what this begins with.
    void ask_for_place(const std::uint8_t* code) const {
        tables.front().keys.ask_for_word(tables.front().key_of(code));
    }

    std::span<const std::uint32_t> rows_at(std::int64_t place) const;
    // Have ready what this begins with, in two steps.
    void ask_for_marked(std::int64_t place) const { prefetch(marks.size() ? &marked[place / 16] : &rows[place]); }
    void ask_for_marks(std::int64_t place) const {
        if (marks.size()) prefetch(&marks[std::min<std::size_t>(marked[place / 16] / 32, marks.size() - 1)]);
    }
    // Throws std::invalid_argument where sizes do not fit each other.
    void check(int n_bytes) const;

   private:
    // The first marked row from some row on, other marks passed over; rows.size() where there is none.
    std::size_t next_mark(std::size_t row, int passed) const;
};

// How many keys are worth ordering: past so many, a scan is cheaper.
inline std::int64_t worth_ordering(std::int64_t n_keys, std::int64_t n_codes) {
    return std::min({n_keys, std::max<std::int64_t>(256, n_codes / 64), std::int64_t{1} << 16});
}

}  // namespace cghash
