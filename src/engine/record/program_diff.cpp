// SPDX-License-Identifier: Apache-2.0
#include "engine/record/program_diff.h"

namespace cutegen::engine {
namespace {

std::string plan_text(const KernelProgram& program) {
  if (program.plan.steps.empty()) return {};  // there is no program
  return dump_json(to_json(program.plan), 2) + "\n";
}

}  // namespace

std::vector<FileDiff> program_diffs(const KernelProgram& before, const KernelProgram& after) {
  std::map<std::string, std::pair<std::string, std::string>> files;
  for (const auto& [name, text] : before.sources) files[name].first = text;
  for (const auto& [name, text] : after.sources) files[name].second = text;
  std::vector<FileDiff> out;
  if (auto lines = agent::line_diff(plan_text(before), plan_text(after)); !lines.empty())
    out.push_back({.name = "plan.json", .lines = std::move(lines)});
  for (const auto& [name, texts] : files)
    if (auto lines = agent::line_diff(texts.first, texts.second); !lines.empty())
      out.push_back({.name = name, .lines = std::move(lines)});
  return out;
}

std::string program_diff(const KernelProgram& before, const KernelProgram& after) {
  std::string out;
  for (const FileDiff& file : program_diffs(before, after)) {
    out += "--- " + file.name + "\n+++ " + file.name + "\n";
    for (const agent::DiffLine& line : file.lines)
      out += (line.mark == '@' ? std::string("@@ ") : std::string(1, line.mark)) + line.text + "\n";
  }
  return out;
}

std::string program_text(const KernelProgram& program) {
  std::string out = "==> plan.json <==\n" + plan_text(program);
  for (const auto& [name, text] : program.sources) {
    out.append("\n==> ").append(name).append(" <==\n").append(text);
    if (!out.ends_with('\n')) out += '\n';
  }
  return out;
}

}  // namespace cutegen::engine
