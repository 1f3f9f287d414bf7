#define CGHASH_ISA isa_avx512
#include "kernels/isa.inc"

namespace cghash {
const KernelTable avx512_kernels = CGHASH_KERNEL_TABLE("avx512");
}
