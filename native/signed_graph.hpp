// Signed weights on pairs of items, and the products with their Laplacian (design §3.2).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace cghash {

class SignedGraph {
   public:
    // Slot k joins items first[k] and second[k]; the slots stay, their weights change from column to column.
    SignedGraph(std::span<const std::int32_t> first, std::span<const std::int32_t> second, std::int64_t n_items);

    // New weights (n_slots,). Items without a live slot are left out of `items` when they are many.
    void set_weights(std::span<const double> weights, int n_threads);
    const std::vector<std::int64_t>& items() const { return items_; }
    std::int64_t n_slots() const { return static_cast<std::int64_t>(first_.size()); }

    // out_i = Σ_j s_ij (t_i - t_j), over the rows of `items`
    void laplacian(std::span<const float> t, std::span<float> out, int n_threads) const;
    // what the near pairs, those of negative weight, of each row of `items` weigh
    void near_weight(std::span<float> out, int n_threads) const;
    // Σ s·[bits differ], over all items; summed slot after slot in fixed chunks
    double gain(std::span<const std::uint8_t> bits, int n_threads) const;

   private:
    std::int64_t n_items_;
    std::vector<std::int32_t> first_, second_;     // (n_slots,)
    std::vector<std::int64_t> start_;              // (n_items + 1,) of each item's slot ends
    std::vector<std::int32_t> other_, slot_;       // (2·n_slots,) the item at the other end, and the slot
    std::vector<double> weights_;                  // (n_slots,)
    std::vector<std::int64_t> items_, row_start_;  // live rows, and where their live ends begin
    std::vector<std::int32_t> row_other_;          // live ends: the other's row
    std::vector<float> row_weight_;                // and its weight
};

}  // namespace cghash
