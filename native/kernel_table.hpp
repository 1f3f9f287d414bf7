// What every instruction set provides. dispatch.cpp hands out the best table that this machine can run.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "prefetch.hpp"

namespace cghash {

enum class Loss : int { squared_hinge = 0, hinge = 1, logistic = 2, exponential = 3 };

// A run of whole blocks whose pair slots are worked on together, in cache.
struct Tile {
    std::int64_t n_words;  // of 64 slots each, the last padded with zeros
    std::int64_t n_blocks;
    const std::uint64_t* columns;    // (n_columns, n_words)
    const std::int64_t* block_slot;  // (n_blocks,) first slot, counted from the tile's own
    const std::int32_t* block_near;  // (n_blocks,)
    const std::int32_t* block_far;   // (n_blocks,)
    const double* block_weight;      // (n_blocks,)
};

// One end of a pair slot as its other end sees it.
struct SlotEnd {
    double s;
    std::int32_t item;
};

// A block of features that are swept together, and the items that have a live slot.
struct StumpBlock {
    int n_features;  // at most stump_lanes of the ranks' type
    std::int64_t n_items;
    const std::int32_t* item;   // (n_items,)
    const std::int64_t* first;  // (n_items + 1,) where each item's slot ends begin
    const SlotEnd* ends;        // followed by stump_padding ends that may be prefetched
    double* const* delta;       // (n_features,) one table over ranks each
};
// Features in a block: enough to share a load and a loop, few enough for their delta tables to stay in cache.
template <class T> constexpr int stump_lanes = sizeof(T) == 4 ? 8 : 16;
constexpr std::int64_t stump_padding = 16;
// The lists of all items, `size` places each, sorted by score.
struct NearestList {
    float* scores;      // (n_items, size), ∞ where there is none
    std::int32_t* ids;  // (n_items, size), -1 where there is none
    std::int64_t size;
};

// What finishes products over some axes only, which are no smaller than the whole ones: first products over more axes,
// no smaller either, then whole ones.
struct NearestItems {
    const float* items;  // (n_items, n_features)
    std::int64_t n_features;
    const float* low;    // (n_items,) half, less what rounding may have added
    const float* extra;  // (n_items,) what a threshold is raised by
    const float* rest;   // (n_items,) what `dots` have in place of all axes but the leading ones
    const float* more;   // (n_items, n_more) what takes its place
    std::int64_t n_more;
    std::int64_t* n_finished;
};

// Products of items row.. with items column.., and the lists that they may enter.
struct NearestBlock {
    std::int64_t n_rows, n_columns, row, column;
    const float* dots;             // (n_rows, n_columns)
    const float* half;             // (n_items,)
    const std::int32_t* labels;    // (n_items,)
    const std::uint8_t* relevant;  // (n_rows, n_columns), or null: equal labels are relevant
    NearestList near, far;
    const NearestItems* finish;  // null: `dots` are whole products
};
inline constexpr std::int64_t nearest_columns = 256;  // whose thresholds are held at a time

// Consecutive blocks of 64 codes; byte j of lane i is at 64·j + i.
struct ScanRange {
    const std::uint8_t* blocks;
    std::int64_t first_block, n_blocks;  // first_block is only passed on
};
// A query as a scan sees it; survivors may change all of it while the scan goes on.
struct ScanQuery {
    const std::uint8_t* tables;  // see kernels/scan.hpp
    std::uint16_t limit;         // lanes whose sum is at most this survive; below 256 for up to 16 bytes
    bool light;                  // whether no entry is above 127: the sum of two fits a byte; 5 to 16 bytes
};
using Survivors = void (*)(void* context, int query, const std::uint8_t* block, std::int64_t block_number,
                           std::uint64_t lanes);
// Cache lines that will be needed, to be asked for one by one.
struct Lines {
    const std::uint8_t *next = nullptr, *end = nullptr;

    Lines() = default;
    // All that hold a byte of p … end − 1.
    Lines(const std::uint8_t* p, const std::uint8_t* end_)
        : next(p < end_ ? p - reinterpret_cast<std::uintptr_t>(p) % 64 : end_), end(end_) {}
    bool left() const { return next < end; }
    void ask() {
        prefetch(next);
        next += 64;
    }
    void ask_all() {
        while (left()) ask();
    }
};
// The codes of a table lie in groups of 16, of which some bytes are stored; byte j of lane i is at 16·j + i. They are not
// 64, as in blocks: most keys have few codes, and each line of a group takes time to come.
inline constexpr std::int64_t group_lanes = 16;
// The codes of one key: places first … last − 1.
struct BucketRange {
    // Groups of so many bytes a code that were asked for before.
    static constexpr std::int64_t asked(int n_bytes) { return std::clamp(640 / std::max(n_bytes, 1), 4, 40); }
    const std::uint8_t* groups;  // group 0
    std::int64_t first, last;
    Lines soon{};  // of a bucket that comes later
};
struct BucketQuery {
    // Of stored bytes, four at a time: tables of 16 entries for the low nibble of each, then for the high ones; of bytes
    // that are not there, zeros.
    const std::uint8_t* sheet;
    int n_bytes;                // of a code that are looked up
    int n_stored;               // of a code
    const std::uint8_t* start;  // what the key's bits add to every sum
    const std::uint8_t* limit;  // below 255
};
// Lanes of one to four groups whose sum is at most the limit; it may change all that the query points to.
using GroupSurvivors = void (*)(void* context, const std::uint8_t* group, std::int64_t number, std::uint64_t lanes);

enum class RowType : int { float32, float16, int8 };
enum class RowMetric : int { euclidean, inner, cosine };

// A query, and rows that hold `dim` values each at their start; none needs to be aligned.
struct RowTask {
    const std::uint8_t* rows;
    std::int64_t stride, dim;  // bytes of a row, and values
    RowType type;
    RowMetric metric;
    const double* query;  // (dim,) with room for eight in front
    const double* scale;  // the same, of int8 alone: what its values are multiplied by
    double square;        // the query's product with itself, of cosine alone
};

struct KernelTable {
    const char* name;
    int lookup_bits;  // of scan: 6 or 4
    double block_ns;  // what 64 codes of 8 bytes take, roughly
    void (*scan)(const ScanRange&, int n_bytes, ScanQuery*, int n_queries, Survivors, void* context);
    void (*scan_bucket)(const BucketRange&, const BucketQuery&, GroupSurvivors, void* context);
    void (*quantize)(const float* values, std::int64_t n, float scale, std::uint8_t* out);
    void (*tile_distances)(const Tile&, const double* w, int n_columns, double* D);
    void (*tile_adjoint)(const Tile&, const double* q, int n_columns, double* g);
    double (*tile_loss)(const Tile&, Loss, double* D, double* q);
    void (*tile_counts)(const Tile&, const double* D, double low, double high, double& share, std::int64_t& live);
    void (*stump_deltas_8)(const StumpBlock&, const std::uint8_t* ranks);
    void (*stump_deltas_16)(const StumpBlock&, const std::uint16_t* ranks);
    void (*stump_deltas_32)(const StumpBlock&, const std::uint32_t* ranks);
    void (*nearest)(const NearestBlock&);
    void (*row_distances)(const RowTask&, const std::int64_t* candidates, std::int64_t n, double* out);
    void (*project_f32)(const float* X, std::int64_t n, const double* coef, std::int64_t d, std::int64_t l,
                        double* out);
    void (*project_f64)(const double* X, std::int64_t n, const double* coef, std::int64_t d, std::int64_t l,
                        double* out);
    void (*dot_rows_f32)(const float* Z, std::int64_t n, std::int64_t d, const float* v, float* out);
    void (*dot_rows_u8)(const std::uint8_t* Z, std::int64_t n, std::int64_t d, const float* v, float* out);
    void (*tdot_rows_f32)(const float* Z, std::int64_t n, std::int64_t d, const float* r, double* g);
    void (*tdot_rows_u8)(const std::uint8_t* Z, std::int64_t n, std::int64_t d, const float* r, double* g);
};

extern const KernelTable baseline_kernels;
#ifdef CGHASH_X86
extern const KernelTable avx2_kernels;
extern const KernelTable avx512_kernels;
extern const KernelTable avx512vbmi_kernels;
#endif

// The best table, or the one that CGHASH_ISA names when this machine can run it.
const KernelTable& kernels();
// All tables that this machine can run, widest first.
std::vector<const KernelTable*> runnable_kernels();
// Choose by name ("" means the best); throws std::invalid_argument.
void choose_kernels(const std::string& name);

}  // namespace cghash
