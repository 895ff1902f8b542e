// SPDX-License-Identifier: Apache-2.0
#include "engine/program_diff.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"

namespace cutegen {
namespace {

constexpr size_t kMaxCells = size_t{4} << 20;  // of the table of common subsequences

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

using Lines = std::vector<std::string>;

// The middle part, where the texts differ, by the longest common subsequence.
void diff_middle(const Lines& a, const Lines& b, std::vector<DiffLine>& out) {
  size_t n = a.size(), m = b.size();
  bool fits = (n + 1) * (m + 1) <= kMaxCells;
  std::vector<uint32_t> common(fits ? (n + 1) * (m + 1) : 0);
  auto at = [&](size_t i, size_t j) -> uint32_t& { return common[i * (m + 1) + j]; };
  for (size_t i = n; fits && i-- > 0;)
    for (size_t j = m; j-- > 0;)
      at(i, j) = a[i] == b[j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
  size_t i = 0, j = 0;
  while (fits && i < n && j < m) {
    if (a[i] == b[j])
      out.push_back({' ', a[i]}), ++i, ++j;
    else if (at(i + 1, j) >= at(i, j + 1))
      out.push_back({'-', a[i++]});
    else
      out.push_back({'+', b[j++]});
  }
  while (i < n) out.push_back({'-', a[i++]});
  while (j < m) out.push_back({'+', b[j++]});
}

// Keeps the changes and the lines near them.
std::vector<DiffLine> near_changes(const std::vector<DiffLine>& all, size_t context) {
  std::vector<bool> keep(all.size(), false);
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].mark == ' ') continue;
    size_t from = i >= context ? i - context : 0;
    for (size_t k = from; k < std::min(all.size(), i + context + 1); ++k) keep[k] = true;
  }
  std::vector<DiffLine> out;
  for (size_t i = 0; i < all.size(); ++i) {
    if (keep[i])
      out.push_back(all[i]);
    else if (out.empty() || out.back().mark != '@')
      out.push_back({'@', "..."});
  }
  if (out.size() == 1 && out.front().mark == '@') out.clear();
  return out;
}

std::string plan_text(const KernelProgram& program) {
  if (program.plan.steps.empty()) return {};  // no program at all
  return dump_json(to_json(program.plan), 2) + "\n";
}

}  // namespace

std::vector<DiffLine> line_diff(const std::string& before, const std::string& after,
                                size_t context) {
  if (before == after) return {};
  Lines a = lines_of(before), b = lines_of(after);
  std::vector<DiffLine> all;
  size_t head = 0, tail = 0;
  while (head < std::min(a.size(), b.size()) && a[head] == b[head]) all.push_back({' ', a[head++]});
  while (tail < std::min(a.size(), b.size()) - head &&
         a[a.size() - 1 - tail] == b[b.size() - 1 - tail])
    ++tail;
  auto part = [&](const Lines& lines) {
    return Lines(lines.begin() + static_cast<long>(head), lines.end() - static_cast<long>(tail));
  };
  diff_middle(part(a), part(b), all);
  for (size_t i = a.size() - tail; i < a.size(); ++i) all.push_back({' ', a[i]});
  return near_changes(all, context);
}

std::vector<FileDiff> program_diffs(const KernelProgram& before, const KernelProgram& after) {
  std::map<std::string, std::pair<std::string, std::string>> files;
  for (const auto& [name, text] : before.sources) files[name].first = text;
  for (const auto& [name, text] : after.sources) files[name].second = text;
  std::vector<FileDiff> out;
  if (auto lines = line_diff(plan_text(before), plan_text(after)); !lines.empty())
    out.push_back({"plan.json", std::move(lines)});
  for (const auto& [name, texts] : files)
    if (auto lines = line_diff(texts.first, texts.second); !lines.empty())
      out.push_back({name, std::move(lines)});
  return out;
}

std::string program_diff(const KernelProgram& before, const KernelProgram& after) {
  std::string out;
  for (const FileDiff& file : program_diffs(before, after)) {
    out += "--- " + file.name + "\n+++ " + file.name + "\n";
    for (const DiffLine& line : file.lines)
      out += (line.mark == '@' ? std::string("@@ ") : std::string(1, line.mark)) + line.text + "\n";
  }
  return out;
}

std::string program_text(const KernelProgram& program) {
  std::string out = "==> plan.json <==\n" + plan_text(program);
  for (const auto& [name, text] : program.sources) {
    out += "\n==> " + name + " <==\n" + text;
    if (!out.ends_with('\n')) out += '\n';
  }
  return out;
}

}  // namespace cutegen
