// Memory for what searches jump about in: in huge pages where it is large, so that addresses are found quickly.
#pragma once
#include <cstddef>
#include <new>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace cghash {

template <class T> struct HugePages {
    using value_type = T;
    static constexpr std::size_t page = std::size_t{2} << 20;

    HugePages() = default;
    template <class U> HugePages(const HugePages<U>&) noexcept {}

    T* allocate(std::size_t n) {
        const auto size = n * sizeof(T);
        auto* p = ::operator new(size, std::align_val_t{alignment(size)});
#if defined(__linux__)
        if (alignment(size) == page) madvise(p, size / page * page, MADV_HUGEPAGE);
#endif
        return static_cast<T*>(p);
    }
    void deallocate(T* p, std::size_t n) noexcept { ::operator delete(p, std::align_val_t{alignment(n * sizeof(T))}); }
    friend bool operator==(const HugePages&, const HugePages&) { return true; }

   private:
    static constexpr std::size_t alignment(std::size_t size) { return size >= 2 * page ? page : 64; }
};

}  // namespace cghash
