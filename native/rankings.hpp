// Rankings of all items by distance, where items of equal distance have no order: what the criteria count.
//
// The keys of a query's items, distances as whole numbers, are spread over buckets, a few items to each,
// and each bucket again until it holds one distance, few items, or only relevant or only other ones: these last need
// no order, as they may stand in any. So nothing is sorted but what lies close together and differs in relevance.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace cghash {

struct RankTask {
    std::int64_t n_queries, n_kinds;
    std::span<const std::int32_t> kinds;     // (n_items,) items of one kind are alike to every query
    std::span<const std::uint8_t> relevant;  // (n_queries, n_kinds) 0 and 1
    std::span<const std::int64_t> cuts;      // (p,) ascending, 1 to n_items
    std::int64_t n_head;                     // 0 to n_items
};

// Expected values are over all orders of the items of equal distance.
struct Ranked {
    std::vector<double> average_precision;  // (n_queries,) nan without relevant items
    std::vector<double> within;             // (n_queries, p) expected number of relevant items among the first `cut`
    // The first n_head items and those that tie with the last of them, counted by tie group and kind
    std::vector<std::int64_t> first;  // (n_queries + 1,) where the entries of each query begin
    std::vector<std::int32_t> group;  // (entries,) from 0 in each query; ascending, then by kind
    std::vector<std::int32_t> kind;   // (entries,)
    std::vector<std::int64_t> count;  // (entries,)
};

// By the keys (n_queries, n_items) themselves.
Ranked rank_keys(const RankTask& task, std::span<const std::uint64_t> keys, int n_threads);
// By weighted Hamming distance: packed codes (n_queries, n_bytes) and (n_items, n_bytes), a weight for each bit, none
// negative, their sum below 2^53.
Ranked rank_codes(const RankTask& task, std::span<const std::uint8_t> queries, std::span<const std::uint8_t> items,
                  std::span<const std::int64_t> weights, int n_threads);

}  // namespace cghash
