#include "key_directory.hpp"

namespace cghash {

KeyDirectory::KeyDirectory(std::span<const std::uint32_t> begins) {
    const auto n_keys = begins.size() - 1;
    HugePageVector<std::uint32_t> bits(n_keys / 32 * 2), kept;
    for (std::size_t key = 0; key < n_keys; ++key) {
        if (key % 32 == 0) bits[key / 32 * 2 + 1] = static_cast<std::uint32_t>(kept.size());
        if (begins[key] == begins[key + 1]) continue;
        bits[key / 32 * 2] |= std::uint32_t{1} << key % 32;
        kept.push_back(begins[key]);
    }
    kept.push_back(begins.back());
    kept.shrink_to_fit();
    words = std::move(bits);
    starts = std::move(kept);
}

}  // namespace cghash
