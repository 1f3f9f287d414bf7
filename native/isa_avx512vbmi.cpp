#define CGHASH_ISA isa_avx512vbmi
#include "kernels/isa.inc"

namespace cghash {
const KernelTable avx512vbmi_kernels = CGHASH_KERNEL_TABLE("avx512vbmi");
}
