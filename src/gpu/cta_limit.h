// SPDX-License-Identifier: Apache-2.0
// CtaLimit: the resource that limits how many CTAs of a kernel are resident on an SM.
//
// Contract: to_string() names the resource as reports and counters do; `unknown` is an empty text.
//
// Example: if (kernel.limited_by == CtaLimit::registers) use_fewer_registers();
#pragma once

#include "base/names.h"

namespace cutegen {

enum class CtaLimit { unknown, blocks, grid, registers, shared_memory, threads };
Names<CtaLimit> enum_names(CtaLimit);

}  // namespace cutegen
