// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

namespace cutegen {
namespace {

// Length of the valid UTF-8 sequence at text[i]; 0 if it is invalid.
size_t utf8_length(std::string_view text, size_t i) {
  auto byte = [&](size_t k) { return uint8_t(text[k]); };
  unsigned char c = byte(i);
  size_t n = c < 0x80                ? 1
             : c >= 0xC2 && c < 0xE0 ? 2
             : c >= 0xE0 && c < 0xF0 ? 3
             : c >= 0xF0 && c < 0xF5 ? 4
                                     : 0;
  if (n == 0 || i + n > text.size()) return 0;
  for (size_t k = 1; k < n; ++k)
    if ((byte(i + k) & 0xC0) != 0x80) return 0;
  return n;
}

// Skips the ANSI escape sequence at text[i] (ESC) and returns the index after it.
size_t skip_escape(std::string_view text, size_t i) {
  size_t k = i + 1;
  if (k >= text.size()) return k;
  if (text[k] == '[') {
    ++k;
    while (k < text.size() && !(text[k] >= 0x40 && text[k] <= 0x7e)) ++k;
    return k + 1;
  }
  if (text[k] == ']') {
    while (k < text.size() && text[k] != '\x07' && text[k] != '\x1b') ++k;
    return k < text.size() && text[k] == '\x1b' ? k + 2 : k + 1;
  }
  return k + 1;
}

}  // namespace

std::string sanitize(std::string_view text, size_t limit) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (out.size() >= limit) return out + "... [cut]";
    unsigned char c = uint8_t(text[i]);
    if (c == 0x1b) {
      i = skip_escape(text, i);
    } else if (c == '\r' || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
      ++i;
    } else if (size_t n = utf8_length(text, i)) {
      bool c1_control = n == 2 && c == 0xC2 && uint8_t(text[i + 1]) < 0xA0;
      if (!c1_control) out.append(text.substr(i, n));
      i += n;
    } else {
      out += '?';
      ++i;
    }
  }
  return out;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i)
    if (i == text.size() || text[i] == separator) {
      out.emplace_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  return out;
}

std::string_view trim(std::string_view text) {
  size_t b = text.find_first_not_of(" \t\r\n");
  if (b == std::string_view::npos) return {};
  return text.substr(b, text.find_last_not_of(" \t\r\n") - b + 1);
}

std::string join(const std::vector<std::string>& parts, std::string_view between) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i) out += between;
    out += parts[i];
  }
  return out;
}

bool starts_with_any(std::string_view text, const std::vector<std::string>& prefixes) {
  for (const auto& p : prefixes)
    if (text.starts_with(p)) return true;
  return false;
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (size_t i = 0; (i = text.find(from, i)) != std::string::npos; i += to.size())
    text.replace(i, from.size(), to);
  return text;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = char(std::tolower(uint8_t(c)));
  return out;
}

}  // namespace cutegen
