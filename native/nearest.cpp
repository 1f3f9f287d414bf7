#include "nearest.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace cghash {
namespace {

std::int64_t checked(std::int64_t value, std::int64_t most, const char* message) {
    if (value < 0 || value > most) throw std::invalid_argument(message);
    return value;
}

}  // namespace

NearestLists::NearestLists(std::span<const float> half, std::span<const std::int32_t> labels, std::int64_t n_near,
                           std::int64_t n_far)
    : half_(half.begin(), half.end()),
      labels_(labels.begin(), labels.end()),
      n_near_(checked(n_near, n_items(), "n_near must lie between 0 and the number of items")),
      n_far_(checked(n_far, n_items(), "n_far must lie between 0 and the number of items")) {
    if (half.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
        throw std::invalid_argument("there must be fewer than 2^31 items");
    if (labels.size() != half.size()) throw std::invalid_argument("labels must be as long as half");
    const float infinity = std::numeric_limits<float>::infinity();
    near_scores_.assign(static_cast<std::size_t>(n_items() * n_near_), infinity);
    far_scores_.assign(static_cast<std::size_t>(n_items() * n_far_), infinity);
    near_ids_.assign(near_scores_.size(), -1);
    far_ids_.assign(far_scores_.size(), -1);
}

void NearestLists::begin(std::span<const float> near, std::span<const float> far) {
    if (near.size() != half_.size() || far.size() != half_.size())
        throw std::invalid_argument("near and far must be as long as half");
    for (std::int64_t i = 0; i < n_items(); ++i) {
        std::fill_n(near_scores_.begin() + i * n_near_, n_near_, near[i]);
        std::fill_n(far_scores_.begin() + i * n_far_, n_far_, far[i]);
    }
}

void NearestLists::update(std::span<const float> dots, std::int64_t n_rows, std::int64_t n_columns, std::int64_t row,
                          std::int64_t column, std::optional<std::span<const std::uint8_t>> relevant) {
    offer(dots, n_rows, n_columns, row, column, relevant, nullptr);
}

std::int64_t NearestLists::update_leading(std::span<const float> dots, std::int64_t n_rows, std::int64_t n_columns,
                                          std::int64_t row, std::int64_t column,
                                          std::optional<std::span<const std::uint8_t>> relevant,
                                          const NearestBounds& bounds) {
    const auto& [items, low, extra, rest, more, n_features, n_more] = bounds;
    if (static_cast<std::int64_t>(items.size()) != n_items() * n_features ||
        static_cast<std::int64_t>(more.size()) != n_items() * n_more)
        throw std::invalid_argument("items and more must have a row for each item");
    if (low.size() != half_.size() || extra.size() != half_.size() || rest.size() != half_.size())
        throw std::invalid_argument("low, extra and rest must be as long as half");
    std::int64_t n_finished = 0;
    const NearestItems finish{items.data(), n_features,  low.data(), extra.data(),
                              rest.data(),  more.data(), n_more,     &n_finished};
    offer(dots, n_rows, n_columns, row, column, relevant, &finish);
    return n_finished;
}

void NearestLists::offer(std::span<const float> dots, std::int64_t n_rows, std::int64_t n_columns, std::int64_t row,
                         std::int64_t column, std::optional<std::span<const std::uint8_t>> relevant,
                         const NearestItems* finish) {
    const std::int64_t n = n_items();
    if (n_rows < 0 || n_rows > n || n_columns < 0 || n_columns > n ||
        static_cast<std::int64_t>(dots.size()) != n_rows * n_columns)
        throw std::invalid_argument("dots must have at most as many rows and columns as there are items");
    checked(row, n - n_rows, "row must leave room for the rows of dots");
    checked(column, n - n_columns, "column must leave room for the columns of dots");
    const bool diagonal = row == column && n_rows == n_columns;
    if (!diagonal && row + n_rows > column)
        throw std::invalid_argument("a block must stand on the diagonal or right of it");
    if (relevant && relevant->size() != dots.size())
        throw std::invalid_argument("relevant must have the shape of dots");

    const NearestBlock block{n_rows,
                             n_columns,
                             row,
                             column,
                             dots.data(),
                             half_.data(),
                             labels_.data(),
                             relevant ? relevant->data() : nullptr,
                             {near_scores_.data(), near_ids_.data(), n_near_},
                             {far_scores_.data(), far_ids_.data(), n_far_},
                             finish};
    kernels().nearest(block);
}

}  // namespace cghash
