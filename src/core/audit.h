// SPDX-License-Identifier: Apache-2.0
// BinaryAudit: what the machine code of a program reveals without running it: registers, spills,
// matrix instructions, clock reads, state in global variables.
//
// Contract: a plain value, part of a verdict. Instruction counts are static: places in the code,
// not executions. `skipped` lists the parts that the audit could not read, with reasons. If the
// audit did not read a kernel's machine code, the kernel has no `code`.
//
// Example: for (const KernelAudit& k : audit.kernels) worst = std::max(worst, k.registers);
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"

namespace cutegen {

// Static counts of machine instructions.
struct CodeAudit {
  int64_t instructions = 0;
  int64_t local_loads = 0, local_stores = 0;  // LDL, STL: spills, and arrays accessed by address
  int64_t clock_reads = 0;                    // reads of the SM's clocks and the global timer
  int64_t calls = 0, indirect = 0;            // indirect: calls and branches through a register
  std::map<std::string, int64_t> mma;         // "HMMA.16816.F32.BF16": 8
};

struct KernelAudit {
  std::string module, kernel;  // module: its ModuleBuild::key()
  int registers = 0;           // per thread
  int barriers = 0;
  int64_t stack_bytes = 0, spill_store_bytes = 0, spill_load_bytes = 0;  // per thread
  int64_t static_shared_bytes = 0;
  std::optional<CodeAudit> code;
};

// A variable in global memory, which keeps its value from launch to launch.
struct GlobalAudit {
  std::string module, name;
  int64_t bytes = 0;
  bool written = false;  // some kernel may write it
};

// Constant memory at an address that belongs to no declared variable.
inline constexpr const char* kConstantByAddress = "constant memory by address";

struct BinaryAudit {
  std::string assembler, disassembler;    // "ptxas 13.0.88"; empty if missing
  std::vector<KernelAudit> kernels;       // sorted by module and name
  std::vector<GlobalAudit> globals;       // those that the code uses
  std::vector<std::string> device_calls;  // functions of the CUDA runtime: "malloc", "vprintf"
  std::vector<std::string> skipped;       // parts that the audit could not read, with reasons
  // What the code reads besides its arguments and variables: special registers that tell launches
  // or multiprocessors apart ("%gridid", "%smid"), and kConstantByAddress.
  std::vector<std::string> unusual_reads;
};

// Significand bits of the operands of a matrix instruction: 52 (fp64), 10 (tf32, f16), 7 (bf16), 3
// (fp8), 0 (integers). nullopt if the opcode is not a known matrix instruction.
std::optional<int> mma_bits(const std::string& opcode);
bool is_mma(const std::string& opcode);

// One short line: "softmax: 31 registers, 32 B shared, no spills; ...".
std::string summary_of(const BinaryAudit& audit);

void fields(Fields& v, BinaryAudit& audit);

}  // namespace cutegen
