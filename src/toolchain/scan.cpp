// SPDX-License-Identifier: Apache-2.0
#include "toolchain/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/file.h"
#include "base/text.h"

namespace cutegen::toolchain {
namespace {

bool is_name(std::string_view text) {
  auto word = [](char c) { return std::isalnum(uint8_t(c)) || c == '_'; };
  return !text.empty() && !std::isdigit(uint8_t(text[0])) &&
         std::all_of(text.begin(), text.end(), word);
}

bool is_plain_file_name(std::string_view name) {
  auto usual = [](char c) {
    return std::isalnum(uint8_t(c)) || std::string_view("._-+/").find(c) != std::string_view::npos;
  };
  return !name.empty() && name.size() < 200 && std::all_of(name.begin(), name.end(), usual);
}

std::string problem_with_defines(const CompileRequest& request) {
  for (const auto& [name, value] : request.defines) {
    if (!is_name(name) || name == "defined")
      return fmt::format("{}: error: '{}' is not a name for a define", request.name,
                         sanitize(name, 80));
    auto control = [](char c) { return uint8_t(c) < 0x20; };
    if (value.size() > 4096 || std::any_of(value.begin(), value.end(), control) ||
        value.ends_with('\\'))
      return fmt::format(
          "{}: error: the value of define '{}' must be one line of at most 4096 bytes",
          request.name, name);
  }
  return {};
}

std::string problem_with_includes(const CompileRequest& request,
                                  const std::vector<IncludeLine>& lines) {
  for (const IncludeLine& i : lines) {
    bool absolute = i.path.starts_with('/') || i.path.starts_with('\\');
    bool upward = i.path.find("..") != std::string::npos;
    if (!absolute && !upward) continue;
    return fmt::format(
        "{}:{}: error: #include of \"{}\" is not allowed: name a header of CuTe, CUTLASS, CUB, "
        "CUDA or "
        "cutegen/ relative to its include folder",
        request.name, i.line, sanitize(i.path, 200));
  }
  return {};
}

std::string problem_with_text(const CompileRequest& request) {
  if (!is_plain_file_name(request.name))
    return fmt::format("error: '{}' is not a usable name for a source", sanitize(request.name, 80));
  if (request.source.size() > kMostSourceBytes)
    return fmt::format("{}: error: the source has {} bytes; the limit is {}", request.name,
                       request.source.size(), kMostSourceBytes);
  if (size_t zero = request.source.find('\0'); zero != std::string::npos)
    return fmt::format("{}: error: the source has a zero byte at offset {}", request.name, zero);
  return {};
}

CuteUse use_of(const std::string& path) {
  if (path.starts_with("cutlass/")) return CuteUse::all;
  if (!path.starts_with("cute/")) return CuteUse::none;
  const bool light = path == "cute/tensor_impl.hpp" || path == "cute/layout.hpp" ||
                     path == "cute/config.hpp" ||
                     starts_with_any(path, {"cute/numeric/", "cute/container/"});
  return light ? CuteUse::tensors : CuteUse::all;
}

CuteUse reached(const std::vector<IncludeLine>& lines,
                const std::vector<std::filesystem::path>& dirs, std::set<std::string>& seen) {
  CuteUse most = CuteUse::none;
  for (const IncludeLine& i : lines) {
    most = std::max(most, use_of(i.path));
    if (!i.path.starts_with("cutegen/") || seen.size() > 64 || !seen.insert(i.path).second)
      continue;
    for (const auto& dir : dirs) {
      auto text = read_file(dir / i.path, kMostSourceBytes);
      if (text) most = std::max(most, reached(include_lines(*text), dirs, seen));
      if (text) break;
    }
  }
  return most;
}

// The text between the delimiters of an #include line, or empty.
std::string include_operand(std::string_view line) {
  line = trim(line);
  if (!line.starts_with('#')) return {};
  line = trim(line.substr(1));
  for (std::string_view word : {"include_next", "include", "embed", "import"}) {
    if (!line.starts_with(word)) continue;
    line = trim(line.substr(word.size()));
    if (line.empty() || (line[0] != '"' && line[0] != '<')) return {};
    size_t end = line.find(line[0] == '"' ? '"' : '>', 1);
    return end == std::string_view::npos ? std::string() : std::string(line.substr(1, end - 1));
  }
  return {};
}

}  // namespace

std::string without_comments(const std::string& source) {
  std::string out = source;
  size_t i = 0;
  auto at = [&](size_t k) { return k < out.size() ? out[k] : '\0'; };
  while (i < out.size()) {
    if (at(i) == '/' && at(i + 1) == '/') {
      for (; i < out.size() && out[i] != '\n'; ++i) out[i] = ' ';
    } else if (at(i) == '/' && at(i + 1) == '*') {
      size_t end = std::min(out.find("*/", i + 2), out.size());
      size_t stop = std::min(end + 2, out.size());
      for (; i < stop; ++i)
        if (out[i] != '\n') out[i] = ' ';
    } else if (at(i) == '"' || at(i) == '\'') {
      char quote = out[i++];
      while (i < out.size() && out[i] != quote && out[i] != '\n') i += out[i] == '\\' ? 2 : 1;
      ++i;
    } else {
      ++i;
    }
  }
  return out;
}

std::vector<IncludeLine> include_lines(const std::string& source) {
  std::vector<IncludeLine> out;
  int line = 0;
  for (const std::string& text : split(without_comments(source), '\n')) {
    ++line;
    if (std::string path = include_operand(text); !path.empty())
      out.push_back({.line = line, .path = path});
  }
  return out;
}

SourceScan scan_source(const CompileRequest& request,
                       const std::vector<std::filesystem::path>& dirs) {
  SourceScan out;
  out.problem = problem_with_text(request);
  if (out.problem.empty()) out.problem = problem_with_defines(request);
  if (!out.problem.empty()) return out;
  auto lines = include_lines(request.source);
  out.problem = problem_with_includes(request, lines);
  std::set<std::string> seen;
  out.cute = reached(lines, dirs, seen);
  return out;
}

const char* prefix_header(CuteUse use) {
  switch (use) {
    case CuteUse::none:
      return "cutegen/prelude.cuh";
    case CuteUse::tensors:
      return "cutegen/prelude_tensors.cuh";
    case CuteUse::all:
      break;
  }
  return "cutegen/prelude_cute.cuh";
}

std::string full_source(const CompileRequest& request) {
  std::string out;
  for (const auto& [name, value] : request.defines)
    out.append("#define ").append(name).append(" ").append(value).append("\n");
  return out + "#line 1 \"" + request.name + "\"\n" + request.source + "\n";
}

}  // namespace cutegen::toolchain
