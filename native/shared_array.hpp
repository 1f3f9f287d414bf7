// Arrays of tables: made here, or handed in from a file.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "huge_pages.hpp"

namespace cghash {

// What is made here.
template <class T> using HugePageVector = std::vector<T, HugePages<T>>;

// A span with what keeps it alive: a vector of ours, or memory that was handed in.
template <class T> struct SharedArray {
    std::span<const T> values;
    std::shared_ptr<const void> owner;

    SharedArray() = default;
    SharedArray(HugePageVector<T> made) {  // NOLINT: on purpose implicit
        auto held = std::make_shared<const HugePageVector<T>>(std::move(made));
        values = *held;
        owner = held;
    }
    SharedArray(std::span<const T> handed, std::shared_ptr<const void> keeps)
        : values(handed), owner(std::move(keeps)) {}
    const T& operator[](std::size_t i) const { return values[i]; }
    std::size_t size() const { return values.size(); }
};

}  // namespace cghash
