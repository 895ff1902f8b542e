// SPDX-License-Identifier: Apache-2.0
// Readers of what the assembler and the disassembler print, and of PTX itself, for the audit.
//
// Contract: all three take text that hostile code shaped, never fail, and take time linear in it
// (times the nesting of a data flow that is bounded). What is not understood is left out.
//
// Example: for (const KernelAudit& k : read_ptxas_log(log)) fmt::print("{}\n", k.registers);
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/audit.h"

namespace cutegen::toolchain {

// The resources of each entry from `ptxas -v`; spills of the functions that it calls are added.
[[nodiscard]] std::vector<KernelAudit> read_ptxas_log(std::string_view log);

// The instructions that `nvdisasm -b` lists of pieces of raw code: each counts for the piece that
// its offset lies in. `ends` are where the pieces end, ascending.
[[nodiscard]] std::vector<CodeAudit> read_sass(std::string_view text,
                                               const std::vector<size_t>& ends);

struct PtxUse {
  std::vector<GlobalAudit> globals;       // that code refers to; `written` is a safe guess: true
                                          // wherever an address may reach a store
  std::vector<std::string> device_calls;  // external functions that are called
  // BinaryAudit::unusual_reads.
  std::vector<std::string> unusual_reads;
};
[[nodiscard]] PtxUse read_ptx_use(std::string_view ptx);

}  // namespace cutegen::toolchain
