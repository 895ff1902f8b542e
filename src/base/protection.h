// SPDX-License-Identifier: Apache-2.0
// Protection: how much of the requested protection was in effect for a process or a judgement.
//
// Example: if (grade.label != Protection::full) warn(grade.missing);
#pragma once

#include "base/names.h"

namespace cutegen {

enum class Protection { none, partial, full };
Names<Protection> enum_names(Protection);

}  // namespace cutegen
