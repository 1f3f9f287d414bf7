// Lower bounds of the distances of a key's codes, by look-ups of nibbles.
//
// Four bytes of 16 codes, a group, fill a register of 64 bytes, and each has a table of its own there.
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "../kernel_table.hpp"
#include "bytes64.hpp"

namespace CGHASH_ISA {
using namespace cghash;

// Lanes of `together` groups, which follow each other, that may be near enough; 16 bits each.
template <int together> inline std::uint64_t near_lanes(const std::uint8_t* group, const BucketQuery& query) {
    Bytes low[together], high[together];
    for (int i = 0; i < together; ++i) low[i] = high[i] = Bytes::fill(0);
    const auto add_four = [&](int j, auto load) {
        const Tables4 lows = Tables4::load(query.sheet + 32 * j), highs = Tables4::load(query.sheet + 32 * j + 64);
        for (int i = 0; i < together; ++i) {
            const Bytes bytes = load(group + 16 * (i * query.n_stored + j));
            low[i] = add(low[i], lows[low4(bytes)]);
            high[i] = add(high[i], highs[high4(bytes)]);
        }
    };
    int j = 0;
    for (; j + 4 <= query.n_bytes; j += 4) add_four(j, [](const std::uint8_t* p) { return Bytes::load(p); });
    if (const int left = query.n_bytes - j)
        add_four(j, [=](const std::uint8_t* p) { return load_first(p, 16 * left); });
    if constexpr (together == 4) {
        const Bytes sum =
            sums_of_four(add(low[0], high[0]), add(low[1], high[1]), add(low[2], high[2]), add(low[3], high[3]));
        return at_most(add(sum, Bytes::fill(*query.start)), *query.limit);
    } else {
        return sums_at_most(add(low[0], high[0]), *query.start, *query.limit);
    }
}

inline void scan_bucket(const BucketRange& range, const BucketQuery& query, GroupSurvivors survivors, void* context) {
    const std::int64_t size = group_lanes * query.n_stored;
    const auto first = range.first / group_lanes, end = (range.last + group_lanes - 1) / group_lanes;
    const auto asked = std::min(first + BucketRange::asked(query.n_stored), end);
    Lines now(range.groups + asked * size, range.groups + end * size), soon = range.soon;
    std::int64_t owed = 0;  // bytes that were read, for which no line was asked for yet
    const auto look = [&](std::int64_t group, auto together) {
        // one is asked for whenever one is read: many at once would have to wait for each other
        for (owed += together * size; owed >= 64; owed -= 64) {
            if (now.left()) now.ask();
            else if (soon.left()) soon.ask();
        }
        const auto* p = range.groups + group * size;
        auto lanes = near_lanes<together>(p, query);
        if (!lanes) [[likely]]
            return;
        const auto place = group * group_lanes, after = place + together * group_lanes;
        if (place < range.first) lanes &= ~std::uint64_t{0} << (range.first - place);
        if (after > range.last) lanes &= (std::uint64_t{1} << (range.last - place)) - 1;
        if (lanes) survivors(context, p, group, lanes);
    };
    auto group = first;
    look(group++, std::integral_constant<int, 1>());  // at the very first all are near, of as few as may be
    for (; group + 4 <= end; group += 4) look(group, std::integral_constant<int, 4>());
    for (; group < end; ++group) look(group, std::integral_constant<int, 1>());
    soon.ask_all();
}

}  // namespace CGHASH_ISA
