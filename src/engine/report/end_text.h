// SPDX-License-Identifier: Apache-2.0
// The text that commands such as `optimize` print at the end of a run.
//
// Contract: the text says why the run stopped, and compares the best program with the first correct
// one, the floor and the baselines. It also shows saved launches and bytes, the certificate, the
// cost, the limits of the result, and the written files. Untrusted text is sanitized, and modelled
// times are labelled.
//
// Example: print_text(end_text(view, run_id));
#pragma once

#include <string>

#include "engine/record/view.h"

namespace cutegen::engine {

std::string end_text(const RunView& view, const std::string& run_id);

}  // namespace cutegen::engine
