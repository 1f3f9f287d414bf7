#include "code_blocks.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "huge_pages.hpp"

namespace cghash {
namespace {

std::shared_ptr<std::uint8_t> zeros(std::size_t size) {
    std::uint8_t* p = HugePages<std::uint8_t>().allocate(size);
    std::memset(p, 0, size);
    return {p, [size](std::uint8_t* q) { HugePages<std::uint8_t>().deallocate(q, size); }};
}

}  // namespace

CodeBlocks::CodeBlocks(int n_bytes) : n_bytes_(n_bytes) {
    if (n_bytes < 1 || n_bytes > most_bytes) throw std::invalid_argument("n_bytes must lie between 1 and 512");
}

std::int64_t CodeBlocks::memory() const {
    std::int64_t blocks = 0;
    for (const auto& chunk : chunks_) blocks += chunk.capacity;
    return blocks * block_size();
}

void CodeBlocks::grow(std::int64_t n_blocks) {
    const auto held = chunks_.empty() ? 0 : chunks_.back().first_block + chunks_.back().capacity;
    if (n_blocks <= held) return;
    const auto capacity = std::max({n_blocks - held, held / 16, std::int64_t{1}});
    chunks_.push_back({zeros(static_cast<std::size_t>(capacity * block_size())), held, capacity});
}

void CodeBlocks::append(std::span<const std::uint8_t> codes) {
    const auto n = static_cast<std::int64_t>(codes.size()) / n_bytes_;
    if (n * n_bytes_ != static_cast<std::int64_t>(codes.size()))
        throw std::invalid_argument("codes must have n_bytes bytes");
    grow((n_codes_ + n + 63) / 64);  // may fail; nothing after it does
    const std::uint8_t* row = codes.data();
    for (auto at = n_codes_, end = n_codes_ + n; at < end;) {
        std::uint8_t* block = writable(at / 64);
        const auto lane = at % 64, count = std::min(64 - lane, end - at);
        for (int j = 0; j < n_bytes_; ++j)
            for (std::int64_t i = 0; i < count; ++i) block[64 * j + lane + i] = row[i * n_bytes_ + j];
        row += count * n_bytes_;
        at += count;
    }
    n_codes_ += n;
}

void CodeBlocks::truncate(std::int64_t n_codes) {
    if (n_codes < 0 || n_codes > n_codes_) throw std::invalid_argument("n_codes must be at most what is there");
    n_codes_ = n_codes;
    if (n_codes % 64 == 0) return;  // lanes past the last code are 0
    std::uint8_t* last = writable(n_codes / 64);
    for (int j = 0; j < n_bytes_; ++j) std::memset(last + 64 * j + n_codes % 64, 0, 64 - n_codes % 64);
}

void CodeBlocks::attach(std::span<std::uint8_t> blocks, std::int64_t n_codes, std::shared_ptr<void> owner) {
    if (n_codes_) throw std::invalid_argument("attach needs empty blocks");
    const auto n_blocks = static_cast<std::int64_t>(blocks.size()) / block_size();
    if (n_codes < 0 || n_blocks * block_size() != static_cast<std::int64_t>(blocks.size()) ||
        n_blocks != n_codes / 64 + (n_codes % 64 != 0))
        throw std::invalid_argument("blocks must hold 64 codes a block");
    chunks_.clear();
    if (n_blocks) chunks_.push_back({std::shared_ptr<std::uint8_t>(std::move(owner), blocks.data()), 0, n_blocks});
    n_codes_ = n_codes;
}

void CodeBlocks::check_positions(std::span<const std::int64_t> positions) const {
    for (auto position : positions)
        if (position < 0 || position >= n_codes_)
            throw std::invalid_argument("positions must lie between 0 and n_codes - 1");
}

void CodeBlocks::put(std::span<const std::int64_t> positions, std::span<const std::uint8_t> codes) {
    check_positions(positions);
    if (codes.size() != positions.size() * static_cast<std::size_t>(n_bytes_))
        throw std::invalid_argument("codes must be as many as positions");
    const std::uint8_t* row = codes.data();
    for (auto position : positions) {
        std::uint8_t* block = writable(position / 64);
        for (int j = 0; j < n_bytes_; ++j) block[64 * j + position % 64] = *row++;
    }
}

std::vector<std::uint8_t> CodeBlocks::get(std::span<const std::int64_t> positions) const {
    check_positions(positions);
    std::vector<std::uint8_t> codes(positions.size() * static_cast<std::size_t>(n_bytes_));
    std::uint8_t* row = codes.data();
    for (auto position : positions) {
        read(position, row);
        row += n_bytes_;
    }
    return codes;
}

void CodeBlocks::read(std::int64_t position, std::uint8_t* code) const {
    const std::uint8_t* p = block(position / 64) + position % 64;
    for (int j = 0; j < n_bytes_; ++j) code[j] = p[64 * j];
}

void CodeBlocks::read_all(std::uint8_t* rows, std::int64_t first, std::int64_t count) const {
    for (auto at = first, end = first + count; at < end;) {
        const std::uint8_t* p = block(at / 64) + at % 64;
        const auto here = std::min(64 - at % 64, end - at);
        for (int j = 0; j < n_bytes_; ++j)
            for (std::int64_t i = 0; i < here; ++i) rows[i * n_bytes_ + j] = p[64 * j + i];
        rows += here * n_bytes_;
        at += here;
    }
}

std::int64_t CodeBlocks::blocks_in(const Chunk& chunk) const {
    return std::clamp<std::int64_t>(n_blocks() - chunk.first_block, 0, chunk.capacity);
}

const CodeBlocks::Chunk& CodeBlocks::holding(std::int64_t block_number) const {
    const auto after = std::upper_bound(chunks_.begin(), chunks_.end(), block_number,
                                        [](auto number, const Chunk& chunk) { return number < chunk.first_block; });
    return *(after - 1);
}

std::uint8_t* CodeBlocks::writable(std::int64_t block_number) const {
    const Chunk& chunk = holding(block_number);
    return chunk.data.get() + (block_number - chunk.first_block) * block_size();
}

const std::uint8_t* CodeBlocks::block(std::int64_t number) const { return writable(number); }

}  // namespace cghash
