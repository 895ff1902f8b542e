// SPDX-License-Identifier: Apache-2.0
// A hint to an evaluator: the next programs will begin with the same text as this one.
//
// Contract: an evaluator may ignore the hint, or prepare its compiler while it is idle
// (toolchain.h). An evaluator that ignored it, or was restarted, compiles such programs from the
// start. The call never waits for an evaluation.
//
// Example: expect_children(*evaluator, ctx, {best.program, 8, task.id});
#pragma once

#include "eval/api/client.h"
#include "toolchain/toolchain.h"

namespace cutegen::eval {

struct ChildrenToCome {
  KernelProgram parent;
  int count = 0;
  std::string task;  // id of an open task
};

// Implemented by clients that pass the hint on.
class TakesChildrenToCome {
 public:
  virtual ~TakesChildrenToCome() = default;
  virtual void expect_children(const Context& ctx, const ChildrenToCome& children) = 0;
};
void expect_children(EvaluatorClient& evaluator, const Context& ctx,
                     const ChildrenToCome& children);

// The compilations that the task's shapes need; empty if the program fails before it is compiled.
std::vector<toolchain::CompileRequest> compile_requests(const KernelProgram& program,
                                                        const Task& task,
                                                        const DeviceFacts& device);

}  // namespace cutegen::eval
