// Triplets as product blocks, their pair slots cut into tiles, and the columns found so far as bits over the slots.
#pragma once
#include <memory>
#include <span>
#include <stdexcept>

#include "kernel_table.hpp"
#include "parallel.hpp"

namespace cghash {

class PairTable {
   public:
    // near[near_ptr[b]:near_ptr[b+1]] are the near items of anchors[b], likewise far. A block's slots are its near
    // pairs, then its far pairs; slots are numbered block after block.
    PairTable(std::span<const std::int64_t> anchors, std::span<const std::int64_t> near_ptr,
              std::span<const std::int64_t> near, std::span<const std::int64_t> far_ptr,
              std::span<const std::int64_t> far, std::span<const double> weights, std::int64_t n_items);

    std::int64_t n_slots() const { return static_cast<std::int64_t>(slot_item_.size()); }
    std::int64_t n_blocks() const { return static_cast<std::int64_t>(block_weight_.size()); }
    std::int64_t n_items() const { return n_items_; }
    int n_columns() const { return n_columns_; }
    std::int64_t n_bytes() const { return static_cast<std::int64_t>(columns_.size()) * 8; }

    void reserve(int n_columns);
    void append(std::span<const std::uint8_t> bits);  // (n_items,) of 0 and 1

    // Σ p f(ρ) at weights w, and its gradient: one pass over the columns' bits
    double evaluate(Loss loss, std::span<const double> w, std::span<double> gradient, int n_threads) const;
    void distances(std::span<const double> w, std::span<double> D, int n_threads) const;
    void adjoint(std::span<const double> q, std::span<double> gradient, int n_threads) const;
    double loss(Loss loss, std::span<const double> D, std::span<double> q, int n_threads) const;
    std::pair<double, std::int64_t> counts(std::span<const double> D, double low, double high, int n_threads) const;

   private:
    static constexpr std::int64_t tile_words = 8;    // 512 slots: distances and slopes stay in the first-level cache
    static constexpr std::int64_t chunk_tiles = 32;  // what one thread takes at a time

    std::int64_t n_tiles() const { return static_cast<std::int64_t>(tile_word_.size()) - 1; }
    std::int64_t n_chunks() const { return (n_tiles() + chunk_tiles - 1) / chunk_tiles; }
    std::int64_t slots_of(std::int64_t tile) const { return tile_slot_[tile + 1] - tile_slot_[tile]; }
    Tile tile(std::int64_t index) const;
    template <class Work> void for_tiles(int n_threads, Work work) const;
    template <class Work> void sum_tiles(int n_threads, std::span<double> total, Work work) const;

    std::int64_t n_items_;
    int n_columns_ = 0, capacity_ = 0;
    std::int64_t widest_tile_ = 0;                                  // in words
    std::vector<std::int32_t> slot_anchor_, slot_item_;             // (n_slots,)
    std::vector<std::int64_t> block_slot_;                          // (n_blocks,) within its tile
    std::vector<std::int32_t> block_near_, block_far_;              // (n_blocks,)
    std::vector<double> block_weight_;                              // (n_blocks,)
    std::vector<std::int64_t> tile_block_, tile_word_, tile_slot_;  // (n_tiles + 1,)
    std::vector<std::uint64_t> columns_;                            // tile after tile, (capacity, n_words) each
};

}  // namespace cghash
