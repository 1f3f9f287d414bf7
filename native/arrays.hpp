// NumPy arrays in and out of the bindings: views of what comes in, owners of what goes out.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace nb = nanobind;

template <class T, int dimensions = 1>
using In = nb::ndarray<const T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
template <class T> using Out = nb::ndarray<nb::numpy, T>;

template <class Array>
auto view(const Array& array) {
    return std::span(array.data(), array.size());
}

template <class T>
Out<T> give(std::vector<T> values, std::vector<std::size_t> shape) {
    auto* owned = new std::vector<T>(std::move(values));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Out<T>(owned->data(), shape.size(), shape.data(), owner);
}

template <class T>
Out<T> give(std::vector<T> values) {
    const std::size_t size = values.size();
    return give(std::move(values), {size});
}
