// SPDX-License-Identifier: Apache-2.0
// Describes the algebraic rewrites that changed a program's graph (core/candidate.h).
//
// Contract: rewrite_lines() returns one line for each rewrite that changed the graph of the best
// program, or of the first program if no program is correct. It also returns one line for each
// further rewrite that applies to the task and that the user could enable.
//
// Example: for (const std::string& text : rewrite_lines(view)) out += line("rewrites", text);
#pragma once

#include <string>
#include <vector>

#include "engine/record/view.h"

namespace cutegen::engine {

std::vector<std::string> rewrite_lines(const RunView& view);
// Returns the lines of rewrite_lines() as text for the terminal; empty if there are no lines.
std::string rewrites_text(const RunView& view);

}  // namespace cutegen::engine
