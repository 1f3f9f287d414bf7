// An order of the bits of codes, and codes with their bits in it.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace cghash {

class BitOrder {
   public:
    BitOrder() = default;
    // The bit that comes to each place. Throws std::invalid_argument where that is no permutation of the bits of bytes.
    explicit BitOrder(std::vector<std::uint16_t> from);

    const std::vector<std::uint16_t>& from() const { return from_; }
    static std::int64_t memory(int n_bytes) { return 2 * n_bytes * 16 * 8 * ((n_bytes + 7) / 8); }
    void apply(const std::uint8_t* code, std::uint8_t* to) const;

   private:
    std::vector<std::uint16_t> from_;
    std::vector<std::uint64_t> nibbles_;  // (2·n_bytes, 16, words): the bits of a nibble where they go
};

}  // namespace cghash
