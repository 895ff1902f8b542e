// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace cutegen {
namespace {

constexpr std::pair<std::string_view, LogLevel> kLevels[] = {{"debug", LogLevel::debug},
                                                             {"info", LogLevel::info},
                                                             {"warning", LogLevel::warning},
                                                             {"error", LogLevel::error}};

std::atomic<LogLevel>& level() {
  const char* text = std::getenv("CUTEGEN_LOG");
  static std::atomic<LogLevel> value = log_level_from(text ? text : "", LogLevel::warning);
  return value;
}

}  // namespace

LogLevel log_level_from(std::string_view name, LogLevel otherwise) {
  for (const auto& [known, level] : kLevels)
    if (known == name) return level;
  return otherwise;
}

void set_log_level(LogLevel l) {
  level() = l;
}

void log_line(LogLevel l, const std::string& text) {
  if (l < level().load()) return;
  static constexpr const char* names[] = {"debug", "info", "warning", "error"};
  // One write per line, so that lines of several processes do not mix.
  std::string line = std::string("cutegen: ") + names[int(l)] + ": " + text + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace cutegen
