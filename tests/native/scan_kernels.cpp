// The look-up kernels of one instruction set against sums written out; `make neon` runs it on an emulated Arm.
#define CGHASH_ISA isa_tested
#include <cstdio>
#include <map>
#include <random>
#include <vector>

#include "../../native/kernels/buckets.hpp"
#include "../../native/kernels/scan.hpp"

using namespace isa_tested;
using Lanes = std::map<std::int64_t, std::uint64_t>;  // block → lanes that survive, or code → how often

namespace {

std::mt19937_64 random_bits(7);

std::vector<std::uint8_t> noise(std::size_t n, unsigned below = 256) {
    std::vector<std::uint8_t> bytes(n);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random_bits() % below);
    return bytes;
}

void collect(void* context, int query, const std::uint8_t*, std::int64_t block, std::uint64_t lanes) {
    static_cast<std::vector<Lanes>*>(context)->at(query)[block] |= lanes;
}

// The groups' values of a code, in the tables' order.
std::vector<int> groups_of(const std::vector<std::uint8_t>& code) {
    std::vector<int> values;
    const int n = static_cast<int>(code.size());
    for (int panel = 0; panel < n; panel += 8) {
        const int end = std::min(panel + 8, n);
        if (lookup_bits == 4) {
            for (int j = panel; j < end; ++j) values.insert(values.end(), {code[j] & 15, code[j] >> 4});
            continue;
        }
        for (int j = panel; j < end; ++j) values.push_back(code[j] & 63);
        for (int j = panel; j < end; j += 3) {
            int upper = 0;
            for (int i = 0; i < 3 && j + i < end; ++i) upper |= (code[j + i] >> 6) << (2 * i);
            values.push_back(upper);
        }
    }
    return values;
}

// `heavy`: entries of 0 and 127 alone, two of which make 254, just within a byte.
bool scan_is_right(int n_bytes, int n_blocks, int n_queries, bool heavy = false) {
    const auto blocks = noise(64 * static_cast<std::size_t>(n_bytes) * n_blocks);
    const std::size_t size = static_cast<std::size_t>(all_lookups(n_bytes)) * table_size;
    std::vector<std::vector<std::uint8_t>> tables;
    std::vector<ScanQuery> queries;
    const int most = n_bytes <= 16 ? 400 / n_bytes : 40;
    for (int q = 0; q < n_queries; ++q) {
        tables.push_back(noise(size, heavy ? 12 : most));
        if (heavy)
            for (auto& entry : tables.back()) entry = entry ? 0 : 127;
    }
    for (int q = 0; q < n_queries; ++q)
        queries.push_back({tables[q].data(),
                           static_cast<std::uint16_t>(heavy           ? 253 + q % 2
                                                      : n_bytes <= 16 ? 150 + q
                                                                      : 15 * n_bytes + 10 * q),
                           heavy || (most <= 128 && q % 3 != 1)});
    std::vector<Lanes> found(n_queries), expected(n_queries);
    scan({blocks.data(), 5, n_blocks}, n_bytes, queries.data(), n_queries, collect, &found);
    for (int q = 0; q < n_queries; ++q)
        for (int b = 0; b < n_blocks; ++b)
            for (int lane = 0; lane < 64; ++lane) {
                std::vector<std::uint8_t> code;
                for (int j = 0; j < n_bytes; ++j) code.push_back(blocks[64 * (b * n_bytes + j) + lane]);
                const auto values = groups_of(code);
                int sum = 0, panel = 0;
                for (std::size_t l = 0; l < values.size(); ++l) {
                    panel += tables[q][l * table_size + values[l]];
                    if (l + 1 == values.size() || (n_bytes > 16 && (l + 1) % panel_lookups(8) == 0)) {
                        sum += std::min(panel, 255);
                        panel = 0;
                    }
                }
                if (sum <= queries[q].limit) expected[q][b + 5] |= std::uint64_t{1} << lane;
            }
    return found == expected;
}

void collect_groups(void* context, const std::uint8_t*, std::int64_t group, std::uint64_t lanes) {
    for (auto& found = *static_cast<Lanes*>(context); lanes; lanes &= lanes - 1)
        ++found[16 * group + std::countr_zero(lanes)];
}

// Which codes survive, each once; entries up to `most`. Some bytes of a code may not count.
bool bucket_is_right(int n_bytes, int n_stored, unsigned most, std::int64_t length) {
    const auto groups = noise(16 * static_cast<std::size_t>(n_stored) * 80);
    auto sheet = noise((n_bytes + 3) / 4 * 128, most);
    for (int j = n_bytes; j < (n_bytes + 3) / 4 * 4; ++j)
        for (int i = 0; i < 16; ++i) sheet[j / 4 * 128 + j % 4 * 16 + i] = sheet[j / 4 * 128 + j % 4 * 16 + i + 64] = 0;
    const std::uint8_t start = 20,
                       limit = static_cast<std::uint8_t>(std::min<unsigned>(254, 20 + most * n_bytes * 8 / 10));
    const std::int64_t first = static_cast<std::int64_t>(random_bits() % 100), last = first + length;
    Lanes found, expected;
    const Lines soon(groups.data(), groups.data() + (random_bits() % 20) * n_stored);
    scan_bucket({groups.data(), first, last, soon}, {sheet.data(), n_bytes, n_stored, &start, &limit}, collect_groups,
                &found);
    for (auto code = first; code < last; ++code) {
        int sum = start;
        for (int j = 0; j < n_bytes; ++j) {
            const auto byte = groups[16 * (code / 16 * n_stored + j) + code % 16];
            const auto* tables = sheet.data() + j / 4 * 128 + j % 4 * 16;
            sum += tables[byte & 15] + tables[64 + (byte >> 4)];
        }
        if (sum <= limit) expected[code] = 1;
    }
    return found == expected;
}

}  // namespace

int main() {
    int n_wrong = 0;
    const auto check = [&](bool right, const char* what, int n_bytes) {
        if (!right) std::printf("%s is wrong for %d bytes\n", what, n_bytes), ++n_wrong;
    };
    for (int n_bytes = 1; n_bytes <= 128; ++n_bytes) {
        for (int n_queries : {1, 3}) check(scan_is_right(n_bytes, 7, n_queries), "scan", n_bytes);
        if (n_bytes > 4 && n_bytes <= 16) check(scan_is_right(n_bytes, 7, 3, true), "scan of light tables", n_bytes);
        for (const std::int64_t length : {1, 15, 16, 17, 63, 64, 65, 200, 1100})
            for (const unsigned most : {3u, 30u, 256u})
                for (const int more : {0, 1})
                    check(bucket_is_right(n_bytes % 18, n_bytes % 18 + more, most, length), "scan_bucket",
                          n_bytes % 18);
    }
    std::printf(n_wrong ? "%d wrong\n" : "all right\n", n_wrong);
    return n_wrong != 0;
}
