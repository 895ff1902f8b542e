// SPDX-License-Identifier: Apache-2.0
// Protection: how much of the requested sandbox was in effect for a process or for the evaluation
// of a program.
//
// Example: if (grade.label != Protection::full) warn(grade.missing);
#pragma once

#include "base/names.h"

namespace cutegen {

enum class Protection { none, partial, full };
Names<Protection> enum_names(Protection);

}  // namespace cutegen
