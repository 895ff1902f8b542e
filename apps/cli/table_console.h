// SPDX-License-Identifier: Apache-2.0
// TableConsole: a table that grows on stderr, row by row. A terminal also shows the current
// progress.
//
// Contract: prints nothing with --json or --quiet. Callers sanitise rows; TableConsole sanitises
// progress.
//
// Example: TableConsole console(g); console.row(header, line, 3, 10); console.progress("compile");
#pragma once

#include <string>

#include "cli/command.h"

namespace cutegen::cli {

class TableConsole {
 public:
  explicit TableConsole(const Globals& g) : g_(g) {}
  ~TableConsole() { clear(); }
  TableConsole(const TableConsole&) = delete;
  TableConsole& operator=(const TableConsole&) = delete;
  void row(const std::string& header, const std::string& line, size_t ended, size_t total);
  void progress(const std::string& line);

 private:
  void clear();
  const Globals& g_;
  bool header_ = false, status_ = false;
};

}  // namespace cutegen::cli
