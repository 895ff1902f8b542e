// SPDX-License-Identifier: Apache-2.0
// BinaryAudit: facts that cutegen reads from a program's machine code without running the program:
// registers, spills, matrix instructions, clock reads, and state in global variables.
//
// Contract: BinaryAudit is a part of a Verdict. Instruction counts are static: an instruction in a
// loop counts once. `skipped` lists the parts that the audit could not read, with reasons. If the
// audit could not read a kernel's machine code, KernelAudit::code is empty.
//
// Example: for (const KernelAudit& k : audit.kernels) worst = std::max(worst, k.registers);
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "gpu/code_shape.h"

namespace cutegen {

// Counts of machine instructions in the code of one kernel.
struct CodeAudit {
  int64_t instructions = 0;
  // LDL and STL instructions: spills, and arrays in local memory
  int64_t local_loads = 0, local_stores = 0;
  int64_t clock_reads = 0;              // number of reads of a clock or the global timer
  int64_t calls = 0, indirect = 0;      // indirect: number of calls and branches through a register
  std::map<std::string, int64_t> mma;   // "HMMA.16816.F32.BF16": 8
  std::optional<CodeShape> shape = {};  // absent if the code has too many loops
};

struct KernelAudit {
  std::string module, kernel;  // module: source file and defines, see ModuleBuild::key()
  int registers = 0;           // per thread
  int barriers = 0;
  int64_t stack_bytes = 0, spill_store_bytes = 0, spill_load_bytes = 0;  // per thread
  int64_t static_shared_bytes = 0;
  std::optional<CodeAudit> code;
};

// A variable in GPU global memory, which keeps its value from launch to launch.
struct GlobalAudit {
  std::string module, name;
  int64_t bytes = 0;
  bool written = false;  // at least one kernel may write the variable
};

// Entry of BinaryAudit::unusual_reads if the code reads constant memory outside all declared
// variables.
inline constexpr const char* kConstantByAddress = "constant memory by address";

struct BinaryAudit {
  std::string assembler, disassembler;    // names and versions: "ptxas 13.0.88"; empty if missing
  std::vector<KernelAudit> kernels;       // sorted by module and name
  std::vector<GlobalAudit> globals;       // global variables that the code uses
  std::vector<std::string> device_calls;  // CUDA functions that the code calls: "malloc", "vprintf"
  std::vector<std::string> skipped;       // parts that the audit could not read, with reasons
  // Names the state that the code reads besides arguments and variables: special registers that
  // differ between launches or SMs ("%gridid", "%smid"), and kConstantByAddress.
  std::vector<std::string> unusual_reads;
};

// Returns how many explicit significand bits the operands of a matrix instruction (opcode) have: 52
// (fp64), 10 (tf32, f16), 7 (bf16), 3 (fp8), 0 (integers). Returns nullopt for any other opcode.
std::optional<int> mma_bits(const std::string& opcode);
bool is_mma(const std::string& opcode);

// Summarises the audit in one line: "softmax: 31 registers, 32 B shared, no spills; ...".
std::string summary_of(const BinaryAudit& audit);

void fields(Fields& v, CodeShape& shape);
void fields(Fields& v, BinaryAudit& audit);

}  // namespace cutegen
