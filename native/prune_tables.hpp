// Tables keyed by some bits of the codes each, over the distinct codes, whose bits are in an order of their own.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bit_order.hpp"
#include "code_blocks.hpp"
#include "huge_pages.hpp"
#include "lookups.hpp"
#include "prefetch.hpp"
#include "prune_layout.hpp"

namespace cghash {

template <class T> using Made = std::vector<T, HugePages<T>>;

// A span with what keeps it alive: a vector of ours, or memory that was handed in.
template <class T> struct Shared {
    std::span<const T> values;
    std::shared_ptr<const void> owner;

    Shared() = default;
    Shared(Made<T> made) {  // NOLINT: on purpose implicit
        auto held = std::make_shared<const Made<T>>(std::move(made));
        values = *held;
        owner = held;
    }
    Shared(std::span<const T> handed, std::shared_ptr<const void> keeps) : values(handed), owner(std::move(keeps)) {}
    const T& operator[](std::size_t i) const { return values[i]; }
    std::size_t size() const { return values.size(); }
};

inline constexpr std::size_t most_tables = 4;

// The distinct codes by key; bytes that are all key are not stored again. In the first table, the codes of a key are
// sorted by their other bytes.
struct PruneTable {
    std::vector<std::uint8_t> key;   // one to three byte numbers; of the last, the lower bits may be key alone
    int key_bits = 0;
    std::vector<std::uint8_t> rest;  // the numbers of bytes that are not all key, as stored
    Shared<std::uint32_t> starts;    // (n_keys + 1,) where each key's codes begin
    Shared<std::uint8_t> blocks;     // of 64 codes, |rest| bytes each
    std::int64_t n_distinct = 0;

    std::uint32_t n_keys() const { return std::uint32_t{1} << key_bits; }
    std::uint32_t key_of(const std::uint8_t* code) const {
        std::uint32_t found = 0;
        for (std::size_t i = 0; i < key.size(); ++i) found |= static_cast<std::uint32_t>(code[key[i]]) << (8 * i);
        return found & (n_keys() - 1);
    }
    // Of keys, by their XOR.
    std::int64_t key_weight(std::uint32_t mask, const Lookups& lookups) const {
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < key.size(); ++i)
            sum += lookups.byte_weight(key[i], static_cast<std::uint8_t>(mask >> (8 * i)));
        return sum;
    }
    // The same without the bits that are stored too.
    std::int64_t stored_apart(std::uint32_t mask, std::int64_t weight, const Lookups& lookups) const {
        const int whole = key_bits / 8 * 8;
        return whole == key_bits ? weight : weight - lookups.byte_weight(key.back(), static_cast<std::uint8_t>(mask >> whole));
    }
    // Where the codes of a key are; the starts may come from a file that nobody has verified.
    struct Bucket {
        std::int64_t first, last;
        bool empty() const { return first == last; }
        std::int64_t n_blocks() const { return (last - 1) / 64 - first / 64 + 1; }  // when not empty
    };
    Bucket bucket(std::uint32_t key_value) const {
        const auto last = std::min<std::int64_t>(starts[key_value + 1], n_distinct);
        return {std::min<std::int64_t>(starts[key_value], last), last};
    }
    // Store all bytes that are not all key.
    void set_rest(int n_bytes);
    // The code at a place whose key is known.
    void read(std::uint32_t key_value, std::int64_t place, std::uint8_t* code) const;
    // Order of the stored bytes of a code and of the code at a place: below 0, 0 or above 0.
    int compare(const std::uint8_t* rest_of_code, std::int64_t place) const;
};

// A table without codes for each key of a layout.
std::vector<PruneTable> keyed_tables(const Layout&, int n_bytes);

// Covers the codes 0 … n_codes − 1 that were allowed. Places are those of the first table.
struct PruneTables {
    std::int64_t n_codes = 0, n_distinct = 0;
    BitOrder bits;                 // of the codes in tables
    std::vector<PruneTable> tables;
    Shared<std::uint32_t> rows;    // positions, by place; those of equal codes by id
    Shared<std::uint32_t> firsts;  // (n_distinct + 1,) where a place's rows begin; empty when each has one

    std::int64_t memory() const;
    // The place of a code, its bits in order, in the first table; -1 for none.
    std::int64_t place_of(const std::uint8_t* code, const KernelTable& kernels) const;
    std::span<const std::uint32_t> rows_at(std::int64_t place) const;
    // Have ready what these two begin with.
    void ask_for_place(const std::uint8_t* code) const { prefetch(&tables.front().starts[tables.front().key_of(code)]); }
    void ask_for_rows(std::int64_t place) const {
        if (place >= 0) prefetch(firsts.size() ? &firsts[place] : &rows[place]);
    }
    // Throws std::invalid_argument where sizes do not fit each other.
    void check(int n_bytes) const;
};

// How many keys are worth ordering: past so many, a scan is cheaper.
inline std::int64_t worth_ordering(std::int64_t n_keys, std::int64_t n_codes) {
    return std::min({n_keys, std::max<std::int64_t>(256, n_codes / 64), std::int64_t{1} << 16});
}

// Null where the limits allow none. Queries like the samples shall be quick.
std::unique_ptr<PruneTables> build_tables(const CodeBlocks& codes, const Lookups& lookups, std::span<const Sample> samples,
                                          const std::int64_t* ids, const std::uint8_t* allowed, const TableOptions& options,
                                          int n_threads);

}  // namespace cghash
