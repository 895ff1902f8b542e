// SPDX-License-Identifier: Apache-2.0
#include "agent/reply.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/fences.h"
#include "agent/source_map.h"
#include "base/text.h"

namespace cutegen::agent {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;
constexpr size_t kMostChanges = 200;
constexpr size_t kSummary = 200;

using Parsed = tl::expected<void, Reask>;

bool has_kernel(const std::string& text) {
  return code_only(text).find("__global__") != std::string::npos;
}

bool has_include(const std::string& text) {
  auto kinds = map_source(text);
  for (size_t at = text.find("#include"); at != std::string::npos;
       at = text.find("#include", at + 1))
    if (kinds[at] == ByteKind::directive) return true;
  return false;
}

// Removes the reasoning that some models send before their answer.
std::string without_thoughts(const std::string& text) {
  size_t from = text.find_first_not_of(" \t\r\n");
  if (from == std::string::npos || text.compare(from, 7, "<think>") != 0) return text;
  size_t end = text.find("</think>", from);
  return end == std::string::npos ? std::string() : text.substr(end + 8);
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = char(std::toupper(uint8_t(c)));
  return out;
}

// Removes Markdown's marks for headings, bold text and code.
std::string without_marks(const std::string& line) {
  std::string out;
  for (char c : line)
    if (c != '*' && c != '#' && c != '`') out += c;
  return out;
}

constexpr std::string_view kDraft = "DRAFT:";

// Reads the name from a line that begins with kDraft.
std::string draft_name(std::string_view line) {
  return sanitize(trim(line.substr(kDraft.size())), 20);
}

// Reads the lines with a mark (SUMMARY:). Without a summary, the first other line becomes one.
void read_prose(const std::vector<std::string>& lines, Reply& reply) {
  std::string first_line;
  for (const std::string& line : lines) {
    std::string plain = without_marks(line);
    std::string_view text = trim(plain);
    if (text.empty()) continue;
    std::string head = upper(text.substr(0, 8));
    if (head == "SUMMARY:")
      reply.summary = sanitize(trim(text.substr(8)), kSummary);
    else if (head.starts_with("WHY:"))
      reply.rationale = sanitize(trim(text.substr(4)), 600);
    else if (head.starts_with(kDraft))
      reply.draft = draft_name(text);
    else if (first_line.empty())
      first_line = sanitize(text, kSummary);
  }
  if (reply.summary.empty()) reply.summary = first_line;
}

// Returns the source that a block is for. A block without a name means the program's only source.
tl::expected<std::string, Reask> only_source(const Fence& fence, const KernelProgram* base) {
  if (!fence.file.empty()) return fence.file;
  if (!fence.title.empty()) return fence.title;
  if (!base) return std::string("kernel.cu");
  if (base->sources.size() == 1) return base->sources.begin()->first;
  std::vector<std::string> names;
  names.reserve(base->sources.size());
  for (const auto& [name, text] : base->sources) names.push_back(name);
  return reask("no_file",
               fmt::format("The block at line {} of the reply does not name its file. Name it in "
                           "the first line: ```{} NAME, NAME being one of {}.",
                           fence.line, to_string(fence.kind), join(names, ", ")));
}

// Whether a block is a whole file: it defines a kernel, and has includes if the current file has
// any.
bool is_whole_file(const Fence& fence, const KernelProgram* base) {
  if (!has_kernel(fence.text)) return false;
  std::string name = !fence.file.empty() ? fence.file : fence.title;
  if (!base) return true;
  const std::string* present = nullptr;
  if (auto it = base->sources.find(name); it != base->sources.end()) present = &it->second;
  if (name.empty() && base->sources.size() == 1) present = &base->sources.begin()->second;
  return !present || !has_include(*present) || has_include(fence.text);
}

tl::expected<PlanEdit, Reask> plan_edit_of(const Json& item, const Fence& fence) {
  PlanEdit edit;
  bool good = item.is_object() && item.contains("path") && item["path"].is_string();
  if (good) {
    edit.path = item["path"].get<std::string>();
    const bool named = item.contains("op") && item["op"].is_string();
    const auto op =
        from_name<PlanOp>(named ? item["op"].get<std::string>() : to_string(PlanOp::set), "op");
    good = op && (*op == PlanOp::remove || item.contains("value"));
    if (op) edit.op = *op;
  }
  if (!good)
    return reask("bad_plan_edit",
                 fmt::format("The plan block at line {} of the reply: an edit is {{\"path\": "
                             "\"/steps/0/block/0\", \"value\": 256}} (\"op\": \"set\", "
                             "\"replace\", \"add\" or \"remove\"); this one is not: {}",
                             fence.line, sanitize(dump_json(item), 200)));
  if (edit.op != PlanOp::remove) edit.value = item["value"];
  return edit;
}

// Reads a whole plan, one edit, or a list of edits.
tl::expected<std::vector<Change>, Reask> plan_changes(const Json& json, const Fence& fence) {
  std::vector<Change> out;
  if (json.is_object() && json.contains("steps")) {
    out.push_back(WholeFile{.file = "plan.json", .text = fence.text + "\n"});
    return out;
  }
  const Json* list = &json;
  if (json.is_object() && json.contains("edits")) list = &json["edits"];
  const Json edits = list->is_array() ? *list : Json::array({json});
  for (const Json& item : edits) {
    auto edit = plan_edit_of(item, fence);
    if (!edit) return tl::unexpected(edit.error());
    out.push_back(std::move(*edit));
  }
  return out;
}

std::string file_of(const Change& change) {
  if (auto* f = std::get_if<WholeFile>(&change)) return f->file;
  if (auto* e = std::get_if<SearchReplace>(&change)) return e->file;
  if (auto* d = std::get_if<WholeDefinitions>(&change)) return d->file;
  return "plan.json";
}

// A reply may send a file whole or edit it, but not both.
Parsed check_changes(const std::vector<Change>& changes) {
  if (changes.size() > kMostChanges)
    return reask("too_many",
                 fmt::format("The reply has {} changes; the limit is {}. Send the whole file.",
                             changes.size(), kMostChanges));
  for (size_t i = 0; i < changes.size(); ++i) {
    if (!std::holds_alternative<WholeFile>(changes[i])) continue;
    std::string file = file_of(changes[i]);
    for (size_t k = 0; k < changes.size(); ++k)
      if (k != i && file_of(changes[k]) == file)
        return reask("ambiguous",
                     fmt::format("The reply contains the whole file {} and also another change "
                                 "of it. Send either the whole file once, or edits.",
                                 file));
  }
  return {};
}

// `plain` holds the blocks of unknown kind.
Reask nothing_found(bool saw_diff, const std::vector<Fence>& plain) {
  if (saw_diff)
    return Reask{
        .reason = "diff",
        .text =
            "The reply contains a diff. cutegen does not apply diffs, because their line "
            "numbers are often wrong. Send ```edit NAME blocks with SEARCH and REPLACE instead."};
  if (!plain.empty())
    return Reask{.reason = "snippet",
                 .text = fmt::format(
                     "The code block at line {} of the reply does not say what it is, and it is "
                     "not a whole file. Begin it with ```function NAME (whole functions), ```edit "
                     "NAME (SEARCH/REPLACE) or ```file NAME (everything).",
                     plain.front().line)};
  return Reask{
      .reason = "no_block",
      .text =
          "The reply contains no block to apply. Answer with ```edit, ```function, ```file "
          "or ```plan blocks as described."};
}

class Parser {
 public:
  explicit Parser(const KernelProgram* base) : base_(base) {}

  tl::expected<Reply, Reask> run(const std::string& text) {
    Fences fences = read_fences(text);
    if (fences.open_line)
      return reask(
          "cut",
          fmt::format(
              "The block that begins at line {} of the reply is not closed: the reply was cut, or "
              "its last ``` is missing. Send all blocks again, shorter ones if they did not fit.",
              fences.open_line));
    read_prose(fences.prose, reply_);
    if (auto r = loose_edits(fences.prose); !r) return tl::unexpected(r.error());
    for (const Fence& fence : fences.blocks)
      if (auto r = read(fence); !r) return tl::unexpected(r.error());
    if (auto r = take_plain_code(); !r) return tl::unexpected(r.error());
    if (reply_.changes.empty() && fences.blocks.empty()) take_bare_file(text);
    bool code = saw_diff_ || !plain_.empty();
    if (reply_.changes.empty() && (reply_.draft.empty() || code))
      return tl::unexpected(nothing_found(saw_diff_, plain_));
    if (auto r = check_changes(reply_.changes); !r) return tl::unexpected(r.error());
    return std::move(reply_);
  }

 private:
  Parsed read(const Fence& fence) {
    if (fence.kind == FenceKind::file) return read_file_block(fence);
    if (fence.kind == FenceKind::edit) return read_edits(fence);
    if (fence.kind == FenceKind::function) return read_function(fence);
    if (fence.kind == FenceKind::plan || fence.kind == FenceKind::json) return read_json(fence);
    if (fence.kind == FenceKind::diff) {
      if (!read_search_blocks(fence.text).blocks.empty()) return read_edits(fence);
      saw_diff_ = true;
    } else if (fence.kind == FenceKind::code) {
      if (fence.text.find("SEARCH") != std::string::npos &&
          fence.text.find("<<<<<") != std::string::npos)
        return read_edits(fence);
      plain_.push_back(fence);
    }
    return {};
  }

  Parsed read_file_block(const Fence& fence) {
    if (fence.file.ends_with(".json")) return read_json(fence);
    auto name = only_source(fence, base_);
    if (!name) return tl::unexpected(name.error());
    add(WholeFile{.file = *name, .text = fence.text + "\n"});
    return {};
  }

  Parsed read_function(const Fence& fence) {
    auto name = only_source(fence, base_);
    if (!name) return tl::unexpected(name.error());
    add(WholeDefinitions{.file = *name, .text = fence.text});
    return {};
  }

  Parsed read_edits(const Fence& fence) {
    SearchBlocks found = read_search_blocks(fence.text);
    if (!found.fault.empty() || found.blocks.empty())
      return reask(
          "bad_edit",
          fmt::format("The edit block at line {} of the reply: {}. An edit is\n"
                      "<<<<<<< SEARCH\n"
                      "the current lines\n"
                      "=======\n"
                      "the new lines\n"
                      ">>>>>>> REPLACE",
                      fence.line, found.fault.empty() ? "it contains no edit" : found.fault));
    auto name = only_source(fence, base_);
    if (!name) return tl::unexpected(name.error());
    for (const SearchBlock& b : found.blocks)
      add(SearchReplace{
          .file = *name, .search = b.search, .replace = b.replace, .number = ++edits_});
    return {};
  }

  // Reads SEARCH/REPLACE blocks outside fences.
  Parsed loose_edits(const std::vector<std::string>& prose) {
    Fence fence;
    fence.kind = FenceKind::edit;
    fence.text = join(prose, "\n");
    SearchBlocks found = read_search_blocks(fence.text);
    if (found.blocks.empty() && found.fault.empty()) return {};
    auto first = std::find_if(prose.begin(), prose.end(), [](const std::string& line) {
      return line.find("<<<<<") != std::string::npos;
    });
    fence.title = title_above({prose.begin(), first});
    return read_edits(fence);
  }

  Parsed read_json(const Fence& fence) {
    bool ours =
        fence.kind == FenceKind::plan || fence.file == "plan.json" || fence.title == "plan.json";
    if (!read_search_blocks(fence.text).blocks.empty()) {
      Fence edit = fence;
      edit.file = "plan.json";
      return read_edits(edit);
    }
    ours = ours || fence.text.find("\"cutegen\"") != std::string::npos ||
           fence.text.find("\"path\"") != std::string::npos;
    if (!ours) return {};
    auto json = parse_json(fence.text, "plan.json", kMostBytes);
    if (!json)
      return reask("bad_json", fmt::format("The JSON block at line {} of the reply: {}. Send valid "
                                           "JSON: no comments, no trailing commas.",
                                           fence.line, json.error().text()));
    auto changes = plan_changes(*json, fence);
    if (!changes) return tl::unexpected(changes.error());
    for (Change& change : *changes) add(std::move(change));
    return {};
  }

  // Takes code fences that name only the language.
  Parsed take_plain_code() {
    std::vector<const Fence*> whole;
    for (const Fence& fence : plain_)
      if (is_whole_file(fence, base_)) whole.push_back(&fence);
    for (const Fence* fence : whole) {
      auto name = only_source(*fence, base_);
      if (!name) return tl::unexpected(name.error());
      bool explicit_one = std::any_of(reply_.changes.begin(), reply_.changes.end(),
                                      [&](const Change& c) { return file_of(c) == *name; });
      if (explicit_one) continue;
      if (whole.size() > 1 && fence->file.empty() && fence->title.empty() &&
          fence->text != whole.front()->text)
        return reask(
            "ambiguous",
            fmt::format("The blocks at lines {} and {} of the reply could both be {}. Send "
                        "one block that begins with ```file {}.",
                        whole[0]->line, whole[1]->line, *name, *name));
      taken_.push_back({.file = *name, .text = fence->text + "\n"});
    }
    for (WholeFile& file : taken_) add(std::move(file));
    return {};
  }

  // Takes a reply that is nothing but the text of the program's only source.
  void take_bare_file(const std::string& given) {
    std::string text(trim(given));
    static const std::vector<std::string> kStarts{"#include", "//",       "/*",        "#pragma",
                                                  "extern",   "template", "__global__"};
    bool code = starts_with_any(text, kStarts) && (text.ends_with('}') || text.ends_with(';'));
    Fence fence;
    fence.kind = FenceKind::file;
    fence.text = text;
    if (!code || !is_whole_file(fence, base_)) return;
    if (auto name = only_source(fence, base_)) add(WholeFile{.file = *name, .text = text + "\n"});
  }

  // A repeated block counts once, but a repeated plan edit may be intended.
  void add(Change change) {
    bool repeated =
        !std::holds_alternative<PlanEdit>(change) &&
        std::find(reply_.changes.begin(), reply_.changes.end(), change) != reply_.changes.end();
    if (!repeated) reply_.changes.push_back(std::move(change));
  }

  const KernelProgram* base_;
  Reply reply_;
  std::vector<Fence> plain_;
  std::vector<WholeFile> taken_;
  bool saw_diff_ = false;
  int edits_ = 0;
};

}  // namespace

std::string named_draft(const std::string& given) {
  if (given.size() > kMostBytes) return {};
  std::string found;
  for (const std::string& line : read_fences(without_thoughts(given)).prose) {
    std::string plain = without_marks(line);
    if (upper(trim(plain)).starts_with(kDraft)) found = draft_name(trim(plain));
  }
  return found;
}

tl::expected<Reply, Reask> parse_reply(const std::string& given, const KernelProgram* base,
                                       bool cut) {
  if (given.size() > kMostBytes)
    return reask("too_long",
                 fmt::format("The reply has {} bytes; the limit is {}.", given.size(), kMostBytes));
  if (given.find('\0') != std::string::npos)
    return reask("no_text", "The reply contains zero bytes. Send plain text.");
  if (cut)
    return reask("cut",
                 "The reply was cut at the limit of its length. Give a shorter answer: edits or "
                 "whole functions instead of whole files, and few words.");
  std::string text = without_thoughts(given);
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  if (trim(text).empty()) return reask("empty", "The reply is empty.");
  return Parser(base).run(text);
}

}  // namespace cutegen::agent
