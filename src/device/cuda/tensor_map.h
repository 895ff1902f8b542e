// SPDX-License-Identifier: Apache-2.0
// Encodes the tensor map in a launch's argument as the driver's 128 bytes.
//
// Contract: the description consists of int64 words: rank, dims, strides in elements, then the
// words of the module's tma_spec (core/program.h). A map that the GPU does not support is a user
// error with TMA's rules. An unknown swizzle is unsupported.
//
// Example: CG_TRY(TensorMap map, encode_map(driver, arg.bytes, address, "step gemm"));
#pragma once

#include <span>

#include "device/cuda/driver.h"

namespace cutegen::device::cuda {

Result<TensorMap> encode_map(const Driver& driver, std::span<const std::byte> description,
                             Address address, const std::string& where);

}  // namespace cutegen::device::cuda
