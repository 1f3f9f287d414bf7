// For each item, the items of least score among the relevant ones and among the others, fed by blocks of products.
#pragma once
#include <optional>
#include <span>

#include "kernel_table.hpp"

namespace cghash {

// What finishes products over the leading axes, with a row for each item.
struct NearestBounds {
    std::span<const float> items, low, extra, rest, more;
    std::int64_t n_features, n_more;
};

class NearestLists {
   public:
    // Item j's score for item i is half[j] - dots[i, j]; equal labels are relevant to each other.
    NearestLists(std::span<const float> half, std::span<const std::int32_t> labels, std::int64_t n_near,
                 std::int64_t n_far);

    // Scores that `places` others of each item lie below, for its relevant ones and for the others: lists begin with
    // them, before the first block.
    void begin(std::span<const float> near, std::span<const float> far);

    // Products of items row.. with items column.., (n_rows, n_columns). A block on the diagonal (row == column, square)
    // serves its rows; any other must lie right of it, and serves its rows and its columns. `relevant`, of the same
    // shape, replaces the labels. Blocks come in any order, and from several threads where they share no items.
    void update(std::span<const float> dots, std::int64_t n_rows, std::int64_t n_columns, std::int64_t row,
                std::int64_t column, std::optional<std::span<const std::uint8_t>> relevant);

    // The same from upper bounds of the products: with low[j] for half[j] and a threshold raised by extra[i], a score
    // that is not below lies above for sure. For others the tighter dots[i, j] - rest[i]·rest[j] + more[i]·more[j] is
    // asked, an upper bound too, and what is left is finished with the products of `items`, (n_items, n_features).
    // How many were finished, in both directions.
    std::int64_t update_leading(std::span<const float> dots, std::int64_t n_rows, std::int64_t n_columns,
                                std::int64_t row, std::int64_t column,
                                std::optional<std::span<const std::uint8_t>> relevant, const NearestBounds& bounds);

    std::int64_t n_items() const { return static_cast<std::int64_t>(half_.size()); }
    std::int64_t n_near() const { return n_near_; }
    std::int64_t n_far() const { return n_far_; }
    const std::vector<float>& near_scores() const { return near_scores_; }   // (n_items, n_near), ∞ where none
    const std::vector<float>& far_scores() const { return far_scores_; }     // (n_items, n_far)
    const std::vector<std::int32_t>& near_ids() const { return near_ids_; }  // (n_items, n_near), -1 where none
    const std::vector<std::int32_t>& far_ids() const { return far_ids_; }    // (n_items, n_far)

   private:
    void offer(std::span<const float> dots, std::int64_t n_rows, std::int64_t n_columns, std::int64_t row,
               std::int64_t column, std::optional<std::span<const std::uint8_t>> relevant, const NearestItems* finish);

    std::vector<float> half_;           // (n_items,)
    std::vector<std::int32_t> labels_;  // (n_items,)
    std::int64_t n_near_, n_far_;
    std::vector<float> near_scores_, far_scores_;
    std::vector<std::int32_t> near_ids_, far_ids_;
};

}  // namespace cghash
