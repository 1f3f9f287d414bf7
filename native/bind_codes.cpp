// CodeBlocks: converts, checks lengths, releases the GIL.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <optional>
#include <string>
#include <tuple>

#include "arrays.hpp"
#include "code_index.hpp"
#include "whole_weights.hpp"

using namespace cghash;

namespace {

using Matrix = In<std::uint8_t, 2>;
using Ints = In<std::int64_t, 1>;
using Writable = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Of searches, which take microseconds.
using Queries = BufferView<std::uint8_t, 2>;
using Numbers = BufferView<std::int64_t>;
using Bits = BufferView<std::uint8_t>;

template <class Codes> void check_width(const CodeIndex& self, const Codes& codes) {
    if (codes.shape(1) != static_cast<std::size_t>(self.codes().n_bytes()))
        throw std::invalid_argument("codes must have n_bytes bytes");
}

CodeIndex::Request request_of(const CodeIndex& self, const Queries* queries, const Numbers& weights,
                              const std::optional<Numbers>& ids, const std::optional<Bits>& allowed,
                              std::int64_t n_allowed, int n_threads, bool own = false) {
    const auto n = static_cast<std::size_t>(self.codes().n_codes());
    if (queries) check_width(self, *queries);
    const auto row = static_cast<std::size_t>(8 * self.codes().n_bytes());
    if (own && weights.size() != row && weights.size() != 8 * queries->size())
        throw std::invalid_argument("weights must have one entry for each bit, or for each bit of each query");
    if (ids && ids->size() != n) throw std::invalid_argument("ids must be as many as codes");
    if (allowed && allowed->size() != (n + 7) / 8) throw std::invalid_argument("allowed must have a bit for each code");
    return {queries ? view(*queries) : std::span<const std::uint8_t>{},
            view(weights),
            own,
            ids ? ids->data() : nullptr,
            allowed ? allowed->data() : nullptr,
            n_allowed,
            std::max(n_threads, 1)};
}

void check_radii(const Queries& queries, const Numbers& radii) {
    if (radii.size() != queries.shape(0)) throw std::invalid_argument("radii must be as many as queries");
}

// What work gives, done without the GIL.
template <class Work> auto without_gil(Work work) {
    const Unlocked unlocked;
    return work();
}

using Pair = std::tuple<nb::object, nb::object>;
using Triple = std::tuple<Out<std::int64_t>, Out<double>, Out<std::int64_t>>;

// (q, k) distances, as multiples of a unit, and ids; ∞ and -1 where there are fewer. Needs the GIL.
Pair padded(const Answers& answers, std::int64_t k, double unit) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const std::size_t n = answers.size(), width = static_cast<std::size_t>(k);
    if (n && width > (std::size_t{1} << 40) / n) throw std::invalid_argument("k is too large");
    NewArray<double> distances(n, width);
    NewArray<std::int64_t> found(n, width);
    const auto fill = [&] {
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < width; ++j) {
                const bool is_there = j < answers[i].size();
                const auto at = i * width + j;
                distances.values()[at] = is_there ? static_cast<double>(answers[i][j].distance) * unit : infinity;
                found.values()[at] = is_there ? answers[i][j].id : -1;
            }
    };
    constexpr std::size_t many = 1 << 14;  // so that other threads need not wait
    if (n * width < many) fill();
    else without_gil(fill);
    return {std::move(distances).give(), std::move(found).give()};
}

// Offsets, distances and ids, query after query. Takes the GIL for the arrays alone.
Triple joined(const Answers& answers, double unit) {
    std::vector<std::int64_t> offsets{0}, found;
    std::vector<double> distances;
    for (const auto& answer : answers) {
        for (const auto& entry : answer) {
            distances.push_back(static_cast<double>(entry.distance) * unit);
            found.push_back(entry.id);
        }
        offsets.push_back(static_cast<std::int64_t>(found.size()));
    }
    const Locked locked;
    return {give(std::move(offsets)), give(std::move(distances)), give(std::move(found))};
}

// A Python object that C++ holds, given back under the GIL.
std::shared_ptr<void> kept_alive(nb::object object) {
    return {new nb::object(std::move(object)), [](void* p) {
                const Locked locked;
                delete static_cast<nb::object*>(p);
            }};
}

template <class T> SharedArray<T> shared_array(nb::handle array) {
    const auto values = nb::cast<In<T, 1>>(array);
    return SharedArray<T>(std::span<const T>(values.data(), values.size()), kept_alive(nb::cast(values)));
}

template <class T> Out<T> array_over(const SharedArray<T>& values) {
    auto* owner = new SharedArray<T>(values);
    nb::capsule capsule(owner, [](void* p) noexcept { delete static_cast<SharedArray<T>*>(p); });
    const std::size_t shape = values.size();
    return Out<T>(const_cast<T*>(values.values.data()), 1, &shape, capsule);
}

nb::dict prepared(const CodeIndex& self) {
    nb::dict arrays;
    const auto* tables = self.tables();
    if (!tables) return arrays;
    arrays["size"] = give(
        std::vector<std::int64_t>{tables->n_codes, tables->n_distinct, tables->tables.front().counted, tables->n_held});
    arrays["bits"] = give(std::vector<std::uint16_t>(tables->bits.from()));
    arrays["rows"] = array_over(tables->rows);
    if (!self.changed().empty()) arrays["changed"] = give(std::vector<std::int64_t>(self.changed()));
    arrays["marks"] = array_over(tables->marks);
    arrays["marked"] = array_over(tables->marked);
    for (std::size_t t = 0; t < tables->tables.size(); ++t) {
        const auto& table = tables->tables[t];
        const auto number = std::to_string(t);
        arrays[nb::str(("key" + number).c_str())] = give(std::vector<std::uint8_t>(table.key));
        arrays[nb::str(("words" + number).c_str())] = array_over(table.keys.words);
        arrays[nb::str(("starts" + number).c_str())] = array_over(table.keys.starts);
        arrays[nb::str(("groups" + number).c_str())] = array_over(table.groups);
    }
    return arrays;
}

std::unique_ptr<PruneTables> tables_of(const nb::dict& arrays, int n_bytes) {
    auto tables = std::make_unique<PruneTables>();
    const auto size = nb::cast<Ints>(arrays["size"]);
    if (size.size() != 4) throw std::invalid_argument("size must be four numbers");
    if (size.data()[3] < 1 || size.data()[3] > n_bytes)
        throw std::invalid_argument("bytes held must be those of the codes");
    tables->n_held = static_cast<int>(size.data()[3]);
    tables->n_codes = size.data()[0];
    tables->n_distinct = size.data()[1];
    const auto bits = nb::cast<In<std::uint16_t, 1>>(arrays["bits"]);
    tables->bits = BitOrder({bits.data(), bits.data() + bits.size()});
    tables->rows = shared_array<std::uint32_t>(arrays["rows"]);
    tables->marks = shared_array<std::uint32_t>(arrays["marks"]);
    tables->marked = shared_array<std::uint32_t>(arrays["marked"]);
    for (int t = 0; t < 4 && arrays.contains(("key" + std::to_string(t)).c_str()); ++t) {
        const auto number = std::to_string(t);
        PruneTable table;
        const auto key = nb::cast<In<std::uint8_t, 1>>(arrays[("key" + number).c_str()]);
        table.key.assign(key.data(), key.data() + key.size());
        table.keys.words = shared_array<std::uint32_t>(arrays[("words" + number).c_str()]);
        table.keys.starts = shared_array<std::uint32_t>(arrays[("starts" + number).c_str()]);
        table.groups = shared_array<std::uint8_t>(arrays[("groups" + number).c_str()]);
        if (table.key.empty() || table.key.size() > 3)
            throw std::invalid_argument("a key must have one to three bytes");
        // whether keys are a power of two is checked with the rest
        table.key_bits =
            std::min(static_cast<int>(std::bit_width(table.keys.n_keys())) - 1, 8 * static_cast<int>(table.key.size()));
        table.counted = size.data()[2] != 0;
        table.n_distinct = tables->n_distinct;
        table.set_rest(tables->n_held);
        tables->tables.push_back(std::move(table));
    }
    return tables;
}

}  // namespace

void bind_codes(nb::module_& m) {
    m.def(
        "whole_rows",
        [](BufferView<double, 2> weights, std::size_t n_columns) {
            auto found = whole_rows(view(weights), weights.shape(0), n_columns);
            return nb::make_tuple(give(std::move(found.whole), {weights.shape(0), n_columns}),
                                  give(std::move(found.units)));
        },
        nb::arg("weights"), nb::arg("n_columns"));
    nb::class_<CodeIndex>(m, "CodeBlocks")
        .def(nb::init<int>(), nb::arg("n_bytes"))
        .def_prop_ro("n_codes", [](const CodeIndex& self) { return self.codes().n_codes(); })
        .def_prop_ro("n_prepared", [](const CodeIndex& self) { return self.tables() ? self.tables()->n_codes : 0; })
        .def_prop_ro("n_bytes", [](const CodeIndex& self) { return self.codes().n_bytes(); })
        .def(
            "append",
            [](CodeIndex& self, Matrix codes) {
                check_width(self, codes);
                const Unlocked unlocked;
                self.append(view(codes));
            },
            nb::arg("codes"))
        .def("truncate", &CodeIndex::truncate, nb::arg("n_codes"))
        .def(
            "attach",
            [](CodeIndex& self, Writable blocks, std::int64_t n_codes) {
                self.attach({blocks.data(), blocks.size()}, n_codes, kept_alive(nb::cast(blocks)));
            },
            nb::arg("blocks"), nb::arg("n_codes"))
        .def("chunks",
             [](const CodeIndex& self) {
                 nb::list pieces;
                 for (const auto& chunk : self.codes().chunks()) {
                     auto* owner = new std::shared_ptr<std::uint8_t>(chunk.data);
                     nb::capsule capsule(
                         owner, [](void* p) noexcept { delete static_cast<std::shared_ptr<std::uint8_t>*>(p); });
                     const auto size =
                         static_cast<std::size_t>(self.codes().blocks_in(chunk) * self.codes().block_size());
                     pieces.append(nb::ndarray<nb::numpy, const std::uint8_t>(chunk.data.get(), 1, &size, capsule));
                 }
                 return pieces;
             })
        .def(
            "get",
            [](const CodeIndex& self, Ints positions) {
                return give(self.codes().get(view(positions)),
                            {positions.size(), static_cast<std::size_t>(self.codes().n_bytes())});
            },
            nb::arg("positions"))
        .def(
            "put",
            [](CodeIndex& self, Ints positions, Matrix codes) {
                check_width(self, codes);
                self.put(view(positions), view(codes));
            },
            nb::arg("positions"), nb::arg("codes"))
        .def(
            "search",
            [](const CodeIndex& self, Queries queries, std::int64_t k, Numbers weights, std::optional<Numbers> ids,
               std::optional<Bits> allowed, std::int64_t n_allowed, int n_threads, double unit, bool own) {
                if (k < 1) throw std::invalid_argument("k must be at least 1");
                const auto request = request_of(self, &queries, weights, ids, allowed, n_allowed, n_threads, own);
                return padded(without_gil([&] { return self.nearest(request, k); }), k, unit);
            },
            nb::arg("queries"), nb::arg("k"), nb::arg("weights"), nb::arg("ids").none(), nb::arg("allowed").none(),
            nb::arg("n_allowed"), nb::arg("n_threads"), nb::arg("unit") = 1.0, nb::arg("own") = false)
        .def(
            "range_search",
            [](const CodeIndex& self, Queries queries, Numbers radii, Numbers weights, std::optional<Numbers> ids,
               std::optional<Bits> allowed, std::int64_t n_allowed, int n_threads, double unit, bool own) {
                const auto request = request_of(self, &queries, weights, ids, allowed, n_allowed, n_threads, own);
                check_radii(queries, radii);
                const Unlocked unlocked;
                return joined(self.within(request, view(radii)), unit);
            },
            nb::arg("queries"), nb::arg("radii"), nb::arg("weights"), nb::arg("ids").none(), nb::arg("allowed").none(),
            nb::arg("n_allowed"), nb::arg("n_threads"), nb::arg("unit") = 1.0, nb::arg("own") = false)
        .def(
            "search_among",
            [](const CodeIndex& self, Queries queries, Numbers positions, std::int64_t k, Numbers weights,
               std::optional<Numbers> ids, int n_threads, double unit, bool own) {
                if (k < 1) throw std::invalid_argument("k must be at least 1");
                const auto request = request_of(self, &queries, weights, ids, std::nullopt, 0, n_threads, own);
                return padded(without_gil([&] { return self.among(request, view(positions), k, {}); }), k, unit);
            },
            nb::arg("queries"), nb::arg("positions"), nb::arg("k"), nb::arg("weights"), nb::arg("ids").none(),
            nb::arg("n_threads"), nb::arg("unit") = 1.0, nb::arg("own") = false)
        .def(
            "range_search_among",
            [](const CodeIndex& self, Queries queries, Numbers positions, Numbers radii, Numbers weights,
               std::optional<Numbers> ids, int n_threads, double unit, bool own) {
                const auto request = request_of(self, &queries, weights, ids, std::nullopt, 0, n_threads, own);
                check_radii(queries, radii);
                const Unlocked unlocked;
                return joined(self.among(request, view(positions), Reservoir::unlimited, view(radii)), unit);
            },
            nb::arg("queries"), nb::arg("positions"), nb::arg("radii"), nb::arg("weights"), nb::arg("ids").none(),
            nb::arg("n_threads"), nb::arg("unit") = 1.0, nb::arg("own") = false)
        .def(
            "prepare",
            [](CodeIndex& self, Numbers weights, std::optional<Numbers> ids, std::optional<Bits> allowed,
               double most_bytes, bool always, int n_threads, const std::vector<int>& key_bits) {
                const auto request = request_of(self, nullptr, weights, ids, allowed, 0, n_threads);
                const Unlocked unlocked;
                return self.prepare(request, {most_bytes, key_bits}, always);
            },
            nb::arg("weights"), nb::arg("ids").none(), nb::arg("allowed").none(), nb::arg("most_bytes"),
            nb::arg("always"), nb::arg("n_threads"), nb::arg("key_bits") = std::vector<int>{})
        .def("forget", &CodeIndex::forget)
        .def("forked", &CodeIndex::forked)
        .def(
            "reweight", [](CodeIndex& self, Numbers weights) { self.reweight(view(weights)); }, nb::arg("weights"))
        .def(
            "verify",
            [](const CodeIndex& self, std::optional<Numbers> ids, std::optional<Bits> allowed) {
                const auto request = request_of(self, nullptr, {}, ids, allowed, 0, 1);
                const Unlocked unlocked;
                self.verify(request.ids, request.allowed);
            },
            nb::arg("ids").none(), nb::arg("allowed").none())
        .def("prepared", prepared)
        .def(
            "adopt",
            [](CodeIndex& self, nb::dict arrays, bool always) {
                auto tables = tables_of(arrays, self.codes().n_bytes());
                if (!arrays.contains("changed")) return self.adopt(std::move(tables), {}, always);
                const auto changed = nb::cast<Ints>(arrays["changed"]);
                self.adopt(std::move(tables), view(changed), always);
            },
            nb::arg("arrays"), nb::arg("always") = false)
        .def("info", [](const CodeIndex& self) {
            nb::dict about;
            about["code_bytes"] = self.codes().memory();
            about["prune_bytes"] = self.prune_memory();
            return about;
        });
}
