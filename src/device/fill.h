// SPDX-License-Identifier: Apache-2.0
// Fills a buffer with one value of a dtype.
//
// Contract: for a floating-point dtype, fill_bytes() rounds the value. For an integer dtype that
// cannot represent the value exactly, it returns an error.
//
// Example: CG_CHECK(fill_bytes(out, DType::f32, 1.0));
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "tensor/dtype.h"

namespace cutegen::device {

Result<void> fill_bytes(std::span<std::byte> bytes, DType dtype, double value);

}  // namespace cutegen::device
