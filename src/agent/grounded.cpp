// SPDX-License-Identifier: Apache-2.0
#include "agent/grounded.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace cutegen::agent {
namespace {

constexpr size_t kMostSpans = 20;
constexpr size_t kShown = 120;  // bytes of a line in a message
constexpr const char* kPlan = "plan.json";

tl::unexpected<Reask> refuse(const std::string& reason, const std::string& text) {
  return tl::unexpected(Reask{.reason = reason, .text = text});
}

struct LineRange {
  size_t begin, end;  // without the line break
};

std::vector<LineRange> line_ranges(std::string_view text) {
  std::vector<LineRange> out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out.push_back({.begin = at, .end = end});
    at = end + 1;
  }
  return out;
}

// The text after `word` if the line begins with it, ignoring Markdown marks.
std::optional<std::string> after(std::string_view line, std::string_view word) {
  std::string_view text = trim(line);
  while (!text.empty() && (text.front() == '*' || text.front() == '#')) text.remove_prefix(1);
  text = trim(text);
  if (!text.starts_with(word)) return std::nullopt;
  std::string_view rest = trim(text.substr(word.size()));
  if (rest.size() >= 2 && rest.front() == '`' && rest.back() == '`')
    rest = rest.substr(1, rest.size() - 2);
  return std::string(trim(rest));
}

// The index of the only line from `from` on that has this text.
tl::expected<size_t, Reask> find_line(const std::string& source,
                                      const std::vector<LineRange>& lines, size_t from,
                                      const std::string& wanted, const std::string& where) {
  std::vector<std::string> found;
  size_t only = 0;
  for (size_t i = from; i < lines.size(); ++i) {
    const LineRange& line = lines[i];
    if (trim(std::string_view(source).substr(line.begin, line.end - line.begin)) != wanted)
      continue;
    found.push_back(std::to_string(i + 1));
    only = i;
  }
  if (found.size() == 1) return only;
  const std::string shown = sanitize(wanted, kShown);
  if (found.empty())
    return refuse(
        "anchor_missing",
        fmt::format("{}: no line of the program{} reads `{}`. Copy one whole line of the "
                    "program as it stands.",
                    where, from > 0 ? fmt::format(" from line {} on", from + 1) : "", shown));
  found.resize(std::min<size_t>(found.size(), 8));
  return refuse("anchor_ambiguous",
                fmt::format("{}: the lines {} all read `{}`. Choose a line that occurs once; a "
                            "longer span is fine.",
                            where, join(found, ", "), shown));
}

struct Marked {
  std::string file;
  std::optional<std::string> begin, end;
  int line = 0;  // of SPAN in the advice
};

tl::expected<std::vector<Marked>, Reask> read_marks(const std::string& advice) {
  std::vector<Marked> out;
  int number = 0;
  for (const std::string& line : split(advice, '\n')) {
    ++number;
    if (auto file = after(line, "SPAN ")) {
      if (out.size() == kMostSpans)
        return refuse("too_many_spans", fmt::format("Line {}: there are more than {} spans. Name "
                                                    "one targeted change.",
                                                    number, kMostSpans));
      out.push_back({.file = *file, .begin = {}, .end = {}, .line = number});
      continue;
    }
    const bool begins = after(line, "BEGIN:").has_value();
    const auto text = begins ? after(line, "BEGIN:") : after(line, "END:");
    if (!text) continue;
    if (out.empty())
      return refuse("anchor_alone",
                    fmt::format("Line {}: an anchor stands before any SPAN. Write SPAN and the "
                                "file's name on the line before.",
                                number));
    auto& anchor = begins ? out.back().begin : out.back().end;
    if (anchor)
      return refuse("anchor_twice", fmt::format("Line {}: the span of line {} has two {} anchors. "
                                                "Write a new SPAN line for another span.",
                                                number, out.back().line, begins ? "BEGIN" : "END"));
    anchor = text;
  }
  return out;
}

tl::expected<Span, Reask> resolve(const Marked& mark, const KernelProgram& parent) {
  const std::string where = fmt::format("Line {}, span in {}", mark.line, sanitize(mark.file, 80));
  auto source = parent.sources.find(mark.file);
  if (source == parent.sources.end()) {
    std::vector<std::string> known{kPlan};
    for (const auto& [name, text] : parent.sources) known.push_back(name);
    return refuse("span_file", fmt::format("{}: the program has no such file. Its files: {}.",
                                           where, join(known, ", ")));
  }
  if (!mark.begin || !mark.end || mark.begin->empty() || mark.end->empty())
    return refuse("anchor_missing",
                  fmt::format("{}: the {} anchor is missing. Give both: `BEGIN: first line` and "
                              "`END: last line`.",
                              where, !mark.begin || mark.begin->empty() ? "BEGIN" : "END"));
  const std::vector<LineRange> lines = line_ranges(source->second);
  auto first = find_line(source->second, lines, 0, *mark.begin, where + ", BEGIN");
  if (!first) return tl::unexpected(first.error());
  auto last = find_line(source->second, lines, *first, *mark.end, where + ", END");
  if (!last) return tl::unexpected(last.error());
  return Span{.file = mark.file,
              .begin = lines[*first].begin,
              .end = lines[*last].end,
              .first_line = int(*first) + 1,
              .last_line = int(*last) + 1};
}

tl::expected<void, Reask> check_apart(const std::vector<Span>& sorted) {
  for (size_t i = 1; i < sorted.size(); ++i) {
    const Span &a = sorted[i - 1], &b = sorted[i];
    if (a.file != b.file || b.begin > a.end) continue;
    return refuse(
        b.end <= a.end ? "spans_nested" : "spans_overlap",
        fmt::format("In {}, the span of lines {}-{} {} the span of lines {}-{}. Write one "
                    "span for both, or move an anchor.",
                    a.file, b.first_line, b.last_line, b.end <= a.end ? "lies within" : "overlaps",
                    a.first_line, a.last_line));
  }
  return {};
}

int line_at(const std::string& text, size_t at) {
  return 1 + int(std::count(text.begin(), text.begin() + long(at), '\n'));
}

tl::unexpected<Reask> changed_outside(const std::string& file, const std::string& before, int line,
                                      const std::vector<Span>& spans) {
  const LineRange place = line_ranges(before)[size_t(line) - 1];
  std::vector<std::string> open;
  for (const Span& s : spans)
    if (s.file == file) open.push_back(fmt::format("{}-{}", s.first_line, s.last_line));
  return refuse(
      "outside_span",
      fmt::format("{} is changed outside the spans of the plan, at line {} of the "
                  "program: `{}`. Keep it byte for byte; change only lines {}.",
                  file, line, sanitize(before.substr(place.begin, place.end - place.begin), kShown),
                  open.empty() ? "in other files" : join(open, ", ")));
}

// The parts outside the spans must occur in order: the first at the start, the last at the end.
// Taking the leftmost place for each part leaves the most room for the next.
tl::expected<void, Reask> check_file(const std::string& file, const std::string& before,
                                     const std::string& now, const std::vector<Span>& spans) {
  std::vector<std::pair<size_t, size_t>> kept;  // from, to
  size_t from = 0;
  for (const Span& s : spans)
    if (s.file == file) kept.emplace_back(from, s.begin), from = s.end;
  const size_t head = kept.empty() ? before.size() : kept.front().second;
  const auto differs =
      std::mismatch(before.begin(), before.begin() + long(head), now.begin(), now.end());
  const auto same = size_t(differs.first - before.begin());
  if (same < head || (kept.empty() && now.size() != before.size()))
    return changed_outside(file, before, line_at(before, same), spans);
  if (kept.empty()) return {};
  const std::string_view tail = std::string_view(before).substr(from);
  if (now.size() < head + tail.size() || !now.ends_with(tail)) {
    size_t back = 0;
    while (back < tail.size() && back < now.size() &&
           tail[tail.size() - 1 - back] == now[now.size() - 1 - back])
      ++back;
    const size_t at = before.size() - std::min(back + 1, tail.size());
    return changed_outside(file, before, line_at(before, at), spans);
  }
  const std::string_view room = std::string_view(now).substr(0, now.size() - tail.size());
  size_t at = head;
  for (size_t i = 1; i < kept.size(); ++i) {
    const auto [begin, end] = kept[i];
    const size_t found = room.find(std::string_view(before).substr(begin, end - begin), at);
    if (found == std::string_view::npos)
      return changed_outside(file, before, line_at(before, std::min(begin + 1, end)), spans);
    at = found + (end - begin);
  }
  return {};
}

}  // namespace

tl::expected<Spans, Reask> parse_spans(const std::string& advice, const KernelProgram& parent) {
  auto marks = read_marks(advice);
  if (!marks) return tl::unexpected(marks.error());
  if (marks->empty())
    return refuse(
        "no_span",
        "The plan names no span. Name what the coder may change: a line `SPAN kernel.cu`, "
        "then `BEGIN: ` and `END: ` with a line of the program each.");
  Spans out;
  for (const Marked& mark : *marks) {
    if (mark.file == kPlan) {
      out.plan = true;
      continue;
    }
    auto span = resolve(mark, parent);
    if (!span) return tl::unexpected(span.error());
    out.sources.push_back(std::move(*span));
  }
  std::ranges::sort(out.sources, [](const Span& a, const Span& b) {
    return std::tie(a.file, a.begin, b.end) < std::tie(b.file, b.begin, a.end);
  });
  if (auto apart = check_apart(out.sources); !apart) return tl::unexpected(apart.error());
  return out;
}

tl::expected<void, Reask> check_outside(const Spans& spans, const KernelProgram& parent,
                                        const KernelProgram& changed) {
  for (const auto& [file, text] : changed.sources)
    if (!parent.sources.contains(file))
      return refuse("outside_span", fmt::format("{} is new, and no span allows that. Write the "
                                                "change within the spans of the plan.",
                                                sanitize(file, 80)));
  for (const auto& [file, before] : parent.sources) {
    auto now = changed.sources.find(file);
    if (now == changed.sources.end())
      return refuse("outside_span", fmt::format("{} is gone. Keep the file.", file));
    if (auto ok = check_file(file, before, now->second, spans.sources); !ok) return ok;
  }
  if (!spans.plan && to_json(changed.plan) != to_json(parent.plan))
    return refuse("outside_span",
                  "plan.json is changed, but the plan of the change has no `SPAN plan.json`. Keep "
                  "plan.json as it is.");
  return {};
}

}  // namespace cutegen::agent
