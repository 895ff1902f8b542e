// SPDX-License-Identifier: Apache-2.0
// Converts the rows of a bench to a text table, to CSV and to JSON (schema cutegen.bench.v1).
//
// Contract: the JSON contains everything that `bench` needs to continue, and bench_rows_from()
// reads the JSON. Every time has a label that names its origin. The functions sanitize untrusted
// text in the table and in the CSV.
//
// Example: print_text(bench_table(report.rows)); write_file(out / "bench.csv", bench_csv(rows));
#pragma once

#include "engine/suite/bench.h"

namespace cutegen::engine {

struct BenchClass {
  std::string workload;
  int64_t tasks = 0, correct = 0;
  std::optional<double> floor_ratio;  // geometric mean of time / floor (the least possible time)
                                      // over correct programs
};

std::vector<BenchClass> bench_classes(const std::vector<BenchRow>& rows);
std::string bench_header();
std::string bench_line(const BenchRow& row);
// Returns a header, one line per task, one line per class, and the number of tasks of each status.
std::string bench_table(const std::vector<BenchRow>& rows);
std::string bench_csv(const std::vector<BenchRow>& rows);
Json bench_json(const BenchSettings& settings, const BenchReport& report);
// Returns the settings that must be the same when `bench` continues.
Json bench_settings_json(const BenchSettings& settings);
Result<std::vector<BenchRow>> bench_rows_from(const Json& document);

}  // namespace cutegen::engine
