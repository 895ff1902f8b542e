// SPDX-License-Identifier: Apache-2.0
#include "cli/table_console.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/text.h"

namespace cutegen::cli {

void TableConsole::row(const std::string& header, const std::string& line, size_t ended,
                       size_t total) {
  if (g_.json || g_.quiet) return;
  clear();
  if (!header_) std::fputs(("          " + header).c_str(), stderr);
  header_ = true;
  std::fputs(fmt::format("{:<10}{}", fmt::format("{}/{}", ended, total), line).c_str(), stderr);
}

void TableConsole::progress(const std::string& line) {
  if (g_.json || g_.quiet || !g_.error_tty) return;
  std::string text = sanitize(line, 78);
  for (char& c : text)
    if (c == '\n') c = ' ';
  std::fprintf(stderr, "\r\x1b[K%s", text.c_str());
  std::fflush(stderr);
  status_ = true;
}

void TableConsole::clear() {
  if (status_) std::fputs("\r\x1b[K", stderr);
  status_ = false;
}

}  // namespace cutegen::cli
