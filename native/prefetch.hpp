#pragma once

namespace cghash {

// Ask for a cache line that is needed soon.
inline void prefetch(const void* p) {
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(p, 0, 2);
    // GCC takes a function that only prefetches for one without effect, and leaves out the calls of it
    asm volatile("" : : "r"(p));
#else
    (void)p;
#endif
}

}  // namespace cghash
