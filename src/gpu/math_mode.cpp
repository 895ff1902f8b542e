// SPDX-License-Identifier: Apache-2.0
#include "gpu/math_mode.h"

namespace cutegen {

Names<MathMode> enum_names(MathMode) {
  static constexpr Name<MathMode> names[] = {{MathMode::fp32, "fp32"},
                                             {MathMode::tf32, "tf32"},
                                             {MathMode::fp16, "fp16"},
                                             {MathMode::bf16, "bf16"}};
  return names;
}

}  // namespace cutegen
