#define CGHASH_ISA isa_avx2
#include "kernels/isa.inc"

namespace cghash {
const KernelTable avx2_kernels = CGHASH_KERNEL_TABLE("avx2");
}
