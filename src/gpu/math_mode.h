// SPDX-License-Identifier: Apache-2.0
// MathMode: the dtype to which matrix products and convolutions may round their operands.
//
// Contract: the enumeration lists the modes from the most to the least accurate.
//
// Example: CG_TRY(MathMode mode, from_name<MathMode>("tf32", "math mode"));
#pragma once

#include "base/names.h"

namespace cutegen {

enum class MathMode { fp32, tf32, fp16, bf16 };
Names<MathMode> enum_names(MathMode);

}  // namespace cutegen
