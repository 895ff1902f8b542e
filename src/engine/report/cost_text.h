// SPDX-License-Identifier: Apache-2.0
// Formats one line about the cost of a run's model calls, and one line about a program's use of
// CuTe.
//
// Contract: model_cost_text() shows dollars only if the price of the model is known.
//
// Example: line("model", model_cost_text(view));  // "8 calls, 91000 tokens in (70% cached), ..."
#pragma once

#include "engine/record/view.h"

namespace cutegen::engine {

std::string model_cost_text(const RunView& view);
std::string cute_use_text(const KernelProgram& program);

}  // namespace cutegen::engine
