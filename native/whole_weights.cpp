#include "whole_weights.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace cghash {
namespace {

constexpr int fine = 52;               // the unit is 2^-52 of the total, rounded up to a power of two
constexpr int least_exponent = -1022;  // so that the unit is a number above 0

// In the order of NumPy's sum, which decides the unit where the total is near a power of two: eight sums side by side,
// of halves where there are many.
double sum_of(const double* w, std::size_t n) {
    double sum = 0;
    if (n < 8) {
        for (std::size_t i = 0; i < n; ++i) sum += w[i];
        return sum;
    }
    if (n > 128) {
        const auto half = n / 2 - n / 2 % 8;
        return sum_of(w, half) + sum_of(w + half, n - half);
    }
    double part[8];
    std::copy_n(w, 8, part);
    std::size_t i = 8;
    for (; i < n - n % 8; i += 8)
        for (int lane = 0; lane < 8; ++lane) part[lane] += w[i + lane];
    sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    for (; i < n; ++i) sum += w[i];
    return sum;
}

}  // namespace

WholeRows whole_rows(std::span<const double> weights, std::size_t n, std::size_t n_columns) {
    constexpr double largest = std::numeric_limits<double>::max();
    const auto n_bits = n ? weights.size() / n : 0;
    if (n * n_bits != weights.size() || n_bits > n_columns)
        throw std::invalid_argument("weights must have rows of equal length, no longer than n_columns");
    if (!std::all_of(weights.begin(), weights.end(), [](double w) { return w >= 0 && w <= largest; }))
        throw std::invalid_argument("weights must be finite and 0 or more");
    WholeRows found{std::vector<std::int64_t>(n * n_columns), std::vector<double>(n)};
    for (std::size_t i = 0; i < n; ++i) {
        const double* row = weights.data() + i * n_bits;
        const double total = sum_of(row, n_bits);
        if (!(total <= largest)) throw std::invalid_argument("weights must have a finite sum");
        int exponent = 0;
        std::frexp(total, &exponent);  // total < 2^exponent
        exponent = std::max(exponent, least_exponent);
        // in two steps: the power alone may be too large
        const double first = std::ldexp(1.0, -exponent), last = std::ldexp(1.0, fine);
        for (std::size_t j = 0; j < n_bits; ++j)
            found.whole[i * n_columns + j] = static_cast<std::int64_t>(std::nearbyint(row[j] * first * last));
        found.units[i] = std::ldexp(1.0, exponent - fine);
    }
    return found;
}

}  // namespace cghash
