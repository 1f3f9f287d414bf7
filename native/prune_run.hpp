// One query's way through the tables: keys in order of their distance from the query's, until no unseen code can be
// nearer.
//
// When the tables have visited their first r_1, r_2, … masks, a code that none of them has shown is at least as far as
// the weights of the next masks together. Which table goes on is decided by what its next keys add to this bound for
// what they cost.
#pragma once
#include <limits>

#include "code_search.hpp"
#include "ordered_tables.hpp"

namespace cghash {

// What a query may spend, and has spent.
struct Effort {
    double budget;  // where this is spent before the end, the query is given up
    double alone;   // where this is spent, another thread joins, if all rows count
    // From here on, whenever as much again is spent, a query that seems to need more than the budget is given up.
    double check = std::numeric_limits<double>::infinity();
    double spent = 0;
};

// Offer the rows that are near a query to a reservoir. False where it was given up, or no keys were left in order. Rows
// with a bit in `stale` are passed over.
bool prune_run(const OrderedTables& on, const CodeQuery& ask, const std::uint8_t* query, const std::uint8_t* stale,
               Effort& effort, Reservoir& nearest);

}  // namespace cghash
