#include <atomic>
#include <cstdlib>
#include <stdexcept>

#include "kernel_table.hpp"
#ifdef CGHASH_X86  // which CMakeLists.txt leaves out for MSVC
#include <cpuid.h>
#endif

namespace cghash {
#ifdef CGHASH_X86
namespace {

// Not by __builtin_cpu_supports, which knows "f16c" in newer compilers alone
bool converts_half_floats() {
    unsigned a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

void add_wider(std::vector<const KernelTable*>& tables) {
    __builtin_cpu_init();
    if (!converts_half_floats()) return;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
        if (__builtin_cpu_supports("avx512vbmi")) tables.push_back(&avx512vbmi_kernels);
        tables.push_back(&avx512_kernels);
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) tables.push_back(&avx2_kernels);
}

}  // namespace
#endif

std::vector<const KernelTable*> runnable_kernels() {
    std::vector<const KernelTable*> tables;
#ifdef CGHASH_X86
    add_wider(tables);
#endif
    tables.push_back(&baseline_kernels);
    return tables;
}

namespace {
const KernelTable* by_name(const std::string& name) {
    const auto tables = runnable_kernels();
    if (name.empty()) return tables.front();
    std::string known;
    for (const auto* table : tables) {
        if (name == table->name) return table;
        known += (known.empty() ? "" : ", ") + std::string(table->name);
    }
    throw std::invalid_argument("instruction set '" + name + "' cannot run here; choose one of: " + known);
}

std::atomic<const KernelTable*>& chosen() {
    static std::atomic<const KernelTable*> table{by_name(std::getenv("CGHASH_ISA") ? std::getenv("CGHASH_ISA") : "")};
    return table;
}
}  // namespace

const KernelTable& kernels() { return *chosen().load(); }
void choose_kernels(const std::string& name) { chosen().store(by_name(name)); }

}  // namespace cghash
