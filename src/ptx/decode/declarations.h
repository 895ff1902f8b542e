// SPDX-License-Identifier: Apache-2.0
// Reads the declarations of a PTX module: entries and constants. read_declarations() decodes no
// instructions, so it also accepts modules that the simulator cannot run.
//
// Contract: read_declarations() is safe on hostile text, like Module::parse. read_declarations()
// does not set the static shared memory size and the register count of an `Entry`. Constants are
// initialised `.global` and `.const` variables with plain (extern "C") names, of at most 1 MiB
// each. read_declarations() reads 32-bit integers as signed.
//
// Example: CG_TRY(Declarations d, read_declarations(ptx)); d.integers.at("cg_smem");
#pragma once

#include "ptx/machine/machine.h"
#include "ptx/text/ast.h"

namespace cutegen::ptx {

struct Declarations {
  std::vector<Entry> entries;
  std::map<std::string, int64_t> integers;
  std::map<std::string, std::vector<std::byte>> bytes;
};
Result<Declarations> read_declarations(std::string_view text);

std::map<std::string, int64_t> integer_constants(const ParsedModule& module);
std::vector<std::string> constant_names(const ParsedModule& module);
std::optional<std::vector<std::byte>> constant_bytes(const ParsedModule& module,
                                                     const std::string& name);

inline constexpr size_t kMostText = size_t{32} << 20;

}  // namespace cutegen::ptx
