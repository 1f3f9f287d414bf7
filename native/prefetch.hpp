#pragma once

namespace cghash {

// Ask for a cache line that is needed soon.
inline void prefetch(const void* p) {
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(p, 0, 2);
#else
    (void)p;
#endif
}

}  // namespace cghash
