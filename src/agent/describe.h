// SPDX-License-Identifier: Apache-2.0
// Writes the parts of a prompt as text: device, tensors, graph, program, verdict and history.
//
// Contract: text from tasks and tools is sanitised, and its length is limited. A higher `detail`
// gives a longer text. The text never contains values of the evaluator's secret inputs.
//
// Example: std::string text = describe_verdict(verdict, floor_ns, true, 2);
#pragma once

#include "agent/brief.h"

namespace cutegen::agent {

std::string describe_device(const GpuSpec& gpu, const DeviceName& device, const Task& task);
// Describes the math mode and the precision that it permits.
std::string describe_mode(const Task& task);
std::string describe_tensors(const Task& task);
// With detail 2, lists all nodes; with 1, the first and the last nodes; with 0, only the operators
// and how often each occurs.
std::string describe_graph(const Graph& graph, int detail);
std::string describe_floor(const TaskBrief& brief);
std::string describe_program(const KernelProgram& program);
// Times have four digits. Without `profile`, each kernel has one line with its time and its bounds.
// Detail 2 adds remarks and the most expensive source lines; 1 adds only remarks; with 0, the text
// is the headline.
std::string describe_verdict(const Verdict& verdict, double floor_ns, bool profile, int detail);
// Describes each kernel by its bound, remarks, most expensive source lines and advice, without raw
// counters. The verdict must have a profile.
std::string describe_profile(const Verdict& verdict);
struct HistoryText {
  // Text of groups of attempts. It does not change when the history grows.
  std::vector<std::string> settled;
  std::string recent;  // text of the attempts after the last group
};
// Describes the `most` newest attempts and the best of the older attempts.
HistoryText describe_history(const std::vector<Attempt>& history, size_t most);
// At most `lines` lines of the reference's source. Omits lines in the middle of a longer source.
std::string describe_source(const std::string& source, size_t lines);

}  // namespace cutegen::agent
