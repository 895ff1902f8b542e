// SPDX-License-Identifier: Apache-2.0
// Condenses a compiler log: the first root error, its place in the candidate, and the source lines
// around it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/text.h"
#include "toolchain/toolchain.h"

namespace cutegen::toolchain {
namespace {

constexpr size_t kMostOfDigest = 1490, kMostMessage = 600, kMostLine = 160;

struct Diagnostic {
  std::string file;  // empty if the diagnostic has no place
  int line = 0, column = 0;
  std::string message;
  std::vector<int> through;  // candidate lines on the instantiation path
  // The line that the compiler quotes, if it is not from the candidate.
  std::string quoted;
};

// The message of "error: m", "catastrophic error #20: m" and so on. Does not use std::regex, which
// recurses once per byte, because a candidate can produce lines of any length.
std::optional<std::string> error_message(std::string_view text) {
  for (std::string_view word :
       {"nvrtc: ", "catastrophic ", "Catastrophic ", "internal ", "Internal "})
    if (text.starts_with(word)) text.remove_prefix(word.size());
  if (!text.starts_with("error")) return std::nullopt;
  size_t colon = text.find(": ");
  constexpr size_t kLongestNumber = 20;  // "error #20042-D: "
  if (colon == std::string_view::npos || colon > kLongestNumber) return std::nullopt;
  return std::string(text.substr(colon + 2));
}

std::optional<Diagnostic> header_of(const std::string& line) {
  Diagnostic d;
  if (auto bare = error_message(line)) {
    d.message = *bare;
    return d;
  }
  size_t open = line.find('('), close = line.find("): ");
  if (open == std::string::npos || close == std::string::npos || open == 0 || close <= open + 1 ||
      line[0] == ' ' || close - open > 10)
    return std::nullopt;
  auto message = error_message(std::string_view(line).substr(close + 3));
  d.line = std::atoi(line.c_str() + open + 1);
  if (!message || d.line <= 0) return std::nullopt;
  d.file = line.substr(0, open);
  d.message = *message;
  return d;
}

// Lines that are indented or notes continue a diagnostic.
bool starts_another(const std::string& line) {
  if (line.empty() || line[0] == ' ' || line[0] == '\t') return false;
  return line.find("): note") == std::string::npos;
}

// Reads the lines of a diagnostic: the quoted source, the caret, "at line N of FILE".
void read_details(const std::vector<std::string>& lines, size_t from, const std::string& name,
                  Diagnostic& d) {
  const std::string of_candidate = " of " + name;
  for (size_t i = from; i < lines.size() && !starts_another(lines[i]); ++i) {
    std::string_view text = trim(lines[i]);
    if (text == "^" && d.column == 0) {
      size_t caret = lines[i].find('^');
      d.column = int(caret >= 2 ? caret - 1 : 1);  // quoted lines are indented by two
      if (i > from) d.quoted = trim(lines[i - 1]);
    }
    size_t at = lines[i].rfind("at line ");
    size_t of = lines[i].rfind(of_candidate);
    if (at != std::string::npos && of != std::string::npos &&
        of + of_candidate.size() == lines[i].size())
      d.through.push_back(std::atoi(lines[i].c_str() + at + 8));
  }
}

// Removes deeply nested template arguments and the compiler's (aka ...) types.
std::string fold_types(const std::string& message) {
  std::string text = message.substr(0, 8192);
  for (size_t at; (at = text.find(" (aka \"")) != std::string::npos;) {
    size_t end = text.find("\")", at + 7);
    text.erase(at, end == std::string::npos ? std::string::npos : end + 2 - at);
  }
  for (int keep = 4; keep >= 0 && text.size() > kMostMessage; --keep) {
    std::string out;
    int depth = 0;
    for (char c : text) {
      if (c == '<' && ++depth == keep + 1) out += "<...>";
      if (depth <= keep) out += c;
      if (c == '>' && depth > 0) --depth;
    }
    text = std::move(out);
  }
  return sanitize(text, kMostMessage);
}

std::string source_lines(const std::vector<std::string>& lines, int line, int column) {
  std::string out;
  for (int n = std::max(1, line - 1); n <= line + 1 && n <= int(lines.size()); ++n) {
    std::string text = replace_all(lines[size_t(n - 1)], "\t", " ");
    out += fmt::format("{:>5} | {}\n", n, sanitize(text, kMostLine));
    if (n == line && column > 0 && column < int(kMostLine))
      out += fmt::format("      | {}^\n", std::string(size_t(column - 1), ' '));
  }
  return out;
}

std::string describe(const Diagnostic& d, const std::string& name,
                     const std::vector<std::string>& source) {
  std::string message = fold_types(d.message);
  bool own = d.file == name || d.file.empty();
  if (own) {
    std::string place = d.line == 0     ? name
                        : d.column == 0 ? fmt::format("{}:{}", name, d.line)
                                        : fmt::format("{}:{}:{}", name, d.line, d.column);
    return fmt::format("{}: error: {}\n{}", place, message,
                       d.line > 0 ? source_lines(source, d.line, d.column) : "");
  }
  std::string out = fmt::format("{}:{}: error: {}\n", d.file, d.line, message);
  if (!d.quoted.empty()) out += fmt::format("      | {}\n", sanitize(d.quoted, kMostLine));
  if (!d.through.empty())
    out += fmt::format("required from {}:{}:\n{}", name, d.through.back(),
                       source_lines(source, d.through.back(), 0));
  return out;
}

}  // namespace

std::string digest_errors(const std::string& log, const std::string& name,
                          const std::string& source) {
  std::vector<std::string> lines = split(log, '\n');
  std::vector<Diagnostic> errors;
  for (size_t i = 0; i < lines.size(); ++i)
    if (auto d = header_of(lines[i].substr(0, 16384))) {
      if (errors.empty()) read_details(lines, i + 1, name, *d);
      errors.push_back(std::move(*d));
    }
  if (errors.empty()) {
    std::string text = sanitize(trim(log), kMostOfDigest - name.size() - 40);
    return name + ": error: " + (text.empty() ? "the compiler failed without a message" : text);
  }
  std::string out = describe(errors.front(), name, split(source, '\n'));
  if (errors.size() > 1)
    out += fmt::format("and {} more error{}", errors.size() - 1, errors.size() == 2 ? "" : "s");
  return sanitize(trim(out), kMostOfDigest);
}

}  // namespace cutegen::toolchain
