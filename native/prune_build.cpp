#include "prune_build.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <string_view>

#include "parallel.hpp"

namespace cghash {
namespace {

// The distinct codes in the order of the first table, and the rows of each.
struct Distinct {
    HugePageVector<std::uint8_t> codes;    // (n, n_bytes)
    std::vector<std::uint32_t> counts;     // (n,) rows of each
    HugePageVector<std::uint32_t> rows;    // those of equal codes by id
    HugePageVector<std::uint32_t> starts;  // by key, where its codes begin; with the end behind
    std::size_t n() const { return counts.size(); }
};

// Rows that have the same key, sorted by (other bytes, id) and grouped.
class Sorter {
   public:
    Sorter(const HugePageVector<std::uint8_t>& codes, int n_bytes, const PruneTable& table, const std::int64_t* ids)
        : codes_(codes), n_bytes_(n_bytes), rest_(table.rest), ids_(ids) {}

    void add(std::span<const std::uint32_t> rows, Distinct& to) {
        keyed_.clear();
        for (auto row : rows) {
            std::uint64_t key = 0;
            for (std::size_t j = 0; j < std::min<std::size_t>(rest_.size(), 8); ++j)
                key = key << 8 | code(row)[rest_[j]];
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
    const std::uint8_t* code(std::uint32_t row) const {
        return codes_.data() + static_cast<std::size_t>(row) * n_bytes_;
    }
    int compare_further(const Keyed& a, const Keyed& b) const {
        for (std::size_t j = 8; j < rest_.size(); ++j)
            if (const int order = code(a.row)[rest_[j]] - code(b.row)[rest_[j]]) return order;
        return 0;
    }

    const HugePageVector<std::uint8_t>& codes_;
    int n_bytes_;
    const std::vector<std::uint8_t>& rest_;
    const std::int64_t* ids_;
    std::vector<Keyed> keyed_;
};

// Numbers 0 … n − 1 by key, and where each key begins.
template <class KeyOf>
std::vector<std::uint32_t> by_key(std::size_t n, std::uint32_t n_keys, KeyOf key_of,
                                  HugePageVector<std::uint32_t>& starts) {
    std::vector<std::uint32_t> keys(n);
    starts.assign(n_keys + 1, 0);
    for (std::size_t i = 0; i < n; ++i) ++starts[(keys[i] = key_of(i)) + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    auto next = starts;
    std::vector<std::uint32_t> order(n);
    for (std::size_t i = 0; i < n; ++i) order[next[keys[i]]++] = static_cast<std::uint32_t>(i);
    return order;
}

Distinct distinct_of(const HugePageVector<std::uint8_t>& codes, int n_bytes, const PruneTable& table,
                     const std::int64_t* ids, const std::uint8_t* allowed, int n_threads) {
    const auto n = codes.size() / n_bytes;
    HugePageVector<std::uint32_t> starts;
    const auto order =
        by_key(n, table.n_keys(), [&](std::size_t i) { return table.key_of(codes.data() + i * n_bytes); }, starts);
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
    all.starts.reserve(table.n_keys() + 1);
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

struct Counts {
    std::int64_t n_codes, n_distinct, n_rows;  // here, that differ, and that were allowed
    // Whether it pays to tell how many rows a code has: then few codes are the k nearest.
    bool are_told() const { return n_distinct < n_rows - n_rows / 4; }
};

// Bytes of tables, and of what a search adds to them: weights and masks of the keys in order.
double memory_of(const std::vector<int>& key_bits, int n_bytes, int n_held, const Counts& counts,
                 const std::vector<double>& n_used) {
    auto bytes = static_cast<double>(BitOrder::memory(n_bytes) + 4 * counts.n_rows);
    if (counts.n_distinct < counts.n_rows)
        bytes += static_cast<double>(4 * (counts.n_rows / 32 + 1) + 4 * (counts.n_distinct / 16 + 1));
    for (std::size_t t = 0; t < key_bits.size(); ++t) {
        const std::int64_t n_keys = std::int64_t{1} << key_bits[t];
        PruneTable table;
        table.n_distinct = counts.n_distinct;
        table.rest.resize(n_held - key_bits[t] / 8);
        table.counted = counts.are_told();
        bytes +=
            static_cast<double>(table.n_groups() * table.group_size() + 12 * worth_ordering(n_keys, counts.n_codes));
        bytes += KeyDirectory::memory(static_cast<double>(n_keys), n_used[t] + 1);
    }
    return bytes;
}

// How many keys of a table have codes.
double count_used(const PruneTable& table, const Distinct& distinct, int n_bytes) {
    std::vector<bool> used(table.n_keys());
    std::int64_t count = 0;
    for (std::size_t i = 0; i < distinct.n(); ++i) {
        const auto key = table.key_of(distinct.codes.data() + i * n_bytes);
        if (used[key]) continue;
        used[key] = true;
        ++count;
    }
    return static_cast<double>(count);
}

// Make keys shorter until the tables take no more than they may: how many of them have codes was not known before.
void fit_keys(std::vector<int>& key_bits, const Distinct& distinct, int n_bytes, int n_held, const Counts& counts,
              double most_bytes) {
    for (; !key_bits.empty(); shorten(key_bits)) {
        const auto tables = keyed_tables(key_bits, n_held);
        std::vector<double> n_used(tables.size());
        for (std::size_t t = 0; t < tables.size(); ++t)
            n_used[t] = static_cast<double>(std::min<std::int64_t>(tables[t].n_keys(), counts.n_distinct));
        for (std::size_t t = 0; t < tables.size() && memory_of(key_bits, n_bytes, n_held, counts, n_used) > most_bytes;
             ++t)
            n_used[t] = count_used(tables[t], distinct, n_bytes);
        if (memory_of(key_bits, n_bytes, n_held, counts, n_used) <= most_bytes) return;
    }
}

// About how many of the codes differ in bits that count: of those whose hash ends in some zeros, exactly.
std::int64_t about_distinct(const HugePageVector<std::uint8_t>& codes, const Lookups& lookups) {
    const int n_bytes = lookups.n_bytes;
    const auto n = codes.size() / n_bytes;
    std::array<std::uint8_t, most_pruned_bytes> counts{}, code{};
    for (int bit = 0; bit < 8 * n_bytes; ++bit)
        counts[bit / 8] |= static_cast<std::uint8_t>((lookups.bit_weight(bit) > 0) << bit % 8);
    const int zeros = std::max(0, static_cast<int>(std::bit_width(n)) - 16);
    std::vector<std::uint64_t> hashes;
    for (std::size_t i = 0; i < n; ++i) {
        for (int j = 0; j < n_bytes; ++j) code[j] = codes[i * n_bytes + j] & counts[j];
        const auto hash = std::hash<std::string_view>()(
            {reinterpret_cast<const char*>(code.data()), static_cast<std::size_t>(n_bytes)});
        if (!(hash & ((std::uint64_t{1} << zeros) - 1))) hashes.push_back(hash);
    }
    std::sort(hashes.begin(), hashes.end());
    const auto different = std::unique(hashes.begin(), hashes.end()) - hashes.begin();
    const auto found = std::max<std::int64_t>(different << zeros, 1);
    return found < static_cast<std::int64_t>(0.97 * static_cast<double>(n)) ? found : static_cast<std::int64_t>(n);
}

void permute(HugePageVector<std::uint8_t>& codes, const BitOrder& bits, int n_bytes, int n_threads) {
    constexpr std::int64_t at_once = 1 << 16;
    const auto n = static_cast<std::int64_t>(codes.size()) / n_bytes;
    parallel_chunks((n + at_once - 1) / at_once, n_threads, [&](std::int64_t chunk) {
        for (auto i = chunk * at_once; i < std::min(n, (chunk + 1) * at_once); ++i)
            bits.apply(codes.data() + i * n_bytes, codes.data() + i * n_bytes);
    });
}

void fill_groups(PruneTable& table, const Distinct& distinct, int n_bytes, const std::vector<std::uint32_t>* order) {
    constexpr std::size_t ahead = 16;
    const auto n = distinct.n();
    const auto number = [&](std::size_t place) { return order ? (*order)[place] : place; };
    const auto code = [&](std::size_t place) { return distinct.codes.data() + number(place) * n_bytes; };
    table.n_distinct = static_cast<std::int64_t>(n);
    HugePageVector<std::uint8_t> groups(static_cast<std::size_t>(table.n_groups() * table.group_size()));
    for (std::size_t place = 0; place < n; ++place) {
        if (order && place + ahead < n) prefetch(code(place + ahead));
        const std::uint8_t* from = code(place);
        std::uint8_t* to = groups.data() + place / group_lanes * table.group_size() + place % group_lanes;
        for (int j = 0; j < table.width(); ++j) to[group_lanes * j] = from[table.rest[j]];
        if (table.counted)
            to[group_lanes * table.width()] = static_cast<std::uint8_t>(std::min(distinct.counts[number(place)], 255u));
    }
    table.groups = std::move(groups);
}

void fill(PruneTable& table, const Distinct& distinct, int n_bytes) {
    HugePageVector<std::uint32_t> starts;
    const auto key_of = [&](std::size_t i) { return table.key_of(distinct.codes.data() + i * n_bytes); };
    const auto order = by_key(distinct.n(), table.n_keys(), key_of, starts);
    fill_groups(table, distinct, n_bytes, &order);
    table.keys = KeyDirectory(starts);
}

// Which rows are of which place.
void mark_rows(PruneTables& tables, const Distinct& distinct) {
    HugePageVector<std::uint32_t> marks((distinct.rows.size() + 31) / 32), marked((distinct.n() + 15) / 16);
    std::uint32_t row = 0;
    for (std::size_t place = 0; place < distinct.n(); ++place) {
        if (place % 16 == 0) marked[place / 16] = row;
        marks[row / 32] |= std::uint32_t{1} << row % 32;
        row += distinct.counts[place];
    }
    tables.marks = std::move(marks);
    tables.marked = std::move(marked);
}

}  // namespace

std::unique_ptr<PruneTables> build_tables(const CodeBlocks& blocks, const Lookups& lookups,
                                          std::span<const Sample> samples, const std::int64_t* ids,
                                          const std::uint8_t* allowed, const TableOptions& options, int n_threads) {
    const auto n = blocks.n_codes();
    const int n_bytes = blocks.n_bytes();
    if (n < 1 || n > UINT32_MAX || n_bytes > most_pruned_bytes) return nullptr;
    HugePageVector<std::uint8_t> codes(static_cast<std::size_t>(n) * n_bytes);
    blocks.read_all(codes.data(), 0, n);
    const auto different = about_distinct(codes, lookups);
    const auto memory = [&](const std::vector<int>& key_bits, const std::vector<double>& n_used) {
        return memory_of(key_bits, n_bytes, held_bytes(key_bits, lookups), {n, different, n}, n_used);
    };
    auto layout = lay_out(codes, lookups, samples, memory, options);
    if (layout.key_bits.empty()) return nullptr;
    permute(codes, layout.bits, n_bytes, n_threads);
    auto made = std::make_unique<PruneTables>();
    made->n_held = held_bytes(layout.key_bits, lookups);
    made->tables = keyed_tables(layout.key_bits, made->n_held);
    made->bits = std::move(layout.bits);
    auto distinct = distinct_of(codes, n_bytes, made->tables[0], ids, allowed, n_threads);
    if (!distinct.n()) return nullptr;
    made->n_codes = n;
    made->n_distinct = static_cast<std::int64_t>(distinct.n());
    const Counts counts{n, made->n_distinct, static_cast<std::int64_t>(distinct.rows.size())};
    fit_keys(layout.key_bits, distinct, n_bytes, made->n_held, counts, options.most_bytes);
    if (layout.key_bits.empty()) return nullptr;
    made->tables = keyed_tables(layout.key_bits, made->n_held);  // the first key is the same: it is not made shorter
    codes = {};
    parallel_chunks(static_cast<std::int64_t>(made->tables.size()), n_threads, [&](std::int64_t t) {
        auto& table = made->tables[t];
        table.counted = counts.are_told();
        if (t) fill(table, distinct, n_bytes);
        else {
            fill_groups(table, distinct, n_bytes, nullptr);
            table.keys = KeyDirectory(distinct.starts);
        }
    });
    if (made->n_distinct < counts.n_rows) mark_rows(*made, distinct);
    made->rows = std::move(distinct.rows);
    return made;
}

}  // namespace cghash
