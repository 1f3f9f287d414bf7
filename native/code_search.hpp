// Searches among codes, by scanning all of them or by pruning with tables; both are exact.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "code_blocks.hpp"
#include "lookups.hpp"
#include "reservoir.hpp"

namespace cghash {

// Queries and what they are asked among.
struct CodeQuery {
    const CodeBlocks& codes;
    const KernelTable& kernels;
    const Lookups* lookups;                 // of all queries; null where each has weights of its own
    std::span<const std::int64_t> weights;  // these, (n, 8·n_bytes), or one row for all
    std::span<const std::uint8_t> queries;  // (n, n_bytes)
    std::int64_t k;                         // Reservoir::unlimited for all within the limit
    const std::int64_t* ids;                // by position, null for positions themselves
    const std::uint8_t* allowed;            // a bit for each position, null for all
    int n_threads;

    std::int64_t n_queries() const { return static_cast<std::int64_t>(queries.size()) / codes.n_bytes(); }
    const std::uint8_t* query(std::int64_t i) const { return queries.data() + i * codes.n_bytes(); }
    std::span<const std::int64_t> own_weights(std::int64_t i) const {
        const auto n_bits = static_cast<std::size_t>(8 * codes.n_bytes());
        return weights.size() == n_bits ? weights : weights.subspan(static_cast<std::size_t>(i) * n_bits, n_bits);
    }
    Lookups own_lookups(std::int64_t i) const { return {own_weights(i), codes.n_bytes(), kernels}; }
    std::int64_t id(std::int64_t position) const { return ids ? ids[position] : position; }
    bool allows(std::int64_t position) const { return !allowed || (allowed[position / 8] >> (position % 8) & 1); }
};

using Answers = std::vector<std::vector<Found>>;  // by query, sorted

// The threads that a scan is worth: before another one has begun, the first has looked at some megabytes.
inline int scan_workers(std::int64_t n_bytes, std::int64_t n_queries, int n_threads, const KernelTable& kernels) {
    const auto head_start = static_cast<std::int64_t>(0x1.bp24 / kernels.block_ns);  // 6 MB at 4.5 ns
    return static_cast<int>(std::clamp<std::int64_t>(n_bytes * n_queries / head_start, 1, std::max(n_threads, 1)));
}

// Look at the codes first … last − 1; of `which` queries (all when empty), those within limits[i] of each.
Answers scan_search(const CodeQuery&, std::span<const std::int64_t> which, std::span<const std::int64_t> limits,
                    std::int64_t first, std::int64_t last);

}  // namespace cghash
