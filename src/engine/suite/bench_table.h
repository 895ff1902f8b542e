// SPDX-License-Identifier: Apache-2.0
// The rows of a bench as a table for people, as CSV and as JSON (schema cutegen.bench.v1).
//
// Contract: the JSON contains all that is needed to continue the bench; bench_rows_from reads it
// back. Times carry their origin. Untrusted text is sanitized in the table and in the CSV.
//
// Example: print_text(bench_table(report.rows)); write_file(out / "bench.csv", bench_csv(rows));
#pragma once

#include "engine/suite/bench.h"

namespace cutegen::engine {

struct BenchClass {
  std::string workload;
  int64_t tasks = 0, correct = 0;
  std::optional<double> floor_ratio;  // geometric mean over correct programs
};

std::vector<BenchClass> bench_classes(const std::vector<BenchRow>& rows);
std::string bench_header();
std::string bench_line(const BenchRow& row);
// A header, one line per task, one line per class, and the counts.
std::string bench_table(const std::vector<BenchRow>& rows);
std::string bench_csv(const std::vector<BenchRow>& rows);
Json bench_json(const BenchSettings& settings, const BenchReport& report);
// The settings that must be the same to continue a bench.
Json bench_settings_json(const BenchSettings& settings);
Result<std::vector<BenchRow>> bench_rows_from(const Json& document);

}  // namespace cutegen::engine
