// SPDX-License-Identifier: Apache-2.0
// The text that commands such as `optimize` print at the end of a run.
//
// Contract: the text says why the run stopped, and compares the best program with the first correct
// program, the floor (the least possible time) and the baselines. The text also shows saved
// launches and bytes, the certificate, the cost, the conditions under which the result holds
// (shapes, architecture, skipped checks), and the written files. The function end_text() sanitizes
// untrusted text and labels modelled times.
//
// Example: print_text(end_text(view, run_id));
#pragma once

#include <string>

#include "engine/record/view.h"

namespace cutegen::engine {

std::string end_text(const RunView& view, const std::string& run_id);

}  // namespace cutegen::engine
