// SPDX-License-Identifier: Apache-2.0
#include "agent/fences.h"

#include <algorithm>
#include <map>

#include "base/text.h"

namespace cutegen::agent {
namespace {

struct Marks {
  char mark = 0;
  size_t count = 0;
  std::string info;
};

// Reads the fence that a line opens, or closes if the line has no info string.
std::optional<Marks> fence_of(const std::string& line) {
  size_t at = line.find_first_not_of(" \t");
  if (at == std::string::npos || (line[at] != '`' && line[at] != '~')) return std::nullopt;
  size_t end = std::min(line.find_first_not_of(line[at], at), line.size());
  if (end - at < 3) return std::nullopt;
  std::string info(trim(line.substr(end)));
  if (info.find('`') != std::string::npos) return std::nullopt;  // inline code in a sentence
  return Marks{.mark = line[at], .count = end - at, .info = info};
}

bool is_file_name(const std::string& word) {
  if (word.empty() || word.size() > 64 || word[0] == '.') return false;
  bool plain = std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.';
  });
  return plain && (word.ends_with(".cu") || word.ends_with(".cuh") || word.ends_with(".json"));
}

std::vector<std::string> words_of(const std::string& info) {
  std::vector<std::string> out(1);
  for (char c : info)
    if (c == ' ' || c == '\t' || c == ':' || c == '=' || c == ',' || c == '"' || c == '{' ||
        c == '}' || c == '\'' || c == '(' || c == ')')
      out.emplace_back();
    else
      out.back() += c;
  std::erase(out, "");
  return out;
}

const std::map<std::string, FenceKind>& kinds() {
  static const std::map<std::string, FenceKind> kKinds{{"file", FenceKind::file},
                                                       {"edit", FenceKind::edit},
                                                       {"search", FenceKind::edit},
                                                       {"function", FenceKind::function},
                                                       {"definition", FenceKind::function},
                                                       {"plan", FenceKind::plan},
                                                       {"cuda", FenceKind::code},
                                                       {"cu", FenceKind::code},
                                                       {"cpp", FenceKind::code},
                                                       {"c++", FenceKind::code},
                                                       {"c", FenceKind::code},
                                                       {"cxx", FenceKind::code},
                                                       {"cc", FenceKind::code},
                                                       {"json", FenceKind::json},
                                                       {"jsonc", FenceKind::json},
                                                       {"json5", FenceKind::json},
                                                       {"diff", FenceKind::diff},
                                                       {"patch", FenceKind::diff},
                                                       {"udiff", FenceKind::diff}};
  return kKinds;
}

void read_info(const std::string& info, Fence& fence) {
  auto words = words_of(info);
  for (const std::string& word : words)
    if (is_file_name(word)) fence.file = word;
  if (words.empty()) {
    fence.kind = FenceKind::code;
    return;
  }
  auto it = kinds().find(lower(words[0]));
  if (it != kinds().end())
    fence.kind = it->second;
  else if (fence.file.empty())
    fence.kind = FenceKind::other;
  else
    fence.kind = fence.file.ends_with(".json") ? FenceKind::json : FenceKind::code;
}

bool is_command(FenceKind kind) {
  return kind == FenceKind::file || kind == FenceKind::edit || kind == FenceKind::function ||
         kind == FenceKind::plan;
}

}  // namespace

Names<FenceKind> enum_names(FenceKind) {
  static constexpr Name<FenceKind> names[] = {
      {FenceKind::file, "file"}, {FenceKind::edit, "edit"},  {FenceKind::function, "function"},
      {FenceKind::plan, "plan"}, {FenceKind::code, "code"},  {FenceKind::json, "json"},
      {FenceKind::diff, "diff"}, {FenceKind::other, "other"}};
  return names;
}

// Reads the file name from a title such as "**kernel.cu**:". A sentence is not a title.
std::string title_above(const std::vector<std::string>& lines) {
  for (auto it = lines.rbegin(); it != lines.rend(); ++it) {
    std::string name;
    for (char c : *it)
      if (std::string_view("*#`: \t>\"").find(c) == std::string_view::npos) name += c;
    if (name.empty()) continue;
    return is_file_name(name) ? name : std::string();
  }
  return {};
}

Fences read_fences(const std::string& given) {
  std::string text = replace_all(replace_all(given, "\r\n", "\n"), "\r", "\n");
  Fences out;
  std::optional<Marks> open;
  Fence fence;
  std::vector<std::string> lines;
  auto begin = [&](const Marks& marks, int number) {
    open = marks;
    fence = Fence{};
    fence.line = number;
    read_info(marks.info, fence);
    fence.title = title_above(out.prose);
    lines.clear();
  };
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    auto marks = fence_of(line);
    if (!open) {
      if (marks)
        begin(*marks, number);
      else
        out.prose.push_back(line);
      continue;
    }
    bool closes =
        marks && marks->info.empty() && marks->mark == open->mark && marks->count >= open->count;
    if (closes) {
      fence.text = join(lines, "\n");
      out.blocks.push_back(fence);
      out.prose.emplace_back();
      open.reset();
      continue;
    }
    Fence inner;
    if (marks && !marks->info.empty()) read_info(marks->info, inner);
    if (!is_command(fence.kind) && is_command(inner.kind))
      begin(*marks, number);  // the open fence only wraps other blocks
    else
      lines.push_back(line);
  }
  bool empty =
      std::all_of(lines.begin(), lines.end(), [](const std::string& l) { return trim(l).empty(); });
  if (open && !(empty && fence.kind == FenceKind::code && !out.blocks.empty()))
    out.open_line = fence.line;
  return out;
}

namespace {

enum class Marker { none, search, middle, replace };

Marker marker_of(const std::string& line) {
  std::string_view text = trim(line);
  auto run = [&](char c) {
    size_t n = std::min(text.find_first_not_of(c), text.size());
    return n >= 5 ? n : 0;
  };
  auto rest = [&](size_t n) { return lower(std::string(trim(text.substr(n)))); };
  if (size_t n = run('<'); n && rest(n) == "search") return Marker::search;
  if (size_t n = run('='); n && rest(n).empty()) return Marker::middle;
  if (size_t n = run('>'); n && (rest(n) == "replace" || rest(n) == "updated"))
    return Marker::replace;
  return Marker::none;
}

}  // namespace

SearchBlocks read_search_blocks(const std::string& text) {
  SearchBlocks out;
  Marker state = Marker::none;
  std::vector<std::string> search, replace;
  int number = 0, began = 0;
  auto fault = [&](const std::string& what) {
    out.fault = "line " + std::to_string(number) + " of the block: " + what;
    return out;
  };
  for (const std::string& line : split(text, '\n')) {
    ++number;
    Marker marker = marker_of(line);
    if (marker == Marker::search) {
      if (state != Marker::none) return fault("a SEARCH begins within another");
      state = Marker::search;
      began = number;
      search.clear();
      replace.clear();
    } else if (marker == Marker::middle && state == Marker::search) {
      state = Marker::middle;
    } else if (marker == Marker::middle && state == Marker::middle) {
      return fault("a second ======= within one edit");
    } else if (marker == Marker::replace) {
      if (state == Marker::search) return fault("the edit has no ======= line");
      if (state != Marker::middle) return fault("a REPLACE without a SEARCH before it");
      out.blocks.push_back(
          {.search = join(search, "\n"), .replace = join(replace, "\n"), .line = began});
      state = Marker::none;
    } else if (state == Marker::search) {
      search.push_back(line);
    } else if (state == Marker::middle) {
      replace.push_back(line);
    }
  }
  if (state != Marker::none)
    return fault("the edit that begins there lacks its >>>>>>> REPLACE line");
  return out;
}

}  // namespace cutegen::agent
