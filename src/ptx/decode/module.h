// SPDX-License-Identifier: Apache-2.0
// The state of a Module: its text, its parsed form and its decoded entries.
#pragma once

#include <string>
#include <vector>

#include "ptx/decode/program.h"
#include "ptx/machine/machine.h"
#include "ptx/text/ast.h"

namespace cutegen::ptx {

struct Module::State {
  std::string text;  // the parsed form points into it
  uint64_t id = 0;   // unique in this process
  ParsedModule parsed;
  std::vector<Entry> entries;
  std::vector<Program> programs;
};

// The initial bytes of a variable; those without an initializer are zero.
Result<std::vector<std::byte>> initial_bytes(const Variable& variable);

}  // namespace cutegen::ptx
