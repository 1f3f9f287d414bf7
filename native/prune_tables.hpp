// Tables keyed by two bytes of the codes each, over the distinct codes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "code_blocks.hpp"
#include "huge_pages.hpp"
#include "lookups.hpp"

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

// The distinct codes by key; the key's bytes themselves are not stored again. In the first table, the codes of a key are
// sorted by their other bytes.
struct PruneTable {
    std::vector<std::uint8_t> key;   // one or two byte numbers
    std::vector<std::uint8_t> rest;  // the other byte numbers, as stored
    Shared<std::uint32_t> starts;    // (256^|key| + 1,) where each key's codes begin
    Shared<std::uint8_t> blocks;     // of 64 codes, |rest| bytes each

    std::uint32_t key_of(const std::uint8_t* code) const {
        return key.size() == 1 ? code[key[0]] : code[key[0]] | static_cast<std::uint32_t>(code[key[1]]) << 8;
    }
    std::uint32_t n_keys() const { return std::uint32_t{1} << (8 * key.size()); }
    // The code at a place whose key is known.
    void read(std::uint32_t key_value, std::int64_t place, std::uint8_t* code) const;
    // Order of the stored bytes of a code and of the code at a place: below 0, 0 or above 0.
    int compare(const std::uint8_t* rest_of_code, std::int64_t place) const;
};

// Covers the codes 0 … n_codes − 1 that were allowed. Places are those of the first table.
struct PruneTables {
    std::int64_t n_codes = 0, n_distinct = 0;
    std::vector<PruneTable> tables;
    Shared<std::uint32_t> rows;    // positions, by place; those of equal codes by id
    Shared<std::uint32_t> firsts;  // (n_distinct + 1,) where a place's rows begin; empty when each has one

    std::int64_t memory() const;
    // The place of a code in the first table, -1 for none.
    std::int64_t place_of(const std::uint8_t* code, const KernelTable& kernels) const;
    std::span<const std::uint32_t> rows_at(std::int64_t place) const;
    // Throws std::invalid_argument where sizes do not fit each other.
    void check(int n_bytes) const;
};

// How many keys are worth ordering: past so many, a scan is cheaper.
inline std::int64_t worth_ordering(std::int64_t n_keys, std::int64_t n_codes) {
    return std::min(n_keys, std::max<std::int64_t>(256, n_codes / 64));
}

// Null where they would take more than `most_bytes`.
std::unique_ptr<PruneTables> build_tables(const CodeBlocks& codes, const Lookups& lookups, const std::int64_t* ids,
                                          const std::uint8_t* allowed, double most_bytes, int n_threads);

}  // namespace cghash
