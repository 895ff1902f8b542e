// SPDX-License-Identifier: Apache-2.0
// Readers for the output of ptxas and nvdisasm, and for PTX itself. The audit uses them.
//
// Contract: hostile code shapes the texts, so the readers accept any text and never fail. They skip
// what they do not understand. Their time is linear in the text, times a bounded number of rounds
// of data-flow analysis.
//
// Example: for (const KernelAudit& k : read_ptxas_log(log)) fmt::print("{}\n", k.registers);
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/audit.h"

namespace cutegen::toolchain {

// Reads the resources of each entry from `ptxas -v`. Adds the spills of the functions that it
// calls.
std::vector<KernelAudit> read_ptxas_log(std::string_view log);

// Reads the instructions that `nvdisasm -b` lists for pieces of raw code. An instruction belongs to
// the piece that contains its offset. `ends` holds the ends of the pieces, ascending.
std::vector<CodeAudit> read_sass(std::string_view text, const std::vector<size_t>& ends);

struct PtxUse {
  // Variables that code refers to. `written` is conservative: true if an address may reach a store.
  std::vector<GlobalAudit> globals;
  std::vector<std::string> device_calls;  // external functions that the code calls
  // See BinaryAudit.
  std::vector<std::string> unusual_reads;
};
PtxUse read_ptx_use(std::string_view ptx);

}  // namespace cutegen::toolchain
