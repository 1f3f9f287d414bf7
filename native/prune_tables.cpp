#include "prune_tables.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "parallel.hpp"
#include "prefetch.hpp"

namespace cghash {
namespace {

constexpr int most_tables = 4;

// The distinct codes in the order of the first table, and the rows of each.
struct Distinct {
    Made<std::uint8_t> codes;           // (n, n_bytes)
    std::vector<std::uint32_t> counts;  // (n,) rows of each
    Made<std::uint32_t> rows;           // those of equal codes by id
    Made<std::uint32_t> starts;         // by key, where its codes begin; with the end behind
    std::size_t n() const { return counts.size(); }
};

// Rows that have the same key, sorted by (other bytes, id) and grouped.
class Sorter {
   public:
    Sorter(const Made<std::uint8_t>& codes, int n_bytes, const PruneTable& table, const std::int64_t* ids)
        : codes_(codes), n_bytes_(n_bytes), rest_(table.rest), ids_(ids) {}

    void add(std::span<const std::uint32_t> rows, Distinct& to) {
        keyed_.clear();
        for (auto row : rows) {
            std::uint64_t key = 0;
            for (std::size_t j = 0; j < std::min<std::size_t>(rest_.size(), 8); ++j) key = key << 8 | code(row)[rest_[j]];
            keyed_.push_back({key, row});
        }
        std::sort(keyed_.begin(), keyed_.end(), [this](const Keyed& a, const Keyed& b) {
            if (a.key != b.key) return a.key < b.key;
            if (const int order = compare_further(a, b)) return order < 0;
            return ids_ ? ids_[a.row] < ids_[b.row] : a.row < b.row;
        });
        for (std::size_t i = 0; i < keyed_.size(); ++i) {
            if (i == 0 || keyed_[i].key != keyed_[i - 1].key || compare_further(keyed_[i], keyed_[i - 1])) {
                to.codes.insert(to.codes.end(), code(keyed_[i].row), code(keyed_[i].row) + n_bytes_);
                to.counts.push_back(0);
            }
            ++to.counts.back();
            to.rows.push_back(keyed_[i].row);
        }
    }

   private:
    struct Keyed {
        std::uint64_t key;  // the first eight of the other bytes
        std::uint32_t row;
    };
    const std::uint8_t* code(std::uint32_t row) const { return codes_.data() + static_cast<std::size_t>(row) * n_bytes_; }
    int compare_further(const Keyed& a, const Keyed& b) const {
        for (std::size_t j = 8; j < rest_.size(); ++j)
            if (const int order = code(a.row)[rest_[j]] - code(b.row)[rest_[j]]) return order;
        return 0;
    }

    const Made<std::uint8_t>& codes_;
    int n_bytes_;
    const std::vector<std::uint8_t>& rest_;
    const std::int64_t* ids_;
    std::vector<Keyed> keyed_;
};

// Numbers 0 … n − 1 by key, and where each key begins.
template <class KeyOf>
std::vector<std::uint32_t> by_key(std::size_t n, std::uint32_t n_keys, KeyOf key_of, Made<std::uint32_t>& starts) {
    std::vector<std::uint16_t> keys(n);
    starts.assign(n_keys + 1, 0);
    for (std::size_t i = 0; i < n; ++i) ++starts[(keys[i] = static_cast<std::uint16_t>(key_of(i))) + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    auto next = starts;
    std::vector<std::uint32_t> order(n);
    for (std::size_t i = 0; i < n; ++i) order[next[keys[i]]++] = static_cast<std::uint32_t>(i);
    return order;
}

Distinct distinct_of(const Made<std::uint8_t>& codes, int n_bytes, const PruneTable& table,
                     const std::int64_t* ids, const std::uint8_t* allowed, int n_threads) {
    const auto n = codes.size() / n_bytes;
    Made<std::uint32_t> starts;
    const auto order = by_key(n, table.n_keys(), [&](std::size_t i) { return table.key_of(codes.data() + i * n_bytes); }, starts);
    constexpr std::uint32_t n_parts = 64;
    std::vector<Distinct> parts(n_parts);
    parallel_chunks(n_parts, n_threads, [&](std::int64_t at) {
        auto& part = parts[at];
        Sorter sorter(codes, n_bytes, table, ids);
        std::vector<std::uint32_t> rows;
        const auto per_part = table.n_keys() / n_parts;
        for (auto key = static_cast<std::uint32_t>(at) * per_part, end = key + per_part; key < end; ++key) {
            part.starts.push_back(static_cast<std::uint32_t>(part.n()));
            rows.clear();
            for (auto i = starts[key]; i < starts[key + 1]; ++i)
                if (!allowed || allowed[order[i] / 8] >> (order[i] % 8) & 1) rows.push_back(order[i]);
            sorter.add(rows, part);
        }
    });
    Distinct all;
    for (auto& part : parts) {
        for (auto start : part.starts) all.starts.push_back(static_cast<std::uint32_t>(all.n()) + start);
        all.codes.insert(all.codes.end(), part.codes.begin(), part.codes.end());
        all.counts.insert(all.counts.end(), part.counts.begin(), part.counts.end());
        all.rows.insert(all.rows.end(), part.rows.begin(), part.rows.end());
        part = {};
    }
    all.starts.push_back(static_cast<std::uint32_t>(all.n()));
    return all;
}

// Bytes by how much distance they tell, the most first: a bit counts its weight times the share of its rarer value.
std::vector<int> by_strength(const Made<std::uint8_t>& codes, const Lookups& lookups) {
    const int n_bytes = lookups.n_bytes;
    const auto n = codes.size() / n_bytes, step = std::max<std::size_t>(1, n / 4096);
    std::vector<std::int64_t> ones(8 * n_bytes);
    std::int64_t looked = 0;
    for (std::size_t i = 0; i < n; i += step, ++looked)
        for (int bit = 0; bit < 8 * n_bytes; ++bit) ones[bit] += codes[i * n_bytes + bit / 8] >> (bit % 8) & 1;
    std::vector<double> strength(n_bytes);
    for (int bit = 0; bit < 8 * n_bytes; ++bit)
        strength[bit / 8] += static_cast<double>(lookups.byte_weight(bit / 8, static_cast<std::uint8_t>(1 << bit % 8))) *
                             static_cast<double>(std::min(ones[bit], looked - ones[bit]));
    std::vector<int> order(n_bytes);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return strength[a] > strength[b]; });
    return order;
}

// The strongest byte goes with the weakest that is taken, and so on.
std::vector<PruneTable> dealt(std::vector<int> bytes, int n_tables, int n_bytes) {
    bytes.resize(std::min<std::size_t>(bytes.size(), 2 * n_tables));
    std::vector<PruneTable> tables(n_tables);
    for (int t = 0; t < n_tables; ++t) {
        auto& table = tables[t];
        table.key.push_back(static_cast<std::uint8_t>(bytes[t]));
        const auto partner = 2 * n_tables - 1 - t;
        if (partner < static_cast<int>(bytes.size())) table.key.push_back(static_cast<std::uint8_t>(bytes[partner]));
        for (int j = 0; j < n_bytes; ++j)
            if (std::find(table.key.begin(), table.key.end(), j) == table.key.end())
                table.rest.push_back(static_cast<std::uint8_t>(j));
    }
    return tables;
}

// Memory of tables over so many codes, and what a search adds to them: ranks and order of the keys.
double planned(const std::vector<PruneTable>& tables, std::int64_t n_distinct, std::int64_t n_rows) {
    // starts and ranks of all keys; weights and masks of those in order
    double bytes = 4.0 * static_cast<double>(n_rows) + (n_distinct < n_rows ? 4.0 * static_cast<double>(n_distinct) : 0.0);
    for (const auto& table : tables)
        bytes += static_cast<double>(table.rest.size()) * static_cast<double>(n_distinct) + 6.0 * table.n_keys() +
                 10.0 * static_cast<double>(worth_ordering(table.n_keys(), n_rows));
    return bytes;
}

void fill_blocks(PruneTable& table, const Distinct& distinct, int n_bytes, const std::vector<std::uint32_t>* order) {
    constexpr std::size_t ahead = 16;
    const auto n = distinct.n(), width = table.rest.size();
    const auto code = [&](std::size_t place) {
        return distinct.codes.data() + (order ? (*order)[place] : place) * n_bytes;
    };
    Made<std::uint8_t> blocks((n + 63) / 64 * 64 * width);
    for (std::size_t place = 0; place < n; ++place) {
        if (order && place + ahead < n) prefetch(code(place + ahead));
        const std::uint8_t* from = code(place);
        std::uint8_t* to = blocks.data() + place / 64 * 64 * width + place % 64;
        for (std::size_t j = 0; j < width; ++j) to[64 * j] = from[table.rest[j]];
    }
    table.blocks = std::move(blocks);
}

void fill(PruneTable& table, const Distinct& distinct, int n_bytes) {
    Made<std::uint32_t> starts;
    const auto key_of = [&](std::size_t i) { return table.key_of(distinct.codes.data() + i * n_bytes); };
    const auto order = by_key(distinct.n(), table.n_keys(), key_of, starts);
    fill_blocks(table, distinct, n_bytes, &order);
    table.starts = std::move(starts);
}

}  // namespace

void PruneTable::read(std::uint32_t key_value, std::int64_t place, std::uint8_t* code) const {
    for (std::size_t i = 0; i < key.size(); ++i) code[key[i]] = static_cast<std::uint8_t>(key_value >> (8 * i));
    const std::uint8_t* from = blocks.values.data() + place / 64 * 64 * static_cast<std::int64_t>(rest.size()) + place % 64;
    for (std::size_t j = 0; j < rest.size(); ++j) code[rest[j]] = from[64 * j];
}

int PruneTable::compare(const std::uint8_t* rest_of_code, std::int64_t place) const {
    const std::uint8_t* p = blocks.values.data() + place / 64 * 64 * static_cast<std::int64_t>(rest.size()) + place % 64;
    for (std::size_t j = 0; j < rest.size(); ++j)
        if (const int order = rest_of_code[j] - p[64 * j]) return order;
    return 0;
}

std::int64_t PruneTables::memory() const {
    auto bytes = 4 * (rows.size() + firsts.size());
    for (const auto& table : tables) bytes += 4 * table.starts.size() + table.blocks.size();
    return static_cast<std::int64_t>(bytes);
}

std::int64_t PruneTables::place_of(const std::uint8_t* code, const KernelTable& kernels) const {
    const auto& table = tables.front();
    const auto key = table.key_of(code);
    const std::int64_t first = table.starts[key], last = table.starts[key + 1];
    std::uint8_t rest[128];
    const int width = static_cast<int>(table.rest.size());
    for (int j = 0; j < width; ++j) rest[j] = code[table.rest[j]];
    if (first == last) return -1;
    auto low = first / 64, high = (last - 1) / 64;  // the last block that does not begin with a later code
    while (low < high) {
        const auto middle = (low + high + 1) / 2;
        if (table.compare(rest, middle * 64) < 0) high = middle - 1;
        else low = middle;
    }
    auto lanes = kernels.match(table.blocks.values.data() + low * 64 * width, rest, width);
    if (low * 64 < first) lanes &= ~std::uint64_t{0} << (first - low * 64);
    if ((low + 1) * 64 > last) lanes &= ~std::uint64_t{0} >> ((low + 1) * 64 - last);
    return lanes ? low * 64 + std::countr_zero(lanes) : -1;
}

std::span<const std::uint32_t> PruneTables::rows_at(std::int64_t place) const {
    if (!firsts.size()) return rows.values.subspan(place, 1);
    const std::size_t begin = firsts[place], end = firsts[place + 1];
    // the arrays may come from a file that nobody has verified
    return begin <= end && end <= rows.size() ? rows.values.subspan(begin, end - begin) : std::span<const std::uint32_t>{};
}

void PruneTables::check(int n_bytes) const {
    const auto fail = [](const char* what) { throw std::invalid_argument(what); };
    if (tables.empty() || n_distinct < 1 || n_distinct > n_codes || n_codes > UINT32_MAX)
        fail("tables must cover some codes");
    if (firsts.size() ? static_cast<std::int64_t>(firsts.size()) != n_distinct + 1
                      : static_cast<std::int64_t>(rows.size()) != n_distinct)
        fail("rows must be as many as codes");
    std::vector<std::uint8_t> keys;
    for (const auto& table : tables) keys.insert(keys.end(), table.key.begin(), table.key.end());
    std::sort(keys.begin(), keys.end());
    if (std::adjacent_find(keys.begin(), keys.end()) != keys.end()) fail("keys must not share a byte");
    for (const auto& table : tables) {
        if (table.key.empty() || table.key.size() > 2) fail("a key must have one or two bytes");
        std::vector<std::uint8_t> bytes(table.key);
        bytes.insert(bytes.end(), table.rest.begin(), table.rest.end());
        std::sort(bytes.begin(), bytes.end());
        for (int j = 0; j < n_bytes; ++j)
            if (static_cast<int>(bytes.size()) != n_bytes || bytes[j] != j) fail("a table must name every byte once");
        if (table.starts.size() != table.n_keys() + 1 || table.starts[0] != 0 ||
            table.starts[table.n_keys()] != n_distinct ||
            !std::is_sorted(table.starts.values.begin(), table.starts.values.end()))
            fail("starts must ascend from 0 to the number of codes");
        if (static_cast<std::int64_t>(table.blocks.size()) !=
            (n_distinct + 63) / 64 * 64 * static_cast<std::int64_t>(table.rest.size()))
            fail("blocks must hold every code");
    }
}

std::unique_ptr<PruneTables> build_tables(const CodeBlocks& blocks, const Lookups& lookups, const std::int64_t* ids,
                                          const std::uint8_t* allowed, double most_bytes, int n_threads) {
    const auto n = blocks.n_codes();
    const int n_bytes = blocks.n_bytes();
    if (n < 1 || n > UINT32_MAX) return nullptr;
    Made<std::uint8_t> codes(static_cast<std::size_t>(n) * n_bytes);
    blocks.read_all(codes.data(), 0, n);
    auto made = std::make_unique<PruneTables>();
    const auto strongest = by_strength(codes, lookups);
    int n_tables = std::min(most_tables, (n_bytes + 1) / 2);
    for (;; --n_tables) {  // as if all codes were distinct
        if (n_tables == 0) return nullptr;
        made->tables = dealt(strongest, n_tables, n_bytes);
        if (planned(made->tables, n, n) <= most_bytes) break;
    }
    auto distinct = distinct_of(codes, n_bytes, made->tables[0], ids, allowed, n_threads);
    if (!distinct.n()) return nullptr;
    made->n_codes = n;
    made->n_distinct = static_cast<std::int64_t>(distinct.n());
    const auto n_rows = static_cast<std::int64_t>(distinct.rows.size());
    while (planned(made->tables, made->n_distinct, n_rows) > most_bytes) {
        made->tables.pop_back();
        if (made->tables.empty()) return nullptr;
    }
    codes = {};
    parallel_chunks(static_cast<std::int64_t>(made->tables.size()), n_threads, [&](std::int64_t t) {
        if (t) fill(made->tables[t], distinct, n_bytes);
        else fill_blocks(made->tables[0], distinct, n_bytes, nullptr);
    });
    made->tables[0].starts = std::move(distinct.starts);
    if (made->n_distinct < n_rows) {
        Made<std::uint32_t> firsts(distinct.n() + 1);
        std::partial_sum(distinct.counts.begin(), distinct.counts.end(), firsts.begin() + 1);
        made->firsts = std::move(firsts);
    }
    made->rows = std::move(distinct.rows);
    return made;
}

}  // namespace cghash
