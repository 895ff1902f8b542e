// SPDX-License-Identifier: Apache-2.0
// What ncu (Nsight Compute) prints: its table of metrics by kernel (`--csv --page raw`), and
// errors.
//
// Contract: the text is hostile: any text is read in bounded time and memory, and nothing that is
// not understood becomes a figure. Units are brought to their bases: byte, byte/s, ns, hz, "%".
// A value that is no finite number ("n/a") is left out. A row of another length than the header
// ends the table with a problem; rows before it stay.
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
  std::vector<NcuKernel> kernels;   // one a launch, in their order
  std::vector<std::string> errors;  // lines "==ERROR== ...", without the mark
  std::string problem;              // what is wrong with the table, or an empty text
};
[[nodiscard]] NcuReport read_ncu_report(std::string_view text);

// A number as ncu writes it ("1,234.5"); false if it is none.
[[nodiscard]] bool read_ncu_number(std::string_view text, double& out);
// The scale that brings a unit to its base, and the base.
[[nodiscard]] double ncu_unit_scale(std::string& unit);
// "Version 2025.3.1.0 (build 36398880)" gives "2025.3.1.0"; empty: there is none.
[[nodiscard]] std::string read_ncu_version(std::string_view text);

// Why ncu counted nothing, and what helps.
struct NcuRefusal {
  enum class Kind { none, permission, no_kernel, metric, other } kind = Kind::none;
  std::string problem, remedy;
  std::vector<std::string> metrics;  // of kind metric: those of `asked` that it does not know
};
[[nodiscard]] NcuRefusal read_ncu_refusal(std::string_view text, const NcuReport& report,
                                          const std::vector<std::string>& asked);

}  // namespace cutegen::toolchain
