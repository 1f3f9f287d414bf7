#include "prune_check.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>

namespace cghash {
namespace {

using Code = std::array<std::uint8_t, most_pruned_bytes>;

void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

bool has_bit(const std::uint8_t* bits, std::int64_t i) { return bits[i / 8] >> (i % 8) & 1; }

void check_directory(const KeyDirectory& keys, std::int64_t n_distinct) {
    std::uint32_t n_used = 0;
    for (std::size_t i = 0; i < keys.words.size(); i += 2) {
        require(keys.words[i + 1] == n_used, "keys must be counted");
        n_used += static_cast<std::uint32_t>(std::popcount(keys.words[i]));
    }
    require(keys.starts.size() == std::size_t{n_used} + 1, "each key in use must have a beginning");
    require(keys.starts[0] == 0 && keys.starts[n_used] == n_distinct, "keys must begin and end with the codes");
    for (std::size_t i = 1; i < keys.starts.size(); ++i)
        require(keys.starts[i - 1] < keys.starts[i], "keys in use must have codes");
}

// Call f(key, place) for each place of a table.
template <class Function> void each_place(const PruneTable& table, Function f) {
    for (std::uint32_t key = 0; key < table.n_keys(); ++key) {
        const auto number = table.keys.number_of(key);
        if (number == KeyDirectory::none) continue;
        const auto bucket = table.bucket(number);
        for (auto place = bucket.first; place < bucket.last; ++place) f(key, place);
    }
}

Code code_at(const PruneTable& table, std::uint32_t key, std::int64_t place) {
    Code code{};
    table.read(key, place, code.data());
    require(table.key_of(code.data()) == key, "codes must stand with their keys");
    return code;
}

void check_count(const PruneTable& table, std::int64_t place, std::size_t n_rows) {
    if (table.counted)
        require(table.at(place)[group_lanes * table.width()] == std::min<std::size_t>(n_rows, 255),
                "codes must tell their rows");
}

void check_marks(const PruneTables& tables) {
    const auto n_rows = tables.rows.size();
    if (!tables.marks.size()) {
        require(static_cast<std::int64_t>(n_rows) == tables.n_distinct && !tables.marked.size(),
                "each code must have one row");
        return;
    }
    std::int64_t place = -1;
    for (std::size_t row = 0; row < 32 * tables.marks.size(); ++row) {
        if (!(tables.marks[row / 32] >> row % 32 & 1)) continue;
        require(row < n_rows && ++place < tables.n_distinct, "marks must be of rows");
        if (place % 16 == 0) require(tables.marked[place / 16] == row, "each sixteenth mark must be counted");
    }
    require((tables.marks[0] & 1) && place + 1 == tables.n_distinct, "each code must have a mark");
}

// That the first table holds each code once, sorted, with all its rows.
void check_first(const PruneTables& tables, const CheckedAgainst& against) {
    const auto& table = tables.tables.front();
    const auto n_codes = tables.n_codes;
    std::vector<std::uint8_t> seen((n_codes + 7) / 8);
    Code before{};
    std::uint32_t key_before = UINT32_MAX;
    const auto is_stale = [&](std::int64_t row) {
        return !against.stale.empty() && has_bit(against.stale.data(), row);
    };
    const auto check_row = [&](std::int64_t row, const Code& code) {
        require(row < n_codes && !has_bit(seen.data(), row), "each code must have a row of its own");
        seen[row / 8] |= static_cast<std::uint8_t>(1 << row % 8);
        if (is_stale(row)) return;
        Code held{}, ordered{};
        against.codes.read(row, held.data());
        tables.bits.apply(held.data(), ordered.data());
        require(!std::memcmp(ordered.data(), code.data(), static_cast<std::size_t>(tables.n_held)),
                "rows must have their codes");
    };
    each_place(table, [&](std::uint32_t key, std::int64_t place) {
        const auto code = code_at(table, key, place);
        if (key == key_before) {
            std::uint8_t rest[most_pruned_bytes];
            for (int j = 0; j < table.width(); ++j) rest[j] = before[table.rest[j]];
            require(table.compare(rest, place) < 0, "codes of a key must be sorted, and differ");
        }
        key_before = key;
        before = code;
        const auto rows = tables.rows_at(place);
        check_count(table, place, rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i) {
            check_row(rows[i], code);
            const auto id = [&](std::uint32_t row) { return against.ids ? against.ids[row] : row; };
            require(!i || id(rows[i - 1]) < id(rows[i]), "rows of equal codes must be in the order of their ids");
        }
    });
    for (std::int64_t row = 0; row < n_codes; ++row)
        require(has_bit(seen.data(), row) || is_stale(row) || (against.allowed && !has_bit(against.allowed, row)),
                "each code must be found");
}

// That another table holds the codes of the first: as many, in its order within a key, so that none stands twice.
void check_other(const PruneTables& tables, const PruneTable& table) {
    std::uint32_t key_before = UINT32_MAX;
    std::int64_t before = -1;
    each_place(table, [&](std::uint32_t key, std::int64_t place) {
        const auto code = code_at(table, key, place);
        std::int64_t found;
        tables.find_places(code.data(), 1, &found);
        require(found >= 0, "tables must hold the same codes");
        require(key != key_before || found > before, "codes of a key must be in the order of the first table");
        check_count(table, place, tables.rows_at(found).size());
        key_before = key;
        before = found;
    });
}

}  // namespace

void check_tables(const PruneTables& tables, const CheckedAgainst& against) {
    for (const auto& table : tables.tables) check_directory(table.keys, tables.n_distinct);
    check_marks(tables);
    check_first(tables, against);
    for (std::size_t t = 1; t < tables.tables.size(); ++t) check_other(tables, tables.tables[t]);
}

}  // namespace cghash
