// SPDX-License-Identifier: Apache-2.0
// The audit of a program: checks the machine code of every module before any module runs.
//
// Contract: the evaluation ends if ptxas rejects the PTX, or if the machine code breaks a rule or
// uses an unavailable feature. The rules forbid state in global variables and launches from the
// device. If comparing results cannot detect lower precision than the task's math mode (fp32, tf32,
// bf16 or fp16), the rules also forbid instructions of lower precision. Suspicious code that breaks
// no rule only appears in `marks`. Without ptxas, the result is `skipped`, with the reason.
//
// Example: CG_TRY(AuditOutcome a, audit_binaries(ctx, services, task, prepared.images()));
#pragma once

#include <vector>

#include "eval/rungs/rung.h"

namespace cutegen::eval {

struct AuditOutcome {
  RungEnd end;
  RungResult result = RungResult::passed;
  BinaryAudit audit;
  std::vector<std::string> marks;
  std::vector<std::string> code;  // the cubin of each image; empty without a cubin
};

Result<AuditOutcome> audit_binaries(const Context& ctx, const Services& services, const Task& task,
                                    const std::vector<KernelImage>& images);
// Performs the audit in two steps: assemble() finds register counts, global variables and device
// calls; list() reads the disassembly. If comparing results can detect lower precision, list()
// cannot fail the program, and the later checks may run at the same time.
class BinaryAuditor {
 public:
  BinaryAuditor(const Services& services, const Task& task, const std::vector<KernelImage>& images);
  Result<AuditOutcome> assemble(const Context& ctx);
  Result<AuditOutcome> list(const Context& ctx);

 private:
  AuditOutcome judged() const;
  const Services& services_;
  const Task& task_;
  std::vector<std::string> modules_, ptx_;
  std::string arch_;
  std::vector<toolchain::AssemblyReport> reports_;
};
// Applies the rules to an audit. proven: on this task, lower-precision solutions fail the
// comparison with the float64 result, so a program that passes is as precise as the math mode
// requires.
AuditOutcome judge_audit(BinaryAudit audit, MathMode mode, bool proven);
// Applies the audit's rules, and compares instructions with the math mode of each output. An
// instruction that the math mode of at least one output permits never fails the program, but may
// appear in `marks`.
AuditOutcome judge_audit(BinaryAudit audit, const Task& task, bool proven);
// Returns the registers per thread of a kernel, or 0 if unknown.
int registers_of(const BinaryAudit& audit, const std::string& module, const std::string& kernel);
// Returns the instruction counts of the kernel's machine code, or nullopt if the audit has none.
std::optional<CodeShape> code_of(const BinaryAudit& audit, const std::string& module,
                                 const std::string& kernel);

}  // namespace cutegen::eval
