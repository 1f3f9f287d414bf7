// Whether tables say of codes what is so: those of a file may have been altered.
#pragma once
#include <cstdint>
#include <vector>

#include "code_blocks.hpp"
#include "prune_tables.hpp"

namespace cghash {

struct CheckedAgainst {
    const CodeBlocks& codes;
    const std::vector<std::uint8_t>& stale;  // a bit for each code that was changed since; may be empty
    const std::int64_t* ids;                 // null for positions
    const std::uint8_t* allowed;             // a bit for each code that is not removed; null for all
};

// Throws std::invalid_argument that says what is not so. Sizes must fit each other (PruneTables::check).
void check_tables(const PruneTables&, const CheckedAgainst&);

}  // namespace cghash
