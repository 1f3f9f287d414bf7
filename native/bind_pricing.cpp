// SignedGraph and project: convert, check shapes, release the GIL.
#include <stdexcept>

#include "arrays.hpp"
#include "kernel_table.hpp"
#include "parallel.hpp"
#include "signed_graph.hpp"

using namespace cghash;

namespace {

constexpr std::int64_t project_chunk = 256;  // rows that one thread takes at a time

void run(const KernelTable& kernel, const float* X, std::int64_t n, const double* coef, std::int64_t d, std::int64_t l,
         double* out) {
    kernel.project_f32(X, n, coef, d, l, out);
}
void run(const KernelTable& kernel, const double* X, std::int64_t n, const double* coef, std::int64_t d, std::int64_t l,
         double* out) {
    kernel.project_f64(X, n, coef, d, l, out);
}

template <class T>
Out<double> project(In<T, 2> X, In<double, 2> coef, int n_threads) {
    if (X.shape(1) != coef.shape(1)) throw std::invalid_argument("X and coef must have the same number of columns");
    const auto n = static_cast<std::int64_t>(X.shape(0)), d = static_cast<std::int64_t>(X.shape(1)),
               l = static_cast<std::int64_t>(coef.shape(0));
    std::vector<double> values(X.shape(0) * coef.shape(0));
    {
        nb::gil_scoped_release unlocked;
        const auto& kernel = kernels();
        parallel_chunks((n + project_chunk - 1) / project_chunk, n_threads, [&](std::int64_t c) {
            const std::int64_t first = c * project_chunk, rows = std::min(project_chunk, n - first);
            run(kernel, X.data() + first * d, rows, coef.data(), d, l, values.data() + first * l);
        });
    }
    return give(std::move(values), {X.shape(0), coef.shape(0)});
}

}  // namespace

void bind_pricing(nb::module_& m) {
    m.def("project", &project<float>, nb::arg("X").noconvert(), nb::arg("coef").noconvert(), nb::arg("n_threads"));
    m.def("project", &project<double>, nb::arg("X").noconvert(), nb::arg("coef").noconvert(), nb::arg("n_threads"));
    nb::class_<SignedGraph>(m, "SignedGraph")
        .def("__init__",
             [](SignedGraph* self, In<std::int32_t> first, In<std::int32_t> second, std::int64_t n_items) {
                 new (self) SignedGraph(view(first), view(second), n_items);
             })
        .def("set_weights",
             [](SignedGraph& self, In<double> weights, int n_threads) {
                 nb::gil_scoped_release unlocked;
                 self.set_weights(view(weights), n_threads);
             })
        .def_prop_ro("items", [](const SignedGraph& self) { return give(self.items()); }, nb::rv_policy::automatic)
        .def("laplacian",
             [](const SignedGraph& self, In<float> t, int n_threads) {
                 std::vector<float> out(self.items().size());
                 {
                     nb::gil_scoped_release unlocked;
                     self.laplacian(view(t), out, n_threads);
                 }
                 return give(std::move(out));
             })
        .def("near_weight",
             [](const SignedGraph& self, int n_threads) {
                 std::vector<float> out(self.items().size());
                 self.near_weight(out, n_threads);
                 return give(std::move(out));
             })
        .def("gain", [](const SignedGraph& self, In<std::uint8_t> bits, int n_threads) {
            nb::gil_scoped_release unlocked;
            return self.gain(view(bits), n_threads);
        });
}
