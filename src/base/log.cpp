// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace cutegen {
namespace {

LogLevel initial_level() {
  const char* text = std::getenv("CUTEGEN_LOG");
  std::string_view s = text ? text : "";
  if (s == "debug") return LogLevel::debug;
  if (s == "info") return LogLevel::info;
  if (s == "error") return LogLevel::error;
  return LogLevel::warning;
}

std::atomic<LogLevel>& level() {
  static std::atomic<LogLevel> value = initial_level();
  return value;
}

}  // namespace

void set_log_level(LogLevel l) {
  level() = l;
}

void log_line(LogLevel l, const std::string& text) {
  if (l < level().load()) return;
  static constexpr const char* names[] = {"debug", "info", "warning", "error"};
  // One write for each line, so that the lines of several processes do not mix.
  std::string line = std::string("cutegen: ") + names[static_cast<int>(l)] + ": " + text + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace cutegen
