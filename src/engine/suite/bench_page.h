// SPDX-License-Identifier: Apache-2.0
// Writes the results of a bench as one HTML page without scripts and external resources.
//
// Contract: the page shows bench_table(), summary_text() and one row per task. The function
// bench_html() escapes untrusted text.
//
// Example: write_file(out / "bench.html", bench_html(settings, report));
#pragma once

#include "engine/suite/bench.h"

namespace cutegen::engine {

std::string bench_html(const BenchSettings& settings, const BenchReport& report);

}  // namespace cutegen::engine
