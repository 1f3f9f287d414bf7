#include "prune_tables.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace cghash {

std::vector<PruneTable> keyed_tables(const std::vector<int>& key_bits, int n_held) {
    std::vector<PruneTable> tables;
    int next = 0;
    for (const int bits : key_bits) {
        PruneTable table;
        table.key_bits = bits;
        for (int i = 0; i < bits; i += 8) table.key.push_back(static_cast<std::uint8_t>(next++));
        table.set_rest(n_held);
        tables.push_back(std::move(table));
    }
    return tables;
}

void PruneTable::set_rest(int n_held) {
    if (key_bits % 8) rest.push_back(key.back());
    for (int j = 0; j < n_held; ++j)
        if (std::find(key.begin(), key.end(), j) == key.end()) rest.push_back(static_cast<std::uint8_t>(j));
}

void PruneTable::read(std::uint32_t key_value, std::int64_t place, std::uint8_t* code) const {
    for (int i = 0; i < key_bits / 8; ++i) code[key[i]] = key_byte(key_value, i);
    if (rest.empty()) return;
    const std::uint8_t* from = at(place);
    for (int j = 0; j < width(); ++j) code[rest[j]] = from[group_lanes * j];
}

int PruneTable::compare(const std::uint8_t* rest_of_code, std::int64_t place) const {
    if (rest.empty()) return 0;
    const std::uint8_t* p = at(place);
    for (int j = 0; j < width(); ++j)
        if (const int order = rest_of_code[j] - p[group_lanes * j]) return order;
    return 0;
}

std::int64_t PruneTable::find_group(const Bucket& bucket, const std::uint8_t* code) const {
    std::uint8_t rest_of_code[most_pruned_bytes];
    for (int j = 0; j < width(); ++j) rest_of_code[j] = code[rest[j]];
    auto low = bucket.first_group(), high = low + bucket.n_groups() - 1;
    while (low < high) {
        const auto middle = (low + high + 1) / 2;
        if (compare(rest_of_code, middle * group_lanes) < 0) high = middle - 1;
        else low = middle;
    }
    return low;
}

std::uint32_t PruneTable::match(std::int64_t group, const std::uint8_t* rest_of_code) const {
    const std::uint8_t* p = groups.values.data() + group * group_size();
    std::uint32_t lanes = 0xffff;
    for (int j = 0; j < width() && lanes; ++j, p += group_lanes) {
        std::uint32_t same = 0;
        for (int i = 0; i < group_lanes; ++i) same |= static_cast<std::uint32_t>(p[i] == rest_of_code[j]) << i;
        lanes &= same;
    }
    return lanes;
}

std::int64_t PruneTables::memory() const {
    auto bytes = static_cast<std::size_t>(BitOrder::memory(static_cast<int>(bits.from().size() / 8)));
    bytes += 4 * (rows.size() + marks.size() + marked.size());
    for (const auto& table : tables) bytes += static_cast<std::size_t>(table.keys.memory()) + table.groups.size();
    return static_cast<std::int64_t>(bytes);
}

bool PruneTables::suit(std::span<const std::int64_t> weights) const {
    const auto& from = bits.from();
    return std::all_of(from.begin() + 8 * n_held, from.end(), [&](auto bit) { return !weights[bit]; });
}

void PruneTables::find_places(const std::uint8_t* codes, int n, std::int64_t* places) const {
    const auto& table = tables.front();
    struct Search {
        Bucket bucket;
        std::int64_t low, high;  // the group is one of these: the last that does not begin with a later code
        std::uint8_t rest[most_pruned_bytes];
        std::int64_t middle() const { return (low + high + 1) / 2; }
    } searches[at_once];
    const auto ask = [&](std::int64_t group) {
        const std::uint8_t* p = table.groups.values.data() + group * table.group_size();
        Lines(p, p + std::min<std::int64_t>(table.group_size(), 128)).ask_all();
    };
    for (int i = 0; i < n; ++i) {
        auto& search = searches[i];
        search.bucket = table.bucket(table.keys.number_of(table.key_of(codes + most_pruned_bytes * i)));
        search.low = search.high = search.bucket.first_group();
        if (search.bucket.empty()) continue;
        search.high += search.bucket.n_groups() - 1;
        for (int j = 0; j < table.width(); ++j) search.rest[j] = codes[most_pruned_bytes * i + table.rest[j]];
        ask(search.middle());
    }
    for (bool going = true; going;) {
        going = false;
        for (auto& search : std::span(searches, static_cast<std::size_t>(n))) {
            if (search.low == search.high) continue;
            const auto middle = search.middle();
            if (table.compare(search.rest, middle * group_lanes) < 0) search.high = middle - 1;
            else search.low = middle;
            ask(search.middle());
            going = true;
        }
    }
    for (int i = 0; i < n; ++i) {
        const auto& search = searches[i];
        places[i] = -1;
        if (search.bucket.empty()) continue;
        const auto first = search.low * group_lanes;
        auto lanes = table.match(search.low, search.rest);
        if (first < search.bucket.first) lanes &= ~std::uint32_t{0} << (search.bucket.first - first);
        if (first + group_lanes > search.bucket.last) lanes &= 0xffffu >> (first + group_lanes - search.bucket.last);
        if (lanes) places[i] = first + std::countr_zero(lanes);
    }
}

std::size_t PruneTables::next_mark(std::size_t row, int passed) const {
    for (auto word = row / 32; word < marks.size(); ++word) {
        std::uint32_t bits = marks[word];
        if (word == row / 32) bits &= ~std::uint32_t{0} << row % 32;
        if (const int here = std::popcount(bits); passed >= here) {
            passed -= here;
            continue;
        }
        for (; passed; --passed) bits &= bits - 1;
        return std::min(rows.size(), 32 * word + static_cast<std::size_t>(std::countr_zero(bits)));
    }
    return rows.size();
}

std::span<const std::uint32_t> PruneTables::rows_at(std::int64_t place) const {
    if (!marks.size()) return rows.values.subspan(place, 1);
    const auto begin = next_mark(marked[place / 16], static_cast<int>(place % 16));
    return rows.values.subspan(begin, next_mark(begin + 1, 0) - begin);
}

void PruneTables::check(int n_bytes) const {
    const auto fail = [](const char* what) { throw std::invalid_argument(what); };
    if (tables.size() > most_tables) fail("tables must be four at most");
    if (tables.empty() || n_distinct < 1 || n_distinct > n_codes || n_codes > UINT32_MAX)
        fail("tables must cover some codes");
    if (marks.size() ? marks.size() != (rows.size() + 31) / 32 || std::ssize(marked.values) != (n_distinct + 15) / 16
                     : std::ssize(rows.values) != n_distinct || marked.size())
        fail("rows must be as many as codes");
    if (bits.from().size() != 8 * static_cast<std::size_t>(n_bytes)) fail("bits must be those of the codes");
    std::vector<std::uint8_t> keys;
    for (const auto& table : tables) keys.insert(keys.end(), table.key.begin(), table.key.end());
    std::sort(keys.begin(), keys.end());
    if (std::adjacent_find(keys.begin(), keys.end()) != keys.end()) fail("keys must not share a byte");
    if (n_held < 1 || n_held > n_bytes) fail("bytes held must be those of the codes");
    if (!keys.empty() && keys.back() >= n_held) fail("keys must be bytes that are held");
    for (const auto& table : tables) {
        if (table.key_bits <= 8 * (std::ssize(table.key) - 1)) fail("a key must need its last byte");
        if (table.keys.n_keys() != table.n_keys()) fail("a directory must have two words for each 32 keys");
        if (std::ssize(table.groups.values) != table.n_groups() * table.group_size())
            fail("groups must hold every code");
    }
}

}  // namespace cghash
