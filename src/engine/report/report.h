// SPDX-License-Identifier: Apache-2.0
// The report page of a run: one self-contained HTML file.
//
// Contract: report_html() escapes all text from models, tasks and programs, and also accepts the
// events of an unfinished run.
//
// Example: CG_TRY(std::string page, report_html(info, events));
#pragma once

#include <string>
#include <vector>

#include "store/store.h"

namespace cutegen::engine {

Result<std::string> report_html(const store::RunInfo& info, const std::vector<Event>& events);

}  // namespace cutegen::engine
