// Converts, checks shapes, releases the GIL; nothing else.
#include <stdexcept>

#include "arrays.hpp"
#include "rankings.hpp"

using namespace cghash;

namespace {

RankTask task_of(In<std::int32_t> kinds, In<std::uint8_t, 2> relevant, In<std::int64_t> cuts, std::int64_t n_head) {
    return {static_cast<std::int64_t>(relevant.shape(0)),
            static_cast<std::int64_t>(relevant.shape(1)),
            view(kinds),
            view(relevant),
            view(cuts),
            n_head};
}

nb::tuple given(Ranked ranked, std::size_t p) {
    const std::size_t q = ranked.average_precision.size();
    return nb::make_tuple(give(std::move(ranked.average_precision)), give(std::move(ranked.within), {q, p}),
                          give(std::move(ranked.first)), give(std::move(ranked.group)), give(std::move(ranked.kind)),
                          give(std::move(ranked.count)));
}

nb::tuple keys(In<std::uint64_t, 2> keys, In<std::int32_t> kinds, In<std::uint8_t, 2> relevant, In<std::int64_t> cuts,
               std::int64_t n_head, int n_threads) {
    if (keys.shape(0) != relevant.shape(0) || keys.shape(1) != kinds.size())
        throw std::invalid_argument("keys must have a row for each query and a column for each item");
    Ranked ranked;
    {
        const Unlocked unlocked;
        ranked = rank_keys(task_of(kinds, relevant, cuts, n_head), view(keys), n_threads);
    }
    return given(std::move(ranked), cuts.size());
}

nb::tuple codes(In<std::uint8_t, 2> queries, In<std::uint8_t, 2> items, In<std::int64_t> weights,
                In<std::int32_t> kinds, In<std::uint8_t, 2> relevant, In<std::int64_t> cuts, std::int64_t n_head,
                int n_threads) {
    if (queries.shape(0) != relevant.shape(0) || items.shape(0) != kinds.size() ||
        8 * queries.shape(1) != weights.size() || 8 * items.shape(1) != weights.size())
        throw std::invalid_argument("codes must have a row for each query and item, of a byte for 8 weights");
    Ranked ranked;
    {
        const Unlocked unlocked;
        ranked =
            rank_codes(task_of(kinds, relevant, cuts, n_head), view(queries), view(items), view(weights), n_threads);
    }
    return given(std::move(ranked), cuts.size());
}

}  // namespace

void bind_rankings(nb::module_& m) {
    // noconvert: a cast would wrap numbers that do not fit, and hide it
    m.def("rank_keys", &keys, nb::arg("keys").noconvert(), nb::arg("kinds").noconvert(),
          nb::arg("relevant").noconvert(), nb::arg("cuts").noconvert(), nb::arg("n_head"), nb::arg("n_threads"));
    m.def("rank_codes", &codes, nb::arg("queries").noconvert(), nb::arg("items").noconvert(),
          nb::arg("weights").noconvert(), nb::arg("kinds").noconvert(), nb::arg("relevant").noconvert(),
          nb::arg("cuts").noconvert(), nb::arg("n_head"), nb::arg("n_threads"));
}
