#include "bit_order.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace cghash {
namespace {

constexpr std::size_t most_words = 16;

std::size_t words_of(std::size_t n_bits) { return (n_bits + 63) / 64; }

}  // namespace

BitOrder::BitOrder(std::vector<std::uint16_t> from) : from_(std::move(from)) {
    const auto n_bits = from_.size();
    std::vector<bool> seen(n_bits);
    for (auto bit : from_) {
        if (bit >= n_bits || seen[bit]) throw std::invalid_argument("bits must name every bit once");
        seen[bit] = true;
    }
    if (n_bits % 8 || n_bits > 64 * most_words) throw std::invalid_argument("bits must be those of 1 to 128 bytes");
    const auto words = words_of(n_bits);
    nibbles_.resize(n_bits / 4 * 16 * words);
    for (std::size_t place = 0; place < n_bits; ++place)
        for (std::size_t value = 0; value < 16; ++value)
            if (value >> from_[place] % 4 & 1) {
                auto* row = reinterpret_cast<std::uint8_t*>(nibbles_.data() + (from_[place] / 4 * 16 + value) * words);
                row[place / 8] |= static_cast<std::uint8_t>(1 << place % 8);
            }
}

void BitOrder::apply(const std::uint8_t* code, std::uint8_t* to) const {
    const auto n_bytes = from_.size() / 8, words = words_of(from_.size());
    std::uint64_t sum[most_words] = {};
    const auto* row = nibbles_.data();
    for (std::size_t j = 0; j < n_bytes; ++j)
        for (const unsigned value : {code[j] & 15u, static_cast<unsigned>(code[j] >> 4)}) {
            for (std::size_t w = 0; w < words; ++w) sum[w] |= row[value * words + w];
            row += 16 * words;
        }
    std::memcpy(to, sum, n_bytes);
}

}  // namespace cghash
