// Converts, checks shapes, releases the GIL; nothing else.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "kernel_table.hpp"
#include "pair_table.hpp"

using namespace cghash;

void bind_codes(nb::module_& m);
void bind_lock(nb::module_& m);
void bind_nearest(nb::module_& m);
void bind_pricing(nb::module_& m);
void bind_rankings(nb::module_& m);
void bind_rows(nb::module_& m);
void bind_stumps(nb::module_& m);

namespace {

Loss loss_of(int code) {
    if (code < 0 || code > 3) throw std::invalid_argument("loss code must lie between 0 and 3");
    return static_cast<Loss>(code);
}

void bind_pair_table(nb::module_& m) {
    nb::class_<PairTable>(m, "PairTable")
        .def("__init__",
             [](PairTable* self, In<std::int64_t> anchors, In<std::int64_t> near_ptr, In<std::int64_t> near,
                In<std::int64_t> far_ptr, In<std::int64_t> far, In<double> weights, std::int64_t n_items) {
                 new (self) PairTable(view(anchors), view(near_ptr), view(near), view(far_ptr), view(far),
                                      view(weights), n_items);
             })
        .def_prop_ro("n_slots", &PairTable::n_slots)
        .def_prop_ro("n_columns", &PairTable::n_columns)
        .def_prop_ro("n_bytes", &PairTable::n_bytes)
        .def("reserve",
             [](PairTable& self, int n_columns) {
                 if (n_columns < 0 || n_columns > 65536)
                     throw std::invalid_argument("n_columns must lie between 0 and 65536");
                 self.reserve(n_columns);
             })
        .def("append", [](PairTable& self, In<std::uint8_t> bits) { self.append(view(bits)); })
        .def("evaluate",
             [](const PairTable& self, int loss, In<double> w, int n_threads) {
                 std::vector<double> gradient(self.n_columns());
                 double value;
                 {
                     const Unlocked unlocked;
                     value = self.evaluate(loss_of(loss), view(w), gradient, n_threads);
                 }
                 return std::pair(value, give(std::move(gradient)));
             })
        .def("distances",
             [](const PairTable& self, In<double> w, int n_threads) {
                 std::vector<double> D(self.n_slots());
                 {
                     const Unlocked unlocked;
                     self.distances(view(w), D, n_threads);
                 }
                 return give(std::move(D));
             })
        .def("adjoint",
             [](const PairTable& self, In<double> q, int n_threads) {
                 std::vector<double> gradient(self.n_columns());
                 {
                     const Unlocked unlocked;
                     self.adjoint(view(q), gradient, n_threads);
                 }
                 return give(std::move(gradient));
             })
        .def("loss",
             [](const PairTable& self, int loss, In<double> D, int n_threads) {
                 std::vector<double> q(self.n_slots());
                 double value;
                 {
                     const Unlocked unlocked;
                     value = self.loss(loss_of(loss), view(D), q, n_threads);
                 }
                 return std::pair(value, give(std::move(q)));
             })
        .def("counts", [](const PairTable& self, In<double> D, double low, double high, int n_threads) {
            const Unlocked unlocked;
            return self.counts(view(D), low, high, n_threads);
        });
}

}  // namespace

NB_MODULE(_native, m) {
    nb::set_leak_warnings(false);  // a daemon thread that the interpreter's end stops keeps what it holds
    m.def("instruction_set", [] { return std::string(kernels().name); });
    m.def("instruction_sets", [] {
        std::vector<std::string> names;
        for (const auto* table : runnable_kernels()) names.emplace_back(table->name);
        return names;
    });
    m.def("choose_instruction_set", &choose_kernels);
    bind_codes(m);
    bind_lock(m);
    bind_pair_table(m);
    bind_stumps(m);
    bind_nearest(m);
    bind_pricing(m);
    bind_rankings(m);
    bind_rows(m);
}
