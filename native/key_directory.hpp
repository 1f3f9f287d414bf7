// Where the codes of each key begin, for those keys that have any: of long keys, most have none.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include "kernel_table.hpp"
#include "shared_array.hpp"

namespace cghash {

// Places first … last − 1.
struct Bucket {
    std::uint32_t first = 0, last = 0;
    bool empty() const { return first == last; }
    std::int64_t first_group() const { return first / group_lanes; }
    std::int64_t n_groups() const { return (last - 1) / group_lanes - first / group_lanes + 1; }  // when not empty
};

struct KeyDirectory {
    // for each 32 keys two: a bit for each that has codes, and how many have before them
    SharedArray<std::uint32_t> words;
    SharedArray<std::uint32_t> starts;  // where the codes of each key that has any begin; with the end behind

    KeyDirectory() = default;
    // From where each key's codes begin, (n_keys + 1,); keys are 32 or more, a power of two.
    explicit KeyDirectory(std::span<const std::uint32_t> begins);

    std::uint64_t n_keys() const { return words.size() / 2 * 32; }
    static double memory(double n_keys, double n_used) { return n_keys / 4 + 4 * n_used; }
    std::int64_t memory() const { return static_cast<std::int64_t>(4 * (words.size() + starts.size())); }
    // A key's number among those that have codes; `none` for one that has none.
    static constexpr std::uint32_t none = UINT32_MAX;
    std::uint32_t number_of(std::uint32_t key) const {
        const auto bits = words[key / 32 * 2], bit = std::uint32_t{1} << key % 32;
        return bits & bit ? words[key / 32 * 2 + 1] + count_ones(bits & (bit - 1)) : none;
    }
    // Of a key, by its number; what is here may come from a file that nobody has verified. No place is past n_codes.
    Bucket bucket(std::uint32_t number, std::uint32_t n_codes) const {
        if (std::size_t{number} + 1 >= starts.size()) return {};
        const auto last = std::min(starts[number + 1], n_codes);
        return {std::min(starts[number], last), last};
    }
    // Have ready what a key's number, and then what its bucket, begins with.
    void ask_for_word(std::uint32_t key) const { prefetch(&words[key / 32 * 2]); }
    void ask_for_start(std::uint32_t number) const {
        if (number < starts.size()) prefetch(&starts[number]);
    }

   private:
    // std::popcount is a call where the instruction may be missing.
    static std::uint32_t count_ones(std::uint32_t bits) {
        bits -= bits >> 1 & 0x55555555;
        bits = (bits & 0x33333333) + (bits >> 2 & 0x33333333);
        return ((bits + (bits >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
    }
};

}  // namespace cghash
