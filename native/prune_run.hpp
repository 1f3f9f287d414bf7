// One query's way through the tables: keys in order of their distance from the query's, until no unseen code can be
// nearer.
//
// When the tables have visited their first r_1, r_2, … masks, a code that none of them has shown is at least as far as
// the weights of the next masks together. Which table goes on is decided by what its next keys add to this bound for
// what they cost.
#pragma once
#include "code_search.hpp"
#include "ordered_tables.hpp"

namespace cghash {

// Offer the rows that are near a query to a reservoir. False when `budget` was spent before the end, or no keys
// were left in order; `spent` says how much it took. Rows with a bit in `stale` are passed over. When `alone` is spent, another thread joins, where all rows
// count.
bool prune_run(const OrderedTables& on, const CodeQuery& ask, const std::uint8_t* query, const std::uint8_t* stale,
               double budget, double alone, Reservoir& nearest, double& spent);

}  // namespace cghash
