#include "prune_layout.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "ordered_tables.hpp"

namespace cghash {
namespace {

constexpr int short_key = 16, long_keys[] = {20, 22, 24};
constexpr std::int64_t looked_at = 1 << 15;  // codes, to estimate how many have a key near a query's
constexpr std::int64_t ordered = 1 << 14;    // keys, to estimate how many are as near; more count as a scan

// Bits of keys: so many each, as often as bytes and tables allow; `more` for what is left then.
std::vector<int> keys_of(int n_bytes, int bits, bool more) {
    const int each = (bits + 7) / 8;
    std::vector<int> keys(std::min<std::size_t>(most_tables, n_bytes / each), bits);
    const int left = 8 * std::min(2, n_bytes - each * static_cast<int>(keys.size()));
    if ((more || keys.empty()) && left && keys.size() < most_tables) keys.push_back(left);
    return keys;
}

void check_keys(const std::vector<int>& key_bits, int n_bytes) {
    int used = 0;
    for (const int bits : key_bits) {
        if (bits < 8 || bits > long_keys[2]) throw std::invalid_argument("a key must have 8 to 24 bits");
        used += (bits + 7) / 8;
    }
    if (key_bits.size() > most_tables || used > n_bytes)
        throw std::invalid_argument("keys must be four at most, and fit into a code");
}

// Those worth a look for n codes: of longer keys, most would have no code at all.
std::vector<std::vector<int>> candidates(int n_bytes, std::int64_t n, const TableOptions& options) {
    if (!options.key_bits.empty()) return {options.key_bits};
    std::vector<std::vector<int>> found{keys_of(n_bytes, short_key, true)};
    for (const int bits : long_keys)
        if (n >> (bits - 1) && n_bytes > 2)
            for (const bool more : {false, true}) found.push_back(keys_of(n_bytes, bits, more));
    return found;
}

// Bits by how much distance they tell, the most first: the deviation of what they add to it.
std::vector<std::uint16_t> by_strength(std::span<const std::uint8_t> codes, const Lookups& lookups) {
    const int n_bytes = lookups.n_bytes;
    const auto n = codes.size() / n_bytes, step = std::max<std::size_t>(1, n / 4096);
    std::vector<std::int64_t> ones(8 * n_bytes);
    std::int64_t looked = 0;
    for (std::size_t i = 0; i < n; i += step, ++looked)
        for (int bit = 0; bit < 8 * n_bytes; ++bit) ones[bit] += codes[i * n_bytes + bit / 8] >> (bit % 8) & 1;
    // those of weight 0 come last (held_bytes): a bit that all codes share may still differ from a query's
    std::vector<std::pair<bool, double>> strength(8 * n_bytes);
    for (int bit = 0; bit < 8 * n_bytes; ++bit)
        strength[bit] = {lookups.bit_weight(bit) > 0,
                         static_cast<double>(lookups.bit_weight(bit)) *
                             std::sqrt(static_cast<double>(ones[bit]) * static_cast<double>(looked - ones[bit]))};
    std::vector<std::uint16_t> order(8 * n_bytes);
    std::iota(order.begin(), order.end(), std::uint16_t{0});
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return strength[a] > strength[b]; });
    return order;
}

// The strongest bits for the first key, the next ones for the second, …; the rest wherever there is room. In a key the
// highest are the strongest.
BitOrder dealt(const std::vector<std::uint16_t>& strongest, const std::vector<int>& key_bits) {
    constexpr std::uint16_t none = UINT16_MAX;
    std::vector<std::uint16_t> from(strongest.size(), none);
    std::size_t next = 0, byte = 0;
    for (const int bits : key_bits)
        for (int left = bits; left > 0; left -= 8, ++byte)
            for (int i = 0; i < std::min(left, 8); ++i) from[8 * byte + 7 - i] = strongest[next++];
    for (auto& bit : from)
        if (bit == none) bit = strongest[next++];
    return BitOrder(std::move(from));
}

double count_distinct(std::vector<std::uint32_t> values) {
    std::sort(values.begin(), values.end());
    return static_cast<double>(std::unique(values.begin(), values.end()) - values.begin());
}

// A layout under which samples are looked for among some of the codes.
struct Trial {
    const Lookups lookups;
    const PruneCosts costs;
    const std::int64_t n;            // all codes
    std::vector<std::uint8_t> some;  // (looked_at or so, n_bytes), their bits in order

    Trial(const Layout& layout, std::span<const std::uint8_t> codes, const Lookups& plain)
        : lookups(plain.permuted(layout.bits)),
          costs(costs_of(plain, static_cast<std::int64_t>(most_tables * codes.size()), Listing::at_once)),
          n(static_cast<std::int64_t>(codes.size()) / plain.n_bytes) {
        const auto width = static_cast<std::size_t>(plain.n_bytes);
        for (std::int64_t i = 0; i < n; i += std::max<std::int64_t>(1, n / looked_at)) {
            some.resize(some.size() + width);
            layout.bits.apply(codes.data() + static_cast<std::size_t>(i) * width, some.data() + some.size() - width);
        }
    }

    // About how many keys have codes: as many more as codes are more, by what the second half of the samples adds.
    double n_used(const PruneTable& table) const {
        std::vector<std::uint32_t> all, half;
        for (std::size_t i = 0; i < some.size(); i += lookups.n_bytes) {
            all.push_back(table.key_of(some.data() + i));
            if (all.size() % 2) half.push_back(all.back());
        }
        const double found = count_distinct(all), grows = std::clamp(std::log2(found / count_distinct(half)), 0.0, 1.0);
        const double more = std::pow(static_cast<double>(n) / static_cast<double>(all.size()), grows),
                     n_keys = table.n_keys();
        return std::min(found * more,
                        n_keys * -std::expm1(-static_cast<double>(n) / n_keys));  // the latter: spread evenly
    }

    double scan() const { return static_cast<double>(n) / 64 * (costs.scan_read + costs.scan_compute); }

    // What it takes to look at all keys within so much of a query's.
    double cost(const PruneTable& table, const MaskOrder& order, const std::uint8_t* query, std::int64_t reach) const {
        const auto steps = std::upper_bound(order.weights.begin(), order.weights.end(), reach) - order.weights.begin();
        if (steps == order.size() && !order.whole) return scan();
        const auto key = table.key_of(query);
        std::int64_t near = 0;
        for (std::size_t i = 0; i < some.size(); i += lookups.n_bytes)
            near += table.key_weight(key ^ table.key_of(some.data() + i), lookups) <= reach;
        const double share = static_cast<double>(near * lookups.n_bytes) / static_cast<double>(some.size());
        const double found = share * static_cast<double>(n), keys = static_cast<double>(steps);
        return costs.step * keys + costs.bucket * std::min(keys, found) + costs.group * found / group_lanes;
    }
};

// What the samples cost, none more than to scan. Tables go as far as their weights say.
double cost_of(const Trial& trial, const std::vector<PruneTable>& tables, const BitOrder& bits,
               std::span<const Sample> samples) {
    const auto weight = [&](const PruneTable& t) {
        return static_cast<double>(t.key_weight(t.n_keys() - 1, trial.lookups));
    };
    double all_keys = 0;
    for (const auto& table : tables) all_keys += weight(table);
    std::vector<double> spent(samples.size());
    std::vector<std::uint8_t> query(trial.lookups.n_bytes);
    for (const auto& table : tables) {
        const auto length = std::min(ordered, worth_ordering(table.n_keys(), trial.n));
        const MaskOrder order(table, trial.lookups, length, Listing::at_once);
        const double part = weight(table) / std::max(all_keys, 1.0);
        for (std::size_t s = 0; s < samples.size(); ++s) {
            bits.apply(samples[s].code.data(), query.data());
            const auto reach = static_cast<std::int64_t>(part * static_cast<double>(samples[s].distance));
            spent[s] += trial.cost(table, order, query.data(), reach);
        }
    }
    double sum = 0;
    for (const double cost : spent) sum += std::min(cost, trial.scan());
    return sum;
}

}  // namespace

int held_bytes(const std::vector<int>& key_bits, const Lookups& lookups) {
    int n_bits = 0, n_keyed = 0;
    for (int bit = 0; bit < 8 * lookups.n_bytes; ++bit) n_bits += lookups.bit_weight(bit) > 0;
    for (const int bits : key_bits) n_keyed += (bits + 7) / 8;
    return std::max({n_keyed, (n_bits + 7) / 8, 1});
}

void shorten(std::vector<int>& key_bits) {
    constexpr int shortest = 20;  // of the long ones; less would not save much
    if (key_bits.size() > 1 && key_bits.back() > shortest) --key_bits.back();
    else key_bits.pop_back();
}

Layout lay_out(std::span<const std::uint8_t> codes, const Lookups& lookups, std::span<const Sample> samples,
               const Memory& memory, const TableOptions& options) {
    const auto strongest = by_strength(codes, lookups);
    check_keys(options.key_bits, lookups.n_bytes);
    const int n_held = held_bytes(options.key_bits, lookups);  // keys of bits that count nothing would be of no use
    std::vector<std::vector<int>> seen;
    Layout best;
    double least = std::numeric_limits<double>::infinity();
    const auto worth_a_look = candidates(n_held, static_cast<std::int64_t>(codes.size() / lookups.n_bytes), options);
    for (auto keys : worth_a_look) {
        for (; !keys.empty(); shorten(keys)) {
            if (std::find(seen.begin(), seen.end(), keys) != seen.end()) break;
            seen.push_back(keys);
            Layout layout{keys, dealt(strongest, keys)};
            const Trial trial(layout, codes, lookups);
            const auto tables = keyed_tables(keys, n_held);
            std::vector<double> n_used;
            for (const auto& table : tables) n_used.push_back(trial.n_used(table));
            if (memory(keys, n_used) > options.most_bytes) continue;
            const double cost = worth_a_look.size() > 1 ? cost_of(trial, tables, layout.bits, samples) : 0;
            if (cost < least) {
                least = cost;
                best = std::move(layout);
            }
            break;
        }
    }
    return best;
}

}  // namespace cghash
