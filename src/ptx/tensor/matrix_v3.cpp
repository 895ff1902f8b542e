// SPDX-License-Identifier: Apache-2.0
#define CG_ISA v3
#include "ptx/tensor/matrix.inc"
