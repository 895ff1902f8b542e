// SPDX-License-Identifier: Apache-2.0
#include "agent/line_diff.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"

namespace cutegen::agent {
namespace {

constexpr size_t kMaxCells = size_t{4} << 20;  // entries of the table of common subsequences

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

using DiffLines = std::vector<std::string>;

// Compares the middle parts, where the texts differ, by their longest common subsequence. If the
// table would be too large, all lines of `a` are removed and all lines of `b` added.
void diff_middle(const DiffLines& a, const DiffLines& b, std::vector<DiffLine>& out) {
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
      out.push_back({.mark = ' ', .text = a[i]}), ++i, ++j;
    else if (at(i + 1, j) >= at(i, j + 1))
      out.push_back({.mark = '-', .text = a[i++]});
    else
      out.push_back({.mark = '+', .text = b[j++]});
  }
  while (i < n) out.push_back({.mark = '-', .text = a[i++]});
  while (j < m) out.push_back({.mark = '+', .text = b[j++]});
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
      out.push_back({.mark = '@', .text = "..."});
  }
  if (out.size() == 1 && out.front().mark == '@') out.clear();
  return out;
}

// Marks each line of both texts as common, removed or added.
std::vector<DiffLine> all_lines(const std::string& before, const std::string& after) {
  DiffLines a = lines_of(before), b = lines_of(after);
  std::vector<DiffLine> all;
  size_t head = 0, tail = 0;
  while (head < std::min(a.size(), b.size()) && a[head] == b[head])
    all.push_back({.mark = ' ', .text = a[head++]});
  while (tail < std::min(a.size(), b.size()) - head &&
         a[a.size() - 1 - tail] == b[b.size() - 1 - tail])
    ++tail;
  auto part = [&](const DiffLines& lines) {
    return DiffLines(lines.begin() + long(head), lines.end() - long(tail));
  };
  diff_middle(part(a), part(b), all);
  for (size_t i = a.size() - tail; i < a.size(); ++i) all.push_back({.mark = ' ', .text = a[i]});
  return all;
}

}  // namespace

std::vector<DiffLine> line_diff(const std::string& before, const std::string& after,
                                size_t context) {
  if (before == after) return {};
  return near_changes(all_lines(before, after), context);
}

std::vector<Hunk> hunks_of(const std::string& before, const std::string& after) {
  std::vector<Hunk> out;
  size_t a = 0, b = 0;
  bool open = false;
  for (const DiffLine& line : all_lines(before, after)) {
    if (line.mark != ' ' && !open)
      out.push_back({.before = a, .before_end = a, .after = b, .after_end = b});
    open = line.mark != ' ';
    a += line.mark != '+';
    b += line.mark != '-';
    if (open) out.back().before_end = a, out.back().after_end = b;
  }
  return out;
}

}  // namespace cutegen::agent
