// SPDX-License-Identifier: Apache-2.0
#include "agent/edit.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/anchor.h"
#include "agent/plan_edit.h"
#include "agent/source_map.h"
#include "base/text.h"
#include "core/json_place.h"

namespace cutegen::agent {
namespace {

constexpr size_t kMostFaults = 6;  // shown at once

using Done = tl::expected<void, Reask>;

std::string unix_lines(std::string text) {
  return replace_all(replace_all(std::move(text), "\r\n", "\n"), "\r", "\n");
}

// Whether a line stands for omitted text: "// ... rest unchanged ...".
bool is_gap(std::string_view given) {
  std::string line = lower(trim(given));
  bool dots =
      line.find("...") != std::string::npos || line.find("\xE2\x80\xA6") != std::string::npos;
  if (!dots) return false;
  if (line == "..." || line == "\xE2\x80\xA6") return true;
  bool comment = line.starts_with("//") || line.starts_with("/*") || line.starts_with("#");
  static const std::vector<std::string> kWords{"existing",   "unchanged", "rest",     "remain",
                                               "same",       "omitted",   "previous", "as before",
                                               "other code", "keep"};
  return comment && std::any_of(kWords.begin(), kWords.end(), [&](const std::string& w) {
           return line.find(w) != std::string::npos;
         });
}

// Finds a line in `text` that stands for omitted text and does not occur in `before`.
std::optional<std::string> gap_in(const std::string& text, const std::string& before) {
  for (const std::string& line : split(text, '\n'))
    if (is_gap(line) && before.find(trim(line)) == std::string::npos)
      return std::string(trim(line));
  return std::nullopt;
}

struct Replacement {
  size_t begin, size;
  std::string text, what;
};

// Returns the start of the comment right above `begin`, or `begin` if there is none.
size_t with_comment_above(const std::string& text, size_t begin) {
  for (;;) {
    size_t line = text.rfind('\n', begin ? begin - 1 : 0);
    if (begin == 0 || line == std::string::npos || line + 1 != begin) return begin;
    size_t above = line == 0 ? 0 : text.rfind('\n', line - 1);
    above = above == std::string::npos ? 0 : (line == 0 ? 0 : above + 1);
    if (above >= line ||
        !trim(std::string_view(text).substr(above, line - above)).starts_with("//"))
      return begin;
    begin = above;
  }
}

class FileEditor {
 public:
  FileEditor(std::string name, std::string text) : name_(std::move(name)), text_(std::move(text)) {}

  Done add(const SearchReplace& edit) {
    auto place = find_anchor(text_, edit);
    if (!place) return tl::unexpected(place.error());
    std::string what = fmt::format("edit {}", edit.number);
    if (auto gap = gap_in(edit.replace, text_)) return gap_found(what, *gap);
    Replacement r{.begin = place->begin, .size = place->size, .text = edit.replace, .what = what};
    if (place->whole_lines) r.text = std::string(trim_lines(edit.replace));
    if (r.text.empty()) take_line_break(r);
    parts_.push_back(std::move(r));
    return {};
  }

  // Each definition in the block, with the text above it (a new helper, a comment), replaces the
  // file's definition of the same name.
  Done add(const WholeDefinitions& block) {
    std::string text = unix_lines(block.text);
    if (auto gap = gap_in(text, text_)) return gap_found("the function block", *gap);
    if (auto wrong = first_imbalance(text))
      return reask("unbalanced", fmt::format("The function block for {}: {}. Send the whole "
                                             "function again.",
                                             name_, wrong->message));
    auto fresh = definitions_in(text), present = definitions_in(text_);
    std::vector<std::pair<const Definition*, const Definition*>> pairs;
    for (const Definition& d : fresh) {
      auto same = [&](const Definition& p) { return p.name == d.name && p.is_type == d.is_type; };
      auto found = std::find_if(present.begin(), present.end(), same);
      if (found == present.end()) continue;
      if (std::count_if(present.begin(), present.end(), same) > 1 ||
          std::count_if(fresh.begin(), fresh.end(), same) > 1)
        return reask("function_repeated",
                     fmt::format("'{}' is defined more than once, so the block could replace "
                                 "either definition. Use an ```edit {} block for it.",
                                 d.name, name_));
      pairs.emplace_back(&d, &*found);
    }
    if (pairs.empty()) return no_such_function(fresh, present);
    size_t from = 0;
    for (size_t i = 0; i < pairs.size(); ++i) {
      const auto& [d, old] = pairs[i];
      size_t end = i + 1 < pairs.size() ? d->begin + d->size : text.size();
      std::string part(trim_lines(std::string_view(text).substr(from, end - from)));
      bool commented = with_comment_above(text, d->begin) < d->begin;
      size_t begin = commented ? with_comment_above(text_, old->begin) : old->begin;
      parts_.push_back({.begin = begin,
                        .size = old->begin + old->size - begin,
                        .text = part,
                        .what = "function " + d->name});
      from = end;
    }
    return {};
  }

  tl::expected<std::string, Reask> result() {
    std::sort(parts_.begin(), parts_.end(),
              [](const Replacement& a, const Replacement& b) { return a.begin < b.begin; });
    for (size_t i = 1; i < parts_.size(); ++i)
      if (parts_[i].begin < parts_[i - 1].begin + parts_[i - 1].size)
        return reask(
            "overlap",
            fmt::format(
                "{}: {} and {} change the same lines (line {}). Combine them into one edit.", name_,
                parts_[i - 1].what, parts_[i].what, line_at(text_, parts_[i].begin)));
    std::string out = text_;
    for (auto it = parts_.rbegin(); it != parts_.rend(); ++it)
      out.replace(it->begin, it->size, it->text);
    return out;
  }

 private:
  static std::string_view trim_lines(std::string_view text) {
    while (!text.empty() && (text.front() == '\n')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
    return text;
  }
  // If an edit deletes a whole line, it also deletes the line break.
  void take_line_break(Replacement& r) const {
    bool starts = r.begin == 0 || text_[r.begin - 1] == '\n';
    size_t end = r.begin + r.size;
    if (starts && end < text_.size() && text_[end] == '\n') ++r.size;
  }
  Done gap_found(const std::string& what, const std::string& gap) const {
    return reask("gap", fmt::format("{}: the line '{}' in {} stands for missing code. Write all "
                                    "lines, or use edits for the lines that change.",
                                    name_, sanitize(gap, 120), what));
  }
  Done no_such_function(const std::vector<Definition>& fresh,
                        const std::vector<Definition>& present) const {
    auto names = [](const std::vector<Definition>& all) {
      std::vector<std::string> out;
      for (size_t i = 0; i < std::min<size_t>(all.size(), 12); ++i) out.push_back(all[i].name);
      return out.empty() ? std::string("none") : join(out, ", ");
    };
    return reask(
        "function_missing",
        fmt::format("The function block for {}: none of its definitions ({}) is in the file, "
                    "which has {}. New functions go in with an ```edit {} block, or send "
                    "```file {}.",
                    name_, names(fresh), names(present), name_, name_));
  }

  std::string name_, text_;
  std::vector<Replacement> parts_;
};

class Applier {
 public:
  Applier(const Reply& reply, const KernelProgram* base) : reply_(reply), base_(base) {
    if (!base) return;
    for (const auto& [name, text] : base->sources) before_[name] = unix_lines(text);
    before_["plan.json"] = plan_text(base->plan);
    after_ = before_;
  }

  tl::expected<KernelProgram, Reask> run(const ProgramCheck& check) {
    note(whole_files());
    edits();
    if (faults_.empty()) note(balance());
    auto program = assemble();
    if (!program && !faults_.empty()) note(tl::unexpected(program.error()));
    if (!faults_.empty()) return tl::unexpected(all_faults());
    if (!program) return program;
    if (base_ && program_id(*program) == program_id(*base_))
      return reask("no_change",
                   "The reply does not change the program. Change something, or choose another "
                   "improvement.");
    if (check)
      if (auto faults = check(*program); !faults.empty()) return checks_failed(*program, faults);
    return program;
  }

 private:
  Done whole_files() {
    for (const Change& change : reply_.changes) {
      const auto* file = std::get_if<WholeFile>(&change);
      if (!file) continue;
      auto old = before_.find(file->file);
      if (auto gap = gap_in(file->text, old == before_.end() ? std::string() : old->second))
        return reask("gap", fmt::format("{}: the line '{}' stands for missing code. Send the whole "
                                        "file, or edits of the lines that change.",
                                        file->file, sanitize(*gap, 120)));
      after_[file->file] = file->text;
    }
    if (base_) return {};
    bool source = false;
    for (const auto& [name, text] : after_) source = source || name.ends_with(".cu");
    if (source && after_.contains("plan.json")) return {};
    return reask("incomplete",
                 fmt::format("There is no program yet. Send both files whole: ```file kernel.cu "
                             "and ```file plan.json. {} is missing.",
                             source ? "plan.json" : "kernel.cu"));
  }

  // Notes every edit that does not apply, so that one answer can correct all of them.
  void edits() {
    std::map<std::string, FileEditor> editors;
    for (const Change& change : reply_.changes) {
      const auto* edit = std::get_if<SearchReplace>(&change);
      const auto* block = std::get_if<WholeDefinitions>(&change);
      if (!edit && !block) continue;
      const std::string& file = edit ? edit->file : block->file;
      auto text = before_.find(file);
      if (text == before_.end()) {
        note(no_such_file(file));
        continue;
      }
      auto& editor = editors.try_emplace(file, file, text->second).first->second;
      note(edit ? editor.add(*edit) : editor.add(*block));
    }
    for (auto& [file, editor] : editors) {
      auto text = editor.result();
      if (text)
        after_[file] = std::move(*text);
      else
        note(tl::unexpected(text.error()));
    }
  }

  void note(const Done& done) {
    if (!done) faults_.push_back(done.error());
  }

  // Takes the reason from the first fault, and lists the faults in the text.
  Reask all_faults() const {
    if (faults_.size() == 1) return faults_.front();
    std::vector<std::string> texts;
    for (const Reask& fault : faults_)
      if (texts.size() < kMostFaults &&
          std::find(texts.begin(), texts.end(), fault.text) == texts.end())
        texts.push_back(fault.text);
    std::string out =
        fmt::format("{} changes do not apply:\n\n{}", faults_.size(), join(texts, "\n\n"));
    if (faults_.size() > texts.size())
      out += fmt::format("\n\nand {} more", faults_.size() - texts.size());
    return {.reason = faults_.front().reason, .text = out};
  }

  Done no_such_file(const std::string& file) const {
    std::vector<std::string> names;
    names.reserve(before_.size());
    for (const auto& [name, text] : before_) names.push_back(name);
    if (names.empty())
      return reask("incomplete",
                   "There is no program to edit yet. Send ```file kernel.cu and ```file plan.json, "
                   "both whole.");
    return reask("no_file", fmt::format("There is no file '{}'; the program has {}.",
                                        sanitize(file, 80), join(names, ", ")));
  }

  Done balance() const {
    for (const auto& [name, text] : after_) {
      auto old = before_.find(name);
      if (!name.ends_with(".cu") || (old != before_.end() && old->second == text)) continue;
      auto wrong = first_imbalance(text);
      if (!wrong) continue;
      return reask(
          "unbalanced",
          fmt::format("After the change the brackets of {} do not match: {}.\n"
                      "{}Send the whole function (```function {}), so that no bracket is lost.",
                      name, wrong->message, numbered_lines(text, wrong->line - 2, wrong->line + 2),
                      name));
    }
    return {};
  }

  tl::expected<KernelProgram, Reask> assemble() {
    const std::string& text = after_["plan.json"];
    auto json = parse_json(text, "plan.json");
    if (!json)
      return reask("bad_json", "plan.json cannot be read: " + json.error().text() +
                                   ". Send valid JSON: no comments, no trailing commas.");
    int number = 0;
    for (const Change& change : reply_.changes)
      if (const auto* edit = std::get_if<PlanEdit>(&change))
        note(edit_plan(*json, *edit, ++number));
    if (!faults_.empty()) return KernelProgram{};  // the caller lists the faults
    auto plan = plan_from_json(*json);
    if (!plan)
      return reask("bad_plan", "plan.json does not follow its schema: " +
                                   (number ? plan.error() : with_place(plan.error(), text)).text());
    KernelProgram program;
    program.plan = std::move(*plan);
    for (const std::string& name : program.plan.sources) {
      auto source = after_.find(name);
      if (source == after_.end())
        return reask("bad_plan",
                     fmt::format("plan.json lists the source '{}', which does not exist. Send it "
                                 "as ```file {}, or correct \"sources\".",
                                 name, name));
      program.sources[name] = source->second;
    }
    for (const auto& [name, source] : after_)
      if (name != "plan.json" && !program.sources.contains(name) && !before_.contains(name))
        return reask("bad_plan", fmt::format("'{}' is not among the \"sources\" of plan.json ({}). "
                                             "Add it there, or use a listed name.",
                                             name, join(program.plan.sources, ", ")));
    return program;
  }

  // Lists the failed checks, each with its line in the plan or the source.
  tl::unexpected<Reask> checks_failed(const KernelProgram& program,
                                      const std::vector<Error>& faults) const {
    std::string out = "The program was not compiled, because these checks fail:\n";
    std::string plan = plan_text(program.plan);
    for (size_t i = 0; i < std::min(faults.size(), kMostFaults); ++i)
      out += "- " + sanitize(with_place(faults[i], plan).text(), 400) + "\n";
    if (faults.size() > kMostFaults)
      out += fmt::format("- and {} more\n", faults.size() - kMostFaults);
    return reask("checks",
                 out + "Correct these and send the change again. cutegen applied nothing.");
  }

  const Reply& reply_;
  const KernelProgram* base_;
  std::map<std::string, std::string> before_, after_;
  std::vector<Reask> faults_;
};

}  // namespace

tl::expected<KernelProgram, Reask> apply_reply(const Reply& reply, const KernelProgram* base,
                                               const ProgramCheck& check) {
  return Applier(reply, base).run(check);
}

}  // namespace cutegen::agent
