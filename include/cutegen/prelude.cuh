// SPDX-License-Identifier: Apache-2.0
// Declares the names that every kernel source may use without an include: fixed-width integers,
// half types, INFINITY and NAN. The compile server parses prelude.cuh once, before it compiles any
// kernel.
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

// prelude.cuh does not include libcu++'s cmath, because the macros of cmath (FP_NAN and others)
// clash with CUTLASS's enumerators.
#ifndef INFINITY
#define INFINITY _CUDA_VSTD::numeric_limits<float>::infinity()
#endif
#ifndef NAN
#define NAN _CUDA_VSTD::numeric_limits<float>::quiet_NaN()
#endif
