// Converts, releases the GIL; sizes are checked in rank_rows.cpp.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <array>
#include <stdexcept>
#include <string>

#include "arrays.hpp"
#include "rank_rows.hpp"

using namespace cghash;

namespace {

// Which of three names it is
int place_of(const char* parameter, const std::string& name, const std::array<const char*, 3>& names) {
    for (int place = 0; place < 3; ++place)
        if (name == names[place]) return place;
    throw std::invalid_argument(std::string(parameter) + " must be '" + names[0] + "', '" + names[1] + "' or '" +
                                names[2] + "', got '" + name + "'");
}

RowType type_of(const std::string& name) {
    return static_cast<RowType>(place_of("dtype", name, {"float32", "float16", "int8"}));
}

RowMetric metric_of(const std::string& name) {
    return static_cast<RowMetric>(place_of("metric", name, {"euclidean", "inner", "cosine"}));
}

nb::tuple ranked(const BufferView<std::uint8_t, 2>& rows, const std::string& dtype,
                 const std::optional<BufferView<float>>& scale, const BufferView<float, 2>& queries,
                 const BufferView<std::int64_t, 2>& candidates, std::int64_t k, const std::string& metric,
                 int n_threads) {
    if (candidates.shape(0) != queries.shape(0))
        throw std::invalid_argument("candidates must have a row for each query");
    const RowRanking ranking{view(rows),
                             static_cast<std::int64_t>(rows.shape(0)),
                             static_cast<std::int64_t>(rows.shape(1)),
                             static_cast<std::int64_t>(queries.shape(1)),
                             type_of(dtype),
                             scale ? view(*scale) : std::span<const float>(),
                             view(queries),
                             static_cast<std::int64_t>(queries.shape(0)),
                             view(candidates),
                             static_cast<std::int64_t>(candidates.shape(1)),
                             k,
                             metric_of(metric)};
    check_sizes(ranking);
    NewArray<double> distances(queries.shape(0), static_cast<std::size_t>(k));
    NewArray<std::int64_t> positions(queries.shape(0), static_cast<std::size_t>(k));
    {
        const Unlocked unlocked;
        rank_rows(ranking, n_threads, distances.values(), positions.values());
    }
    return nb::make_tuple(std::move(distances).give(), std::move(positions).give());
}

}  // namespace

void bind_rows(nb::module_& m) {
    m.def("rank_rows", &ranked, nb::arg("rows"), nb::arg("dtype"), nb::arg("scale").none(), nb::arg("queries"),
          nb::arg("candidates"), nb::arg("k"), nb::arg("metric"), nb::arg("n_threads"));
}
