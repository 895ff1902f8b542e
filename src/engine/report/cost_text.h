// SPDX-License-Identifier: Apache-2.0
// What a run's models cost, and how much of a program is CuTe, in one line each.
//
// Contract: terminal and report both use it. Dollars appear only if a price is known.
//
// Example: line("model", model_cost_text(view));  // "8 calls, 91000 tokens in (70% cached), ..."
#pragma once

#include "engine/record/view.h"

namespace cutegen::engine {

std::string model_cost_text(const RunView& view);
std::string cute_use_text(const KernelProgram& program);

}  // namespace cutegen::engine
