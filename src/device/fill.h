// SPDX-License-Identifier: Apache-2.0
// Fills a buffer with one value of a dtype.
//
// Contract: fill_bytes() rounds the value to a floating-point dtype. An integer dtype must
// represent the value exactly. Filling with zero also writes every page, even if the memory is a
// fresh anonymous mapping.
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
