// SPDX-License-Identifier: Apache-2.0
#include "agent/anchor.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "agent/source_map.h"
#include "base/text.h"

namespace cutegen::agent {
namespace {

constexpr size_t kMostPlaces = 8;            // places that a message lists
constexpr size_t kMostSearchedLines = 4000;  // lines that the search for a similar line reads

// A match must not begin or end within a word.
std::vector<size_t> exact_places(const std::string& text, const std::string& what) {
  std::vector<size_t> out;
  auto within_word = [&](size_t at) {
    return at > 0 && at < text.size() && is_word_byte(text[at - 1]) && is_word_byte(text[at]);
  };
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    if (!within_word(at) && !within_word(at + what.size())) out.push_back(at);
  return out;
}

struct AnchorLine {
  size_t begin, end;  // without the line break
  std::string_view trimmed;
};

std::vector<AnchorLine> file_lines(std::string_view text) {
  std::vector<AnchorLine> out;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    out.push_back({.begin = at, .end = end, .trimmed = trim(text.substr(at, end - at))});
    at = end + 1;
  }
  return out;
}

// Returns the lines of an anchor without the blank lines at both ends.
std::vector<AnchorLine> anchor_lines(std::string_view anchor) {
  std::vector<AnchorLine> lines = file_lines(anchor);
  while (!lines.empty() && lines.back().trimmed.empty()) lines.pop_back();
  while (!lines.empty() && lines.front().trimmed.empty()) lines.erase(lines.begin());
  return lines;
}

std::vector<size_t> line_places(const std::vector<AnchorLine>& file,
                                const std::vector<AnchorLine>& anchor) {
  std::vector<size_t> out;
  if (anchor.empty()) return out;
  for (size_t i = 0; i + anchor.size() <= file.size(); ++i) {
    bool same =
        std::equal(anchor.begin(), anchor.end(), file.begin() + long(i),
                   [](const AnchorLine& a, const AnchorLine& b) { return a.trimmed == b.trimmed; });
    if (same) out.push_back(i);
  }
  return out;
}

std::set<std::string> words_of(std::string_view line) {
  std::set<std::string> out;
  for (size_t at = 0; at < line.size();) {
    size_t end = at;
    while (end < line.size() && is_word_byte(line[end])) ++end;
    if (end > at) out.emplace(line.substr(at, end - at));
    at = std::max(end, at + 1);
  }
  return out;
}

double likeness(const std::set<std::string>& a, const std::set<std::string>& b) {
  if (a.empty() || b.empty()) return 0;
  size_t common = 0;
  for (const std::string& w : a) common += b.count(w);
  return 2.0 * double(common) / double(a.size() + b.size());
}

// Takes the anchor's line with the most words and finds the line of the file most similar to it.
std::optional<int> similar_line(const std::vector<AnchorLine>& file,
                                const std::vector<AnchorLine>& anchor) {
  std::set<std::string> wanted;
  for (const AnchorLine& line : anchor) {
    auto words = words_of(line.trimmed);
    if (words.size() > wanted.size()) wanted = std::move(words);
  }
  double best = 0.45;
  std::optional<int> found;
  for (size_t i = 0; i < std::min(file.size(), kMostSearchedLines); ++i) {
    double like = likeness(wanted, words_of(file[i].trimmed));
    if (like <= best) continue;
    best = like;
    found = int(i) + 1;
  }
  return found;
}

Reask missing(const std::string& text, const SearchReplace& edit,
              const std::vector<AnchorLine>& file, const std::vector<AnchorLine>& anchor) {
  std::string out =
      fmt::format("Edit {}: its SEARCH text is not in {}. It begins with\n    {}\n", edit.number,
                  edit.file, sanitize(anchor.empty() ? "" : anchor.front().trimmed, 160));
  auto near = similar_line(file, anchor);
  if (near)
    out += fmt::format("The most similar lines of {} are\n{}", edit.file,
                       numbered_lines(text, *near - 2, *near + 2));
  out += "Copy the SEARCH text from the current file, or send the whole function.";
  return {.reason = "anchor_missing", .text = out};
}

Reask repeated(const SearchReplace& edit, const std::vector<int>& lines) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(lines.size(), kMostPlaces); ++i)
    shown.push_back(std::to_string(lines[i]));
  if (lines.size() > kMostPlaces) shown.emplace_back("...");
  return {.reason = "anchor_repeated",
          .text = fmt::format(
              "Edit {}: its SEARCH text occurs in {} {} times (lines {}). Add neighbouring "
              "lines to SEARCH and REPLACE, so that it matches once.",
              edit.number, edit.file, lines.size(), join(shown, ", "))};
}

}  // namespace

std::string numbered_lines(const std::string& text, int first, int last) {
  auto lines = split(text, '\n');
  std::string out;
  for (int n = std::max(first, 1); n <= last && n <= int(lines.size()); ++n)
    out += fmt::format("{:>5} | {}\n", n, sanitize(lines[size_t(n) - 1], 200));
  return out;
}

tl::expected<Place, Reask> find_anchor(const std::string& text, const SearchReplace& edit) {
  if (trim(edit.search).empty())
    return tl::unexpected(
        Reask{.reason = "anchor_empty",
              .text = fmt::format("Edit {}: its SEARCH text is empty. Repeat the lines "
                                  "that the edit replaces, or send {} as a whole file.",
                                  edit.number, edit.file)});
  if (auto places = exact_places(text, edit.search); places.size() == 1)
    return Place{.begin = places[0], .size = edit.search.size(), .whole_lines = false};
  else if (places.size() > 1) {
    std::vector<int> lines;
    lines.reserve(places.size());
    for (size_t at : places) lines.push_back(line_at(text, at));
    return tl::unexpected(repeated(edit, lines));
  }
  auto file = file_lines(text);
  auto anchor = anchor_lines(edit.search);
  auto found = line_places(file, anchor);
  if (found.empty()) return tl::unexpected(missing(text, edit, file, anchor));
  if (found.size() > 1) {
    std::vector<int> lines;
    lines.reserve(found.size());
    for (size_t i : found) lines.push_back(int(i) + 1);
    return tl::unexpected(repeated(edit, lines));
  }
  size_t begin = file[found[0]].begin, end = file[found[0] + anchor.size() - 1].end;
  return Place{.begin = begin, .size = end - begin, .whole_lines = true};
}

}  // namespace cutegen::agent
