// SPDX-License-Identifier: Apache-2.0
// Fills a buffer with one value of a dtype.
//
// Contract: rounds the value to the dtype. An integer dtype must be able to hold the value exactly.
// A fill with zero writes every page too, even of a fresh anonymous mapping.
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
