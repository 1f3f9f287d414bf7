#define CGHASH_ISA isa_baseline
#include "kernels/isa.inc"

namespace cghash {
const KernelTable baseline_kernels = CGHASH_KERNEL_TABLE("baseline");
}
