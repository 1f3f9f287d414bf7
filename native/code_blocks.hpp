// Packed codes by position, in blocks of 64 whose bytes are stored byte by byte: byte j of lane i is at 64·j + i.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace cghash {

inline constexpr int most_bytes = 512;  // of a code

class CodeBlocks {
   public:
    explicit CodeBlocks(int n_bytes);

    std::int64_t n_codes() const { return n_codes_; }
    std::int64_t n_blocks() const { return (n_codes_ + 63) / 64; }
    int n_bytes() const { return n_bytes_; }
    std::int64_t block_size() const { return 64 * static_cast<std::int64_t>(n_bytes_); }
    std::int64_t memory() const;

    void append(std::span<const std::uint8_t> codes);
    void truncate(std::int64_t n_codes);  // keep the first so many
    // Take over blocks that `owner` keeps alive, as chunks gives them; only where there is nothing yet.
    void attach(std::span<std::uint8_t> blocks, std::int64_t n_codes, std::shared_ptr<void> owner);
    void put(std::span<const std::int64_t> positions, std::span<const std::uint8_t> codes);
    std::vector<std::uint8_t> get(std::span<const std::int64_t> positions) const;
    void check_positions(std::span<const std::int64_t> positions) const;
    void read(std::int64_t position, std::uint8_t* code) const;
    // Consecutive codes, row after row; `rows` has room for count · n_bytes.
    void read_all(std::uint8_t* rows, std::int64_t first, std::int64_t count) const;

    // Whole blocks that lie together; lanes past the last code are 0.
    struct Chunk {
        std::shared_ptr<std::uint8_t> data;
        std::int64_t first_block, capacity;  // in blocks
    };
    const std::vector<Chunk>& chunks() const { return chunks_; }
    std::int64_t blocks_in(const Chunk& chunk) const;
    const std::uint8_t* block(std::int64_t number) const;

    // Call f(blocks, first block's number, how many) for each piece that lies together.
    template <class Function> void each_piece(std::int64_t first_block, std::int64_t last_block, Function f) const {
        for (auto at = first_block; at < last_block;) {
            const Chunk& chunk = holding(at);
            const auto end = std::min(last_block, chunk.first_block + chunk.capacity);
            f(chunk.data.get() + (at - chunk.first_block) * block_size(), at, end - at);
            at = end;
        }
    }

   private:
    const Chunk& holding(std::int64_t block_number) const;
    std::uint8_t* writable(std::int64_t block_number) const;
    void grow(std::int64_t n_blocks);

    int n_bytes_;
    std::int64_t n_codes_ = 0;
    std::vector<Chunk> chunks_;  // without gaps, by first_block
};

}  // namespace cghash
