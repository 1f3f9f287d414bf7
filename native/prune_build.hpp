// Builds tables: lays them out, sorts codes by the first key, and fills the others from it.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "prune_layout.hpp"
#include "prune_tables.hpp"

namespace cghash {

// Null where the limits allow none. Queries like the samples shall be quick.
std::unique_ptr<PruneTables> build_tables(const CodeBlocks& codes, const Lookups& lookups,
                                          std::span<const Sample> samples, const std::int64_t* ids,
                                          const std::uint8_t* allowed, const TableOptions& options, int n_threads);

}  // namespace cghash
