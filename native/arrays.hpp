// NumPy arrays in and out of the bindings: views of what comes in, owners of what goes out.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>
#include <type_traits>
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

// An array (n, width) that NumPy makes, to be filled: for few numbers quicker than to hand over a vector. Needs the GIL.
template <class T> class Blank {
    static_assert(std::is_same_v<T, double> || std::is_same_v<T, std::int64_t>);

   public:
    Blank(std::size_t n, std::size_t width) : array_(numpy().empty(nb::make_tuple(n, width), type())) {
        values_ = nb::cast<nb::ndarray<T, nb::c_contig, nb::device::cpu>>(array_, false).data();
    }
    T* values() const { return values_; }
    nb::object give() && { return std::move(array_); }

   private:
    struct Numpy {
        nb::object empty, float64, int64;
    };
    static const Numpy& numpy() {  // never given back: it may outlive Python
        static const Numpy* found = nullptr;
        if (!found) {
            const auto module = nb::module_::import_("numpy");
            const auto type = module.attr("dtype");
            found = new Numpy{module.attr("empty"), type("float64"), type("int64")};
        }
        return *found;
    }
    static nb::handle type() { return std::is_same_v<T, double> ? numpy().float64 : numpy().int64; }

    nb::object array_;
    T* values_;
};
