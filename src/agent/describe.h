// SPDX-License-Identifier: Apache-2.0
// The parts of a prompt as text: device, tensors, graph, program, verdict, history.
//
// Contract: text from tasks and tools is sanitised and capped. `detail` chooses between shorter and
// fuller text (higher says more). No value of a live input set appears.
//
// Example: std::string text = describe_verdict(verdict, floor_ns, true, 2);
#pragma once

#include "agent/brief.h"

namespace cutegen::agent {

std::string describe_device(const GpuSpec& gpu, const DeviceName& device, const Task& task);
// The math mode and what it permits.
std::string describe_mode(const Task& task);
std::string describe_tensors(const Task& task);
// detail 2: all nodes. 1: the first and last of them. 0: operators with their counts.
std::string describe_graph(const Graph& graph, int detail);
std::string describe_floor(const TaskBrief& brief);
std::string describe_program(const KernelProgram& program);
// Times have four digits. Without `profile`, each kernel has one line: its time and its bounds.
// detail 2: with hot lines and remarks. 1: with remarks. 0: the headline.
std::string describe_verdict(const Verdict& verdict, double floor_ns, bool profile, int detail);
// For each kernel: its bound, remarks, hot lines and advice, without raw counters. Only for
// verdicts with a profile.
std::string describe_profile(const Verdict& verdict);
struct HistoryText {
  // Groups of attempts whose text stays the same when the history grows.
  std::vector<std::string> settled;
  std::string recent;  // the attempts after the last group
};
// Describes the newest attempts, at most `most`, and the best one among the older attempts.
HistoryText describe_history(const std::vector<Attempt>& history, size_t most);
// At most `lines` lines of the reference. Omits the middle of a longer one.
std::string describe_source(const std::string& source, size_t lines);

}  // namespace cutegen::agent
