// SPDX-License-Identifier: Apache-2.0
// What every kernel source may take for granted: fixed-width integers, half types, INFINITY, NAN.
// It is parsed once, before any candidate; a source need not include it.
#pragma once

#include <cfloat>
#include <cmath>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cuda/std/climits>
#include <cuda/std/cstddef>
#include <cuda/std/cstdint>
#include <cuda/std/limits>
#include <cuda/std/type_traits>

// Not libcu++'s cmath: its macros FP_NAN and others clash with the enumerators of CUTLASS.
#ifndef INFINITY
#define INFINITY _CUDA_VSTD::numeric_limits<float>::infinity()
#endif
#ifndef NAN
#define NAN _CUDA_VSTD::numeric_limits<float>::quiet_NaN()
#endif
