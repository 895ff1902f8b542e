// SPDX-License-Identifier: Apache-2.0
// Asks the driver to encode a tensor map (the descriptor of TMA copies), from its description in a
// launch argument.
//
// Contract: the description consists of int64 words: rank, sizes, strides in elements, then the
// words of the module's constant `tma_spec` (core/program.h). If the GPU does not support the
// tensor map, the result is a user error that quotes TMA's rules. If the swizzle is unknown, the
// result is an `unsupported` error.
//
// Example: CG_TRY(TensorMap map, encode_map(driver, arg.bytes, address, "step gemm"));
#pragma once

#include <span>

#include "device/cuda/driver.h"

namespace cutegen::device::cuda {

Result<TensorMap> encode_map(const Driver& driver, std::span<const std::byte> description,
                             Address address, const std::string& where);

}  // namespace cutegen::device::cuda
