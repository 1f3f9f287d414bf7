// NearestLists: converts, releases the GIL; the shapes are checked in nearest.cpp.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "arrays.hpp"
#include "nearest.hpp"

using namespace cghash;

namespace {

template <class T>
Out<T> matrix(const std::vector<T>& values, std::int64_t n_rows, std::int64_t n_columns) {
    return give(values, {static_cast<std::size_t>(n_rows), static_cast<std::size_t>(n_columns)});
}

std::optional<std::span<const std::uint8_t>> marks_of(const In<float, 2>& dots,
                                                      const std::optional<In<std::uint8_t, 2>>& relevant) {
    if (!relevant) return std::nullopt;
    if (relevant->shape(0) != dots.shape(0) || relevant->shape(1) != dots.shape(1))
        throw std::invalid_argument("relevant must have the shape of dots");
    return view(*relevant);
}

}  // namespace

void bind_nearest(nb::module_& m) {
    nb::class_<NearestLists>(m, "NearestLists")
        .def("__init__", [](NearestLists* self, In<float, 1> half, In<std::int32_t, 1> labels, std::int64_t n_near,
                            std::int64_t n_far) { new (self) NearestLists(view(half), view(labels), n_near, n_far); })
        .def(
            "begin", [](NearestLists& self, In<float, 1> near, In<float, 1> far) { self.begin(view(near), view(far)); },
            nb::arg("near"), nb::arg("far"))
        .def(
            "update",
            [](NearestLists& self, In<float, 2> dots, std::int64_t row, std::int64_t column,
               std::optional<In<std::uint8_t, 2>> relevant) {
                const auto marks = marks_of(dots, relevant);
                const Unlocked unlocked;
                self.update(view(dots), static_cast<std::int64_t>(dots.shape(0)),
                            static_cast<std::int64_t>(dots.shape(1)), row, column, marks);
            },
            nb::arg("dots"), nb::arg("row"), nb::arg("column"), nb::arg("relevant").none())
        .def(
            "update_leading",
            [](NearestLists& self, In<float, 2> dots, std::int64_t row, std::int64_t column,
               std::optional<In<std::uint8_t, 2>> relevant, In<float, 2> items, In<float, 1> low, In<float, 1> extra,
               In<float, 1> rest, In<float, 2> more) {
                const auto marks = marks_of(dots, relevant);
                const NearestBounds bounds{view(items),
                                           view(low),
                                           view(extra),
                                           view(rest),
                                           view(more),
                                           static_cast<std::int64_t>(items.shape(1)),
                                           static_cast<std::int64_t>(more.shape(1))};
                const Unlocked unlocked;
                return self.update_leading(view(dots), static_cast<std::int64_t>(dots.shape(0)),
                                           static_cast<std::int64_t>(dots.shape(1)), row, column, marks, bounds);
            },
            nb::arg("dots"), nb::arg("row"), nb::arg("column"), nb::arg("relevant").none(), nb::arg("items"),
            nb::arg("low"), nb::arg("extra"), nb::arg("rest"), nb::arg("more"))
        .def("near",
             [](const NearestLists& self) {
                 return std::pair(matrix(self.near_scores(), self.n_items(), self.n_near()),
                                  matrix(self.near_ids(), self.n_items(), self.n_near()));
             })
        .def("far", [](const NearestLists& self) {
            return std::pair(matrix(self.far_scores(), self.n_items(), self.n_far()),
                             matrix(self.far_ids(), self.n_items(), self.n_far()));
        });
}
