// SignedGraph, project, dot and tdot: convert, check shapes, release the GIL.
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
        const Unlocked unlocked;
        const auto& kernel = kernels();
        parallel_chunks((n + project_chunk - 1) / project_chunk, n_threads, [&](std::int64_t c) {
            const std::int64_t first = c * project_chunk, rows = std::min(project_chunk, n - first);
            run(kernel, X.data() + first * d, rows, coef.data(), d, l, values.data() + first * l);
        });
    }
    return give(std::move(values), {X.shape(0), coef.shape(0)});
}

void dot_rows(const KernelTable& kernel, const float* Z, std::int64_t n, std::int64_t d, const float* v, float* out) {
    kernel.dot_rows_f32(Z, n, d, v, out);
}
void dot_rows(const KernelTable& kernel, const std::uint8_t* Z, std::int64_t n, std::int64_t d, const float* v,
              float* out) {
    kernel.dot_rows_u8(Z, n, d, v, out);
}
void tdot_rows(const KernelTable& kernel, const float* Z, std::int64_t n, std::int64_t d, const float* r, double* g) {
    kernel.tdot_rows_f32(Z, n, d, r, g);
}
void tdot_rows(const KernelTable& kernel, const std::uint8_t* Z, std::int64_t n, std::int64_t d, const float* r,
               double* g) {
    kernel.tdot_rows_u8(Z, n, d, r, g);
}

constexpr std::int64_t pass_chunk = 1024;         // rows that one thread takes at a time
constexpr std::int64_t block_bytes = 128 * 1024;  // of rows that stay in the cache while all vectors pass over them

// Rows of a block, of so many bytes each: whole patches of the kernels, so that no sum depends on where blocks end.
std::int64_t block_rows(std::int64_t row_bytes) {
    const std::int64_t fitting = block_bytes / std::max<std::int64_t>(row_bytes, 1);
    return std::max<std::int64_t>(8, fitting / 8 * 8);
}

// run(first, rows) for the blocks of chunk c of n rows
template <class Run>
void in_blocks(std::int64_t c, std::int64_t n, std::int64_t row_bytes, Run run) {
    const std::int64_t end = std::min((c + 1) * pass_chunk, n), step = block_rows(row_bytes);
    for (std::int64_t first = c * pass_chunk; first < end; first += step) run(first, std::min(step, end - first));
}

template <class T>
Out<float> dot(In<T, 2> Z, In<float, 2> V, int n_threads) {
    if (Z.shape(1) != V.shape(1)) throw std::invalid_argument("V must have one column for each column of Z");
    const auto n = static_cast<std::int64_t>(Z.shape(0)), d = static_cast<std::int64_t>(Z.shape(1));
    const auto m = static_cast<std::int64_t>(V.shape(0));
    std::vector<float> out(V.shape(0) * Z.shape(0));
    {
        const Unlocked unlocked;
        const auto& kernel = kernels();
        parallel_chunks((n + pass_chunk - 1) / pass_chunk, n_threads, [&](std::int64_t c) {
            in_blocks(c, n, d * static_cast<std::int64_t>(sizeof(T)), [&](std::int64_t first, std::int64_t rows) {
                for (std::int64_t j = 0; j < m; ++j)
                    dot_rows(kernel, Z.data() + first * d, rows, d, V.data() + j * d, out.data() + j * n + first);
            });
        });
    }
    return give(std::move(out), {V.shape(0), Z.shape(0)});
}

// Every chunk sums into rows of its own; chunks are added in order, so the sum is the same for any n_threads.
template <class T>
Out<double> tdot(In<T, 2> Z, In<float, 2> R, int n_threads) {
    if (Z.shape(0) != R.shape(1)) throw std::invalid_argument("R must have one column for each row of Z");
    const auto n = static_cast<std::int64_t>(Z.shape(0)), d = static_cast<std::int64_t>(Z.shape(1));
    const auto m = static_cast<std::int64_t>(R.shape(0));
    const std::int64_t n_chunks = (n + pass_chunk - 1) / pass_chunk;
    std::vector<double> out(m * d, 0.0), parts(n_chunks * m * d, 0.0);
    {
        const Unlocked unlocked;
        const auto& kernel = kernels();
        parallel_chunks(n_chunks, n_threads, [&](std::int64_t c) {
            in_blocks(c, n, d * static_cast<std::int64_t>(sizeof(T)), [&](std::int64_t first, std::int64_t rows) {
                for (std::int64_t j = 0; j < m; ++j)
                    tdot_rows(kernel, Z.data() + first * d, rows, d, R.data() + j * n + first,
                              parts.data() + (c * m + j) * d);
            });
        });
        for (std::int64_t c = 0; c < n_chunks; ++c)
            for (std::int64_t f = 0; f < m * d; ++f) out[f] += parts[c * m * d + f];
    }
    return give(std::move(out), {R.shape(0), Z.shape(1)});
}

}  // namespace

void bind_pricing(nb::module_& m) {
    m.def("project", &project<float>, nb::arg("X").noconvert(), nb::arg("coef").noconvert(), nb::arg("n_threads"));
    m.def("project", &project<double>, nb::arg("X").noconvert(), nb::arg("coef").noconvert(), nb::arg("n_threads"));
    m.def("dot", &dot<float>, nb::arg("Z").noconvert(), nb::arg("V").noconvert(), nb::arg("n_threads"));
    m.def("dot", &dot<std::uint8_t>, nb::arg("Z").noconvert(), nb::arg("V").noconvert(), nb::arg("n_threads"));
    m.def("tdot", &tdot<float>, nb::arg("Z").noconvert(), nb::arg("R").noconvert(), nb::arg("n_threads"));
    m.def("tdot", &tdot<std::uint8_t>, nb::arg("Z").noconvert(), nb::arg("R").noconvert(), nb::arg("n_threads"));
    nb::class_<SignedGraph>(m, "SignedGraph")
        .def("__init__", [](SignedGraph* self, In<std::int32_t> first, In<std::int32_t> second,
                            std::int64_t n_items) { new (self) SignedGraph(view(first), view(second), n_items); })
        .def("set_weights",
             [](SignedGraph& self, In<double> weights, int n_threads) {
                 const Unlocked unlocked;
                 self.set_weights(view(weights), n_threads);
             })
        .def_prop_ro(
            "items", [](const SignedGraph& self) { return give(self.items()); }, nb::rv_policy::automatic)
        .def("laplacian",
             [](const SignedGraph& self, In<float> t, int n_threads) {
                 std::vector<float> out(self.items().size());
                 {
                     const Unlocked unlocked;
                     self.laplacian(view(t), out, n_threads);
                 }
                 return give(std::move(out));
             })
        .def("near_weight",
             [](const SignedGraph& self, int n_threads) {
                 std::vector<float> out(self.items().size());
                 {
                     const Unlocked unlocked;
                     self.near_weight(out, n_threads);
                 }
                 return give(std::move(out));
             })
        .def("gain", [](const SignedGraph& self, In<std::uint8_t> bits, int n_threads) {
            const Unlocked unlocked;
            return self.gain(view(bits), n_threads);
        });
}
