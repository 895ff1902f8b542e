// SPDX-License-Identifier: Apache-2.0
#include "agent/changes.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/anchor.h"
#include "agent/describe.h"
#include "agent/edit.h"
#include "agent/line_diff.h"
#include "agent/plan_edit.h"
#include "agent/source_map.h"
#include "base/text.h"
#include "llm/tokens.h"

namespace cutegen::agent {
namespace {

constexpr int64_t kLeastTokens = 800;  // shorter programs are always shown whole
constexpr int64_t kMostShare = 4;      // changes may take a quarter of the program's tokens
constexpr size_t kContext = 2;         // lines around a change
constexpr size_t kWholeFunction = 16;  // longest function shown whole, in lines

using Lines = std::vector<std::string>;

std::string text_of(const Lines& lines, size_t begin, size_t end) {
  std::string out;
  for (size_t i = begin; i < end; ++i) out += lines[i] + "\n";
  return out;
}

// The lines [begin, end) of a definition, counted from 0.
struct ChangedSpan {
  std::string name;
  bool is_type = false;
  size_t begin = 0, end = 0;
  // Whether the definition contains lines [from, to). A line that is inserted before the
  // definition's first line does not belong to it.
  bool holds(size_t from, size_t to) const {
    return from >= begin && to <= end && (to > from || (from > begin && from < end));
  }
};

std::vector<ChangedSpan> spans_of(const std::string& text) {
  std::vector<ChangedSpan> out;
  for (const Definition& d : definitions_in(text))
    out.push_back({.name = d.name,
                   .is_type = d.is_type,
                   .begin = size_t(d.line) - 1,
                   .end = size_t(line_at(text, d.begin + d.size - 1))});
  return out;
}

// Describes the changes of one source file.
class SourceChanges {
 public:
  SourceChanges(std::string name, const std::string& before, const std::string& after)
      : name_(std::move(name)),
        before_(before),
        a_(split(before, '\n')),
        b_(split(after, '\n')),
        old_(spans_of(before)),
        new_(spans_of(after)) {
    for (const Hunk& hunk : hunks_of(before, after)) add(hunk);
  }

  // Returns nothing if a change has no unique anchor.
  std::optional<std::string> text() const {
    std::string out;
    for (size_t i = 0; i < parts_.size(); ++i) {
      auto text = parts_[i].function ? function_text(parts_[i].lines) : edit_text(i);
      if (!text) return std::nullopt;
      out += *text;
    }
    return out;
  }

 private:
  struct Part {
    Hunk lines;
    bool function = false;
  };

  void add(const Hunk& h) {
    if (auto whole = short_function(h)) {
      if (parts_.empty() || parts_.back().lines.before != whole->before)
        parts_.push_back({.lines = *whole, .function = true});
      return;
    }
    bool near = !parts_.empty() && !parts_.back().function &&
                h.before <= parts_.back().lines.before_end + 2 * kContext;
    if (!near) return parts_.push_back({.lines = h, .function = false});
    parts_.back().lines.before_end = h.before_end;
    parts_.back().lines.after_end = h.after_end;
  }

  // Finds the one short function that contains the change. Returns its lines in both texts.
  std::optional<Hunk> short_function(const Hunk& h) const {
    for (const ChangedSpan& old : old_) {
      if (!old.holds(h.before, h.before_end)) continue;
      auto same = [&](const ChangedSpan& s) {
        return s.name == old.name && s.is_type == old.is_type;
      };
      auto now = std::find_if(new_.begin(), new_.end(), same);
      bool one = now != new_.end() && std::count_if(new_.begin(), new_.end(), same) == 1 &&
                 std::count_if(old_.begin(), old_.end(), same) == 1;
      if (one && now->holds(h.after, h.after_end) && now->end - now->begin <= kWholeFunction)
        return Hunk{
            .before = old.begin, .before_end = old.end, .after = now->begin, .after_end = now->end};
    }
    return std::nullopt;
  }

  std::string head(size_t begin, size_t end) const {
    if (begin >= end)
      return fmt::format("{}, before line {}, fewer lines now:\n", name_, begin + 1);
    return begin + 1 == end ? fmt::format("{}, line {} now:\n", name_, end)
                            : fmt::format("{}, lines {} to {} now:\n", name_, begin + 1, end);
  }

  std::optional<std::string> function_text(const Hunk& h) const {
    return head(h.after, h.after_end) +
           fmt::format("```function {}\n{}```\n", name_, text_of(b_, h.after, h.after_end));
  }

  // Adds lines around the change until the anchor is unique.
  std::optional<std::string> edit_text(size_t index) const {
    const Hunk& h = parts_[index].lines;
    const size_t first = index ? parts_[index - 1].lines.before_end : 0;
    const size_t last = index + 1 < parts_.size() ? parts_[index + 1].lines.before : a_.size() - 1;
    size_t up = 0, down = 0;
    for (;;) {
      bool top = h.before - up == first, bottom = h.before_end + down == last;
      bool wide = (up >= kContext || top) && (down >= kContext || bottom);
      if (wide && is_anchor(h.before - up, h.before_end + down)) break;
      if (top && bottom) return std::nullopt;
      (bottom || (!top && up <= down)) ? ++up : ++down;
    }
    return head(h.after, h.after_end) +
           fmt::format("```edit {}\n<<<<<<< SEARCH\n{}=======\n{}>>>>>>> REPLACE\n```\n", name_,
                       text_of(a_, h.before - up, h.before_end + down),
                       text_of(b_, h.after - up, h.after_end + down));
  }

  bool is_anchor(size_t begin, size_t end) const {
    if (begin == end || trim(a_[begin]).empty() || trim(a_[end - 1]).empty()) return false;
    std::string search = text_of(a_, begin, end);
    search.pop_back();
    return find_anchor(before_, {.file = name_, .search = search, .replace = {}}).has_value();
  }

  std::string name_;
  const std::string& before_;
  Lines a_, b_;
  std::vector<ChangedSpan> old_, new_;
  std::vector<Part> parts_;
};

// Writes the plan's changes as edits with JSON pointers, or the whole plan if that is shorter.
std::string plan_changes(const Plan& before, const Plan& after) {
  const std::string whole = plan_text(after);
  if (whole == plan_text(before)) return {};
  std::vector<std::string> lines;
  for (const Json& edit : Json::diff(to_json(before), to_json(after)))
    lines.push_back(dump_json(edit));
  std::string out = "plan.json:\n```plan\n[" + join(lines, ",\n ") + "]\n```\n";
  return out.size() < whole.size() ? out : "plan.json now:\n```file plan.json\n" + whole + "```\n";
}

// Whether the changes, applied to the base, yield exactly the program.
bool gives(const std::string& text, const KernelProgram& base, const KernelProgram& program) {
  auto reply = parse_reply(text, &base);
  if (!reply) return false;
  auto applied = apply_reply(*reply, &base, {});
  return applied && applied->sources == program.sources &&
         plan_text(applied->plan) == plan_text(program.plan);
}

}  // namespace

bool is_long(const KernelProgram& program) {
  return llm::estimate_tokens(describe_program(program)) >= kLeastTokens;
}

std::optional<std::string> changes_text(const KernelProgram& base, const KernelProgram& program) {
  std::string out;
  if (base.sources.size() != program.sources.size()) return std::nullopt;
  for (const auto& [name, after] : program.sources) {
    auto before = base.sources.find(name);
    if (before == base.sources.end()) return std::nullopt;
    if (before->second == after) continue;
    if (!before->second.ends_with('\n') || !after.ends_with('\n')) return std::nullopt;
    auto text = SourceChanges(name, before->second, after).text();
    if (!text) return std::nullopt;
    out += *text;
  }
  out += plan_changes(base.plan, program.plan);
  const int64_t whole = llm::estimate_tokens(describe_program(program));
  if (!is_long(base) || whole < kLeastTokens) return std::nullopt;
  if (llm::estimate_tokens(out) * kMostShare > whole) return std::nullopt;
  if (!gives(out, base, program)) return std::nullopt;
  return out;
}

}  // namespace cutegen::agent
