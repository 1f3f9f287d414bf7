// The nearest of each query's candidates, by the vectors themselves: the last step after a shortlist by codes.
#pragma once
#include <span>

#include "kernel_table.hpp"

namespace cghash {

struct RowRanking {
    std::span<const std::uint8_t> rows;  // (n, stride) bytes; each row begins with dim values of its type
    std::int64_t n, stride, dim;
    RowType type;
    std::span<const float> scale;    // (dim,) of int8: value f of a row is scale[f] · what is stored; else empty
    std::span<const float> queries;  // (q, dim)
    std::int64_t n_queries;
    std::span<const std::int64_t> candidates;  // (q, c) row numbers, -1 for none
    std::int64_t n_candidates;                 // c
    std::int64_t k;
    RowMetric metric;
};

// Throws std::invalid_argument where sizes do not fit each other.
void check_sizes(const RowRanking& ranking);

// The k nearest of each query's candidates, by (distance, row number): distances (q, k), then ∞; row numbers, then -1.
// NaN ranks last. A row that is a candidate twice comes twice. The same bits on each instruction set and for any number
// of threads. Throws std::invalid_argument for a candidate that is no row.
void rank_rows(const RowRanking& ranking, int n_threads, double* distances, std::int64_t* positions);

}  // namespace cghash
