// SPDX-License-Identifier: Apache-2.0
// Writes the parts of a prompt as text: device, tensors, graph, program, verdict and history.
//
// Contract: the functions sanitise text from tasks and tools, and limit its length. A higher
// `detail` gives a longer text. The text never contains values of the evaluator's secret inputs.
//
// Example: std::string text = describe_verdict(verdict, floor_ns, true, 2);
#pragma once

#include "agent/brief.h"

namespace cutegen::agent {

std::string describe_device(const GpuSpec& gpu, const DeviceName& device, const Task& task);
// Describes the math mode and the precision that it permits.
std::string describe_mode(const Task& task);
std::string describe_tensors(const Task& task);
// Detail 2 lists all nodes, detail 1 the first and the last nodes, and detail 0 only the operators
// and how often each occurs.
std::string describe_graph(const Graph& graph, int detail);
std::string describe_floor(const TaskBrief& brief);
std::string describe_program(const KernelProgram& program);
// Says which share of the statements uses CuTe. Returns an empty text if the program's dialect is
// plain CUDA.
std::string describe_cute(const KernelProgram& program);
// Writes times with four digits. If `profile` is false, writes one line for each kernel, with its
// time and its bounds. Otherwise, detail 1 lists each kernel's remarks, and detail 2 also its most
// expensive source lines.
std::string describe_verdict(const Verdict& verdict, double floor_ns, bool profile, int detail);
// Describes each kernel by its bound, remarks, most expensive source lines and advice, without raw
// counters. The verdict must have a profile.
std::string describe_profile(const Verdict& verdict);
struct HistoryText {
  // describe_history() puts the attempts into groups of equal size. `settled` has one text for each
  // full group. Because later attempts do not change these texts, providers can cache them.
  std::vector<std::string> settled;
  std::string recent;  // text of the attempts after the last full group
};
// Describes at most `most` of the newest attempts, and the best of the older attempts.
HistoryText describe_history(const std::vector<Attempt>& history, size_t most);
// Returns at most `lines` lines of the reference's source, and omits lines in the middle.
std::string describe_source(const std::string& source, size_t lines);

}  // namespace cutegen::agent
