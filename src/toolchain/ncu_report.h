// SPDX-License-Identifier: Apache-2.0
// Reads the output of ncu (Nsight Compute): the metrics of each kernel (from `--csv`, page raw or
// details) and error messages.
//
// Contract: ncu's output may be hostile. The functions take bounded time and memory for any text,
// and never return a figure for text that they do not understand. They convert units to byte,
// byte/s, ns, hz or "%", and skip a value that is not a finite number ("n/a"). At a row that is
// longer or shorter than the header, they stop; `problem` says why, and the rows above it remain in
// the report.
//
// Example: NcuReport r = read_ncu_report(text); r.kernels[0].metrics.at("gpu__time_duration.sum");
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cutegen::toolchain {

struct NcuValue {
  double value = 0;
  std::string unit;
};
struct NcuRule {
  std::string name, text;  // "SOLBottleneck"
};
struct NcuKernel {
  std::string name;
  std::map<std::string, NcuValue> metrics;
  std::vector<NcuRule> rules;
};
struct NcuReport {
  std::vector<NcuKernel> kernels;   // one entry per launch, in launch order
  std::vector<std::string> errors;  // the texts after "==ERROR==" in the output
  std::string problem;              // why the functions stopped early; else empty
};
NcuReport read_ncu_report(std::string_view text);

// Reads a number in ncu's format ("1,234.5"). Returns false if the text is not a number.
bool read_ncu_number(std::string_view text, double& out);
// Replaces `unit` by its base unit, and returns the factor by which the caller must multiply a
// value.
double ncu_unit_scale(std::string& unit);
// Returns "2025.3.1.0" for "Version 2025.3.1.0 (build 36398880)", and "" for text without a
// version.
std::string read_ncu_version(std::string_view text);

// Why ncu reported no counters, and how the user can fix it.
struct NcuRefusal {
  enum class Kind { none, permission, no_kernel, metric, other } kind = Kind::none;
  std::string problem, remedy;
  // For Kind::metric: the metrics in `asked` that ncu does not support.
  std::vector<std::string> metrics;
};
NcuRefusal read_ncu_refusal(std::string_view text, const NcuReport& report,
                            const std::vector<std::string>& asked);

}  // namespace cutegen::toolchain
