// SPDX-License-Identifier: Apache-2.0
// A hint for the evaluator: the next programs will be edits of a given program, so their sources
// begin with the same text.
//
// Contract: an evaluator may compile the common text in advance while it is idle (toolchain.h). The
// evaluator may also ignore the hint, or forget the hint in a restart. It then compiles the
// programs from the beginning. A call never waits for an evaluation.
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

// The interface of clients that send the hint of expect_children() to their evaluator.
class TakesChildrenToCome {
 public:
  virtual ~TakesChildrenToCome() = default;
  virtual void expect_children(const Context& ctx, const ChildrenToCome& children) = 0;
};
void expect_children(EvaluatorClient& evaluator, const Context& ctx,
                     const ChildrenToCome& children);

// Returns the compilations that the program needs for all of the task's shapes, or an empty list if
// the program fails before compilation.
std::vector<toolchain::CompileRequest> compile_requests(const KernelProgram& program,
                                                        const Task& task,
                                                        const DeviceFacts& device);

}  // namespace cutegen::eval
