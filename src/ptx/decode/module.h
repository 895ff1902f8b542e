// SPDX-License-Identifier: Apache-2.0
// Module::State has the text of a PTX module, its syntax tree and its decoded entries.
#pragma once

#include <string>
#include <vector>

#include "ptx/decode/program.h"
#include "ptx/machine/machine.h"
#include "ptx/text/ast.h"

namespace cutegen::ptx {

struct Module::State {
  std::string text;  // the text into which `parsed` points
  uint64_t id = 0;   // unique in this process
  ParsedModule parsed;
  std::vector<Entry> entries;
  std::vector<Program> programs;
};

// Returns the initial bytes of a variable, with zeros for bytes without an initializer.
Result<std::vector<std::byte>> initial_bytes(const Variable& variable);

}  // namespace cutegen::ptx
