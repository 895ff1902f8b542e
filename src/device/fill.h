// SPDX-License-Identifier: Apache-2.0
// Filling a buffer with one value of a dtype.
//
// Contract: the value is rounded to the dtype; an integer dtype needs a value it can hold. A fill
// with zero bytes of a fresh anonymous mapping still touches it.
//
// Example: CG_CHECK(fill_bytes(out, DType::f32, 1.0));
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "tensor/dtype.h"

namespace cutegen {

[[nodiscard]] Result<void> fill_bytes(std::span<std::byte> bytes, DType dtype, double value);

}  // namespace cutegen
