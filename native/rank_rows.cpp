#include "rank_rows.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "parallel.hpp"
#include "reservoir.hpp"

namespace cghash {
namespace {

constexpr std::int64_t all_but_sign = std::numeric_limits<std::int64_t>::max();

// Whole numbers in the order of distances, NaN last, and back.
std::int64_t key_of(double distance) {
    if (std::isnan(distance)) distance = std::numeric_limits<double>::quiet_NaN();
    const auto bits = std::bit_cast<std::int64_t>(distance);
    return bits < 0 ? bits ^ all_but_sign : bits;
}
double distance_of(std::int64_t key) { return std::bit_cast<double>(key < 0 ? key ^ all_but_sign : key); }

std::int64_t value_bytes(RowType type) { return type == RowType::float32 ? 4 : type == RowType::float16 ? 2 : 1; }

// Numbers as doubles, with eight zeros in front, as kernels want them.
class Wide {
   public:
    explicit Wide(std::span<const float> values) : wide_(8 + values.size()) {
        std::copy(values.begin(), values.end(), wide_.begin() + 8);
    }
    const double* data() const { return wide_.data() + 8; }

   private:
    std::vector<double> wide_;
};

// Those of `given` that are there. Each is read once, so that what has been looked at is what serves.
std::vector<std::int64_t> checked(std::span<const std::int64_t> given, std::int64_t n) {
    std::vector<std::int64_t> candidates;
    candidates.reserve(given.size());
    for (const std::int64_t candidate : given) {
        if (candidate < -1 || candidate >= n)
            throw std::invalid_argument("candidates must be row numbers from 0 to n - 1, or -1 for none; got " +
                                        std::to_string(candidate) + " for n = " + std::to_string(n));
        if (candidate >= 0) candidates.push_back(candidate);
    }
    return candidates;
}

// A query's square, by the order of summation of rows
double square_of(std::span<const float> query, const Wide& wide) {
    const std::int64_t first = 0;
    const auto dim = static_cast<std::int64_t>(query.size());
    const RowTask itself{reinterpret_cast<const std::uint8_t*>(query.data()),
                         dim * 4,
                         dim,
                         RowType::float32,
                         RowMetric::inner,
                         wide.data(),
                         nullptr,
                         0.0};
    double square;
    kernels().row_distances(itself, &first, 1, &square);
    return -square;
}

void rank_one(const RowRanking& ranking, const Wide& scale, std::int64_t i, double* distances,
              std::int64_t* positions) {
    const std::int64_t c = ranking.n_candidates, dim = ranking.dim, k = ranking.k;
    const auto query = ranking.queries.subspan(i * dim, dim);
    const Wide wide(query);
    const auto candidates = checked(ranking.candidates.subspan(i * c, c), ranking.n);
    const double square = ranking.metric == RowMetric::cosine ? square_of(query, wide) : 0.0;
    const RowTask task{ranking.rows.data(), ranking.stride, dim,          ranking.type,
                       ranking.metric,      wide.data(),    scale.data(), square};
    std::vector<double> found(candidates.size());
    kernels().row_distances(task, candidates.data(), static_cast<std::int64_t>(candidates.size()), found.data());

    Reservoir nearest(k, Reservoir::unlimited, false);
    for (std::size_t j = 0; j < found.size(); ++j) nearest.offer({key_of(found[j]), candidates[j]});
    std::int64_t place = 0;
    for (const auto& [key, position] : nearest.sorted()) {
        distances[place] = distance_of(key);
        positions[place++] = position;
    }
    std::fill(distances + place, distances + k, std::numeric_limits<double>::infinity());
    std::fill(positions + place, positions + k, -1);
}

}  // namespace

void check_sizes(const RowRanking& ranking) {
    if (ranking.dim < 1) throw std::invalid_argument("queries must have at least one column");
    if (ranking.k < 1) throw std::invalid_argument("k must be at least 1");
    if (ranking.dim > ranking.stride / value_bytes(ranking.type))
        throw std::invalid_argument("rows must hold as many values as queries have columns");
    const bool scaled = ranking.type == RowType::int8;
    if (static_cast<std::int64_t>(ranking.scale.size()) != (scaled ? ranking.dim : 0))
        throw std::invalid_argument("scale must have one entry for each column of int8, and none for floats");
}

void rank_rows(const RowRanking& ranking, int n_threads, double* distances, std::int64_t* positions) {
    const Wide scale(ranking.scale);
    parallel_chunks(ranking.n_queries, n_threads, [&](std::int64_t i) {
        rank_one(ranking, scale, i, distances + i * ranking.k, positions + i * ranking.k);
    });
}

}  // namespace cghash
