// SPDX-License-Identifier: Apache-2.0
// Makes text from outside (language models, compilers, task files) safe to print, and provides
// string functions.
//
// Contract: sanitize() removes terminal escapes and control characters except tabs and newlines,
// repairs UTF-8, and cuts the text at `limit` bytes. A text that was too long ends with the mark
// "[cut]".
//
// Example: sanitize(log, 4096);
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cutegen {

std::string sanitize(std::string_view text, size_t limit);
std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string lower(std::string_view text);  // ASCII letters
std::string join(const std::vector<std::string>& parts, std::string_view between);
bool starts_with_any(std::string_view text, const std::vector<std::string>& prefixes);
std::string replace_all(std::string text, std::string_view from, std::string_view to);

}  // namespace cutegen
