#include "pair_table.hpp"

#include <cstring>
#include <limits>
#include <string>

namespace cghash {
namespace {

void check_pointers(std::span<const std::int64_t> ptr, std::size_t n_blocks, std::size_t n_values, const char* name) {
    if (ptr.size() != n_blocks + 1 || ptr.front() != 0 || ptr.back() != static_cast<std::int64_t>(n_values))
        throw std::invalid_argument(std::string(name) +
                                    " must run from 0 to the number of items, one more than blocks");
    for (std::size_t b = 0; b < n_blocks; ++b)
        if (ptr[b + 1] < ptr[b]) throw std::invalid_argument(std::string(name) + " must not fall");
}

void check_rows(std::span<const std::int64_t> rows, std::int64_t n_items, const char* name) {
    for (auto row : rows)
        if (row < 0 || row >= n_items)
            throw std::invalid_argument(std::string(name) + " must be row numbers from 0 to n_items - 1");
}

void check_size(std::size_t size, std::int64_t expected, const char* name) {
    if (static_cast<std::int64_t>(size) != expected)
        throw std::invalid_argument(std::string(name) + " has the wrong length");
}

}  // namespace

PairTable::PairTable(std::span<const std::int64_t> anchors, std::span<const std::int64_t> near_ptr,
                     std::span<const std::int64_t> near, std::span<const std::int64_t> far_ptr,
                     std::span<const std::int64_t> far, std::span<const double> weights, std::int64_t n_items)
    : n_items_(n_items), block_weight_(weights.begin(), weights.end()) {
    const std::size_t n_blocks = anchors.size();
    if (n_items < 0 || n_items > std::numeric_limits<std::int32_t>::max())
        throw std::invalid_argument("n_items must lie between 0 and 2^31 - 1");
    check_size(weights.size(), static_cast<std::int64_t>(n_blocks), "weights");
    check_pointers(near_ptr, n_blocks, near.size(), "near_ptr");
    check_pointers(far_ptr, n_blocks, far.size(), "far_ptr");
    check_rows(anchors, n_items, "anchors");
    check_rows(near, n_items, "near");
    check_rows(far, n_items, "far");

    slot_anchor_.reserve(near.size() + far.size());
    slot_item_.reserve(near.size() + far.size());
    tile_block_ = tile_word_ = tile_slot_ = {0};
    std::int64_t slots_here = 0;
    auto close_tile = [&](std::int64_t next_block) {
        const std::int64_t words = (slots_here + 63) / 64;
        widest_tile_ = std::max(widest_tile_, words);
        tile_block_.push_back(next_block);
        tile_word_.push_back(tile_word_.back() + words);
        tile_slot_.push_back(tile_slot_.back() + slots_here);
        slots_here = 0;
    };
    for (std::size_t b = 0; b < n_blocks; ++b) {
        const std::int64_t n_near = near_ptr[b + 1] - near_ptr[b], n_far = far_ptr[b + 1] - far_ptr[b];
        if (slots_here > 0 && slots_here + n_near + n_far > 64 * tile_words) close_tile(static_cast<std::int64_t>(b));
        block_slot_.push_back(slots_here);
        block_near_.push_back(static_cast<std::int32_t>(n_near));
        block_far_.push_back(static_cast<std::int32_t>(n_far));
        slot_anchor_.insert(slot_anchor_.end(), n_near + n_far, static_cast<std::int32_t>(anchors[b]));
        for (auto i = near_ptr[b]; i < near_ptr[b + 1]; ++i) slot_item_.push_back(static_cast<std::int32_t>(near[i]));
        for (auto i = far_ptr[b]; i < far_ptr[b + 1]; ++i) slot_item_.push_back(static_cast<std::int32_t>(far[i]));
        slots_here += n_near + n_far;
    }
    if (slots_here > 0) close_tile(static_cast<std::int64_t>(n_blocks));
}

Tile PairTable::tile(std::int64_t t) const {
    const std::int64_t block = tile_block_[t];
    return {tile_word_[t + 1] - tile_word_[t], tile_block_[t + 1] - block, columns_.data() + tile_word_[t] * capacity_,
            block_slot_.data() + block,        block_near_.data() + block, block_far_.data() + block,
            block_weight_.data() + block};
}

void PairTable::reserve(int n_columns) {
    if (n_columns <= capacity_) return;
    std::vector<std::uint64_t> wider(static_cast<std::size_t>(tile_word_.back()) * n_columns);
    for (std::int64_t t = 0; t < n_tiles(); ++t) {
        const std::int64_t words = tile_word_[t + 1] - tile_word_[t];
        std::copy_n(columns_.data() + tile_word_[t] * capacity_, words * n_columns_,
                    wider.data() + tile_word_[t] * n_columns);
    }
    columns_.swap(wider);
    capacity_ = n_columns;
}

void PairTable::append(std::span<const std::uint8_t> bits) {
    check_size(bits.size(), n_items_, "bits");
    if (n_columns_ == capacity_) reserve(std::max(8, 2 * capacity_));
    for (std::int64_t t = 0; t < n_tiles(); ++t) {
        const std::int64_t words = tile_word_[t + 1] - tile_word_[t];
        std::uint64_t* column = columns_.data() + tile_word_[t] * capacity_ + n_columns_ * words;
        std::fill_n(column, words, 0);
        const std::int64_t first = tile_slot_[t];
        for (std::int64_t i = 0; i < slots_of(t); ++i) {
            const std::uint64_t differs = (bits[slot_anchor_[first + i]] ^ bits[slot_item_[first + i]]) & 1;
            column[i >> 6] |= differs << (i & 63);
        }
    }
    ++n_columns_;
}

template <class Work>
void PairTable::for_tiles(int n_threads, Work work) const {
    parallel_chunks(n_chunks(), n_threads, [&](std::int64_t chunk) {
        const std::int64_t last = std::min((chunk + 1) * chunk_tiles, n_tiles());
        for (std::int64_t t = chunk * chunk_tiles; t < last; ++t) work(t, chunk);
    });
}

// Every chunk adds into a row of its own; rows are added in order, so the sum is the same for any n_threads.
template <class Work>
void PairTable::sum_tiles(int n_threads, std::span<double> total, Work work) const {
    std::vector<double> rows(static_cast<std::size_t>(n_chunks()) * total.size(), 0.0);
    for_tiles(n_threads, [&](std::int64_t t, std::int64_t chunk) { work(t, rows.data() + chunk * total.size()); });
    std::fill(total.begin(), total.end(), 0.0);
    for (std::int64_t chunk = 0; chunk < n_chunks(); ++chunk)
        for (std::size_t i = 0; i < total.size(); ++i) total[i] += rows[chunk * total.size() + i];
}

double PairTable::evaluate(Loss loss, std::span<const double> w, std::span<double> gradient, int n_threads) const {
    check_size(w.size(), n_columns_, "w");
    check_size(gradient.size(), n_columns_, "gradient");
    const auto& kernel = kernels();
    std::vector<double> total(n_columns_ + 1);
    sum_tiles(n_threads, total, [&](std::int64_t t, double* row) {
        thread_local std::vector<double> D, q;
        D.resize(64 * widest_tile_);
        q.resize(64 * widest_tile_);
        const Tile here = tile(t);
        kernel.tile_distances(here, w.data(), n_columns_, D.data());
        row[n_columns_] += kernel.tile_loss(here, loss, D.data(), q.data());
        kernel.tile_adjoint(here, q.data(), n_columns_, row);
    });
    std::copy_n(total.begin(), n_columns_, gradient.begin());
    return total.back();
}

void PairTable::distances(std::span<const double> w, std::span<double> D, int n_threads) const {
    check_size(w.size(), n_columns_, "w");
    check_size(D.size(), n_slots(), "D");
    const auto& kernel = kernels();
    for_tiles(n_threads, [&](std::int64_t t, std::int64_t) {
        thread_local std::vector<double> padded;
        padded.resize(64 * widest_tile_);
        kernel.tile_distances(tile(t), w.data(), n_columns_, padded.data());
        std::copy_n(padded.data(), slots_of(t), D.data() + tile_slot_[t]);
    });
}

void PairTable::adjoint(std::span<const double> q, std::span<double> gradient, int n_threads) const {
    check_size(q.size(), n_slots(), "q");
    check_size(gradient.size(), n_columns_, "gradient");
    const auto& kernel = kernels();
    sum_tiles(n_threads, gradient, [&](std::int64_t t, double* row) {
        thread_local std::vector<double> padded;
        padded.assign(64 * widest_tile_, 0.0);
        std::copy_n(q.data() + tile_slot_[t], slots_of(t), padded.data());
        kernel.tile_adjoint(tile(t), padded.data(), n_columns_, row);
    });
}

double PairTable::loss(Loss loss, std::span<const double> D, std::span<double> q, int n_threads) const {
    check_size(D.size(), n_slots(), "D");
    check_size(q.size(), n_slots(), "q");
    const auto& kernel = kernels();
    double value[1];
    sum_tiles(n_threads, value, [&](std::int64_t t, double* row) {
        thread_local std::vector<double> padded, slopes;
        padded.assign(64 * widest_tile_, 0.0);
        slopes.resize(64 * widest_tile_);
        std::copy_n(D.data() + tile_slot_[t], slots_of(t), padded.data());
        row[0] += kernel.tile_loss(tile(t), loss, padded.data(), slopes.data());
        std::copy_n(slopes.data(), slots_of(t), q.data() + tile_slot_[t]);
    });
    return value[0];
}

std::pair<double, std::int64_t> PairTable::counts(std::span<const double> D, double low, double high,
                                                  int n_threads) const {
    check_size(D.size(), n_slots(), "D");
    const auto& kernel = kernels();
    std::vector<std::int64_t> live(n_chunks(), 0);
    double share[1];
    sum_tiles(n_threads, share, [&](std::int64_t t, double* row) {
        kernel.tile_counts(tile(t), D.data() + tile_slot_[t], low, high, row[0], live[t / chunk_tiles]);
    });
    std::int64_t total = 0;
    for (auto n : live) total += n;
    return {share[0], total};
}

}  // namespace cghash
