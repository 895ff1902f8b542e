// SPDX-License-Identifier: Apache-2.0
// Reads the output of ptxas and nvdisasm, and PTX itself, for the audit of a candidate.
//
// Contract: hostile code can influence these texts. The functions therefore accept any text and
// never fail; they skip lines that they do not understand. Their time grows linearly with the
// length of the text, times a bounded number of rounds of data-flow analysis.
//
// Example: for (const KernelAudit& k : read_ptxas_log(log)) fmt::print("{}\n", k.registers);
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/audit.h"

namespace cutegen::toolchain {

// Reads the registers, spills and other resources of each kernel from the output of `ptxas -v`. The
// spills include those of the functions that the kernel calls.
std::vector<KernelAudit> read_ptxas_log(std::string_view log);

// Reads the instructions that `nvdisasm -b` lists for raw code that consists of several pieces, one
// for each kernel. An instruction counts for the piece that contains its offset. `ends` holds the
// end offsets of the pieces in ascending order.
std::vector<CodeAudit> read_sass(std::string_view text, const std::vector<size_t>& ends);

struct PtxUse {
  // Variables to which the code refers. `written` is true if the variable's address may reach a
  // store.
  std::vector<GlobalAudit> globals;
  std::vector<std::string> device_calls;   // external functions that the code calls
  std::vector<std::string> unusual_reads;  // see BinaryAudit::unusual_reads
};
PtxUse read_ptx_use(std::string_view ptx);

}  // namespace cutegen::toolchain
