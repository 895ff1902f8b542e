// SPDX-License-Identifier: Apache-2.0
#define CG_ISA base
#include "ptx/tensor/matrix.inc"
