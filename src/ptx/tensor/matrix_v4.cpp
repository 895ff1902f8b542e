// SPDX-License-Identifier: Apache-2.0
#define CG_ISA v4
#include "ptx/tensor/matrix.inc"
