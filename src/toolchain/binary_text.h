// SPDX-License-Identifier: Apache-2.0
// Reads the output of ptxas and nvdisasm, and PTX itself, for the audit of a candidate.
//
// Contract: hostile code can influence the output of the tools. Therefore, the functions accept any
// text and never fail: they skip lines that they do not understand. The time of each function is
// proportional to the length of the text, times a bounded number of rounds of data-flow analysis.
//
// Example: for (const KernelAudit& k : read_ptxas_log(log)) fmt::print("{}\n", k.registers);
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/audit.h"

namespace cutegen::toolchain {

// Reads the registers, spills and other resources of each kernel from the output of `ptxas -v`. The
// spills of a kernel include the spills of the functions that it calls.
std::vector<KernelAudit> read_ptxas_log(std::string_view log);

// Reads the instructions that `nvdisasm -b` lists for raw code with one piece for each kernel. An
// instruction belongs to the piece of code that contains its offset. `ends` has the end offsets of
// the pieces in ascending order.
std::vector<CodeAudit> read_sass(std::string_view text, const std::vector<size_t>& ends);

struct PtxUse {
  // Variables to which the code refers; `written` is true if a store may use its address.
  std::vector<GlobalAudit> globals;
  std::vector<std::string> device_calls;   // external functions that the code calls
  std::vector<std::string> unusual_reads;  // see BinaryAudit::unusual_reads
};
PtxUse read_ptx_use(std::string_view ptx);

}  // namespace cutegen::toolchain
