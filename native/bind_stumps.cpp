// Converts, checks shapes, releases the GIL; nothing else.
#include <stdexcept>

#include "arrays.hpp"
#include "stumps.hpp"

using namespace cghash;

namespace {

template <class T>
void append(StumpRanks& self, In<T, 2> ranks, In<std::int64_t> n_distinct) {
    if (ranks.shape(0) != n_distinct.size() || static_cast<std::int64_t>(ranks.shape(1)) != self.n_items())
        throw std::invalid_argument("ranks must have a row for each n_distinct, of n_items");
    self.append(view(ranks), view(n_distinct));
}

nb::tuple sweep(const StumpRanks& self, In<std::int32_t> a, In<std::int32_t> b, In<double> s,
                In<std::int64_t> taken_feature, In<std::int64_t> taken_rank, int n_threads) {
    StumpSweep found;
    {
        const Unlocked unlocked;
        found = self.sweep({view(a), view(b), view(s), view(taken_feature), view(taken_rank)}, n_threads);
    }
    return nb::make_tuple(give(std::move(found.gain)), give(std::move(found.rank)), give(std::move(found.positive)));
}

Out<double> gains(const StumpRanks& self, In<std::int32_t> a, In<std::int32_t> b, In<double> s, int n_threads) {
    std::vector<double> found;
    {
        const Unlocked unlocked;
        found = self.gains({view(a), view(b), view(s), {}, {}}, n_threads);
    }
    return give(std::move(found));
}

}  // namespace

void bind_stumps(nb::module_& m) {
    nb::class_<StumpRanks>(m, "StumpRanks")
        .def(nb::init<std::int64_t>())
        .def_prop_ro("n_items", &StumpRanks::n_items)
        .def_prop_ro("n_features", &StumpRanks::n_features)
        .def_prop_ro("n_bytes", &StumpRanks::n_bytes)
        // noconvert: a cast would wrap numbers that do not fit, and hide it
        .def("append", &append<std::uint8_t>, nb::arg("ranks").noconvert(), nb::arg("n_distinct").noconvert())
        .def("append", &append<std::uint16_t>, nb::arg("ranks").noconvert(), nb::arg("n_distinct").noconvert())
        .def("append", &append<std::uint32_t>, nb::arg("ranks").noconvert(), nb::arg("n_distinct").noconvert())
        .def("sweep", &sweep, nb::arg("a").noconvert(), nb::arg("b").noconvert(), nb::arg("s").noconvert(),
             nb::arg("taken_feature").noconvert(), nb::arg("taken_rank").noconvert(), nb::arg("n_threads"))
        .def("gains", &gains, nb::arg("a").noconvert(), nb::arg("b").noconvert(), nb::arg("s").noconvert(),
             nb::arg("n_threads"));
}
