// SPDX-License-Identifier: Apache-2.0
// Writes log lines to stderr: "cutegen: warning: ...". Do not use the log for progress and results.
//
// Contract: thread-safe. The environment variable CUTEGEN_LOG sets the level (debug, info, warning,
// error; default warning). Sanitise text from outside cutegen before you log it (base/text.h).
//
// Example: log_warning("no GPU: {}", why);
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace cutegen {

enum class LogLevel { debug, info, warning, error };
// Returns the level with this name, or `otherwise` if there is no such level.
LogLevel log_level_from(std::string_view name, LogLevel otherwise);
void set_log_level(LogLevel level);
void log_line(LogLevel level, const std::string& text);

template <class... A>
void log_debug(fmt::format_string<A...> f, A&&... a) {
  log_line(LogLevel::debug, fmt::format(f, std::forward<A>(a)...));
}
template <class... A>
void log_info(fmt::format_string<A...> f, A&&... a) {
  log_line(LogLevel::info, fmt::format(f, std::forward<A>(a)...));
}
template <class... A>
void log_warning(fmt::format_string<A...> f, A&&... a) {
  log_line(LogLevel::warning, fmt::format(f, std::forward<A>(a)...));
}

}  // namespace cutegen
