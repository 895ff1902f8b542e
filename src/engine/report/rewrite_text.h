// SPDX-License-Identifier: Apache-2.0
// The rewrites of a program (core/candidate.h) in words.
//
// Contract: one line for each rewrite that changed the graph of the best program, or of the first
// program if no program is correct. One more line for each rewrite that the user could still
// choose.
//
// Example: for (const std::string& text : rewrite_lines(view)) out += line("rewrites", text);
#pragma once

#include <string>
#include <vector>

#include "engine/record/view.h"

namespace cutegen::engine {

std::vector<std::string> rewrite_lines(const RunView& view);
// The same lines for the terminal; empty if there are none.
std::string rewrites_text(const RunView& view);

}  // namespace cutegen::engine
