// SPDX-License-Identifier: Apache-2.0
// Reads the output of ncu (Nsight Compute): its table of metrics by kernel (`--csv`, page raw or
// details) and its errors.
//
// Contract: the text is hostile. Time and memory are bounded for any text, and the reader gives no
// figure for text that it does not understand. It converts units to byte, byte/s, ns, hz or "%",
// and skips a value that is not a finite number ("n/a"). A row whose length differs from the
// header's ends the table with a `problem`; the rows before it stay.
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
  std::vector<NcuKernel> kernels;   // one entry per launch, in order
  std::vector<std::string> errors;  // lines "==ERROR== ...", without the mark
  std::string problem;              // why the table ended early; empty if it did not
};
NcuReport read_ncu_report(std::string_view text);

// Reads a number in ncu's form ("1,234.5"). Returns false if it is not one.
bool read_ncu_number(std::string_view text, double& out);
// Replaces a unit by its base unit and returns the scale.
double ncu_unit_scale(std::string& unit);
// "Version 2025.3.1.0 (build 36398880)" gives "2025.3.1.0"; empty if there is no version.
std::string read_ncu_version(std::string_view text);

// Why ncu counted nothing, and the remedy.
struct NcuRefusal {
  enum class Kind { none, permission, no_kernel, metric, other } kind = Kind::none;
  std::string problem, remedy;
  // For Kind::metric: the metrics of `asked` that ncu does not know.
  std::vector<std::string> metrics;
};
NcuRefusal read_ncu_refusal(std::string_view text, const NcuReport& report,
                            const std::vector<std::string>& asked);

}  // namespace cutegen::toolchain
