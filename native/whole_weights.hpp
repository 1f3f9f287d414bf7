// Weights as whole multiples of a unit, a power of two, such that sums of them are exact.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace cghash {

struct WholeRows {
    std::vector<std::int64_t> whole;  // (n, n_columns), zeros behind the weights
    std::vector<double> units;        // (n,)
};

// Of each row of weights (n, n_bits), whose sum is then below 2^53. Throws std::invalid_argument where a weight is not
// finite, or negative, and where a sum is not finite.
WholeRows whole_rows(std::span<const double> weights, std::size_t n, std::size_t n_columns);

}  // namespace cghash
