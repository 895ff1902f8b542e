// SPDX-License-Identifier: Apache-2.0
// The rung audit: reads the machine code of every module before anything runs.
//
// Contract: fills `audit` with all modules of a program. The rung ends the ladder if the machine
// code breaks a rule (state in global variables, launches from the device, lower precision than the
// math mode if the inputs cannot show it) or uses something that is not available, or if the
// assembler rejects the PTX. Suspicious code that breaks no rule goes to `marks`. Without ptxas,
// the rung is skipped and gives the reason.
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
  std::vector<std::string> code;  // the cubin of each image, or an empty text
};

Result<AuditOutcome> audit_binaries(const Context& ctx, const Services& services, const Task& task,
                                    const std::vector<KernelImage>& images);
// The audit in two steps. assemble() finds registers, state and calls. list() reads the machine
// code. If comparing values proves that a program keeps to the math mode, list() cannot end the
// ladder, so it may run at the same time as later rungs.
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
// Applies the rules to an audit. proven: lower-precision solutions fail on this task, so comparing
// values proves that a program keeps to the math mode.
AuditOutcome judge_audit(BinaryAudit audit, MathMode mode, bool proven);
// Takes the math mode of each output. An instruction that one of the modes permits gives at most a
// mark.
AuditOutcome judge_audit(BinaryAudit audit, const Task& task, bool proven);
// Registers per thread; 0 if unknown.
int registers_of(const BinaryAudit& audit, const std::string& module, const std::string& kernel);

}  // namespace cutegen::eval
