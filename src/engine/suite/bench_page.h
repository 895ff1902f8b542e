// SPDX-License-Identifier: Apache-2.0
// A bench as one self-contained HTML page: no script, no network, untrusted text escaped.
//
// Contract: the page shows bench_table, summary_text and one row per task.
// Example: write_file(out / "bench.html", bench_html(settings, report));
#pragma once

#include "engine/suite/bench.h"

namespace cutegen::engine {

std::string bench_html(const BenchSettings& settings, const BenchReport& report);

}  // namespace cutegen::engine
