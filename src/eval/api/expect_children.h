// SPDX-License-Identifier: Apache-2.0
// What an evaluator may be told ahead: programs that begin like the best one are to come.
//
// Contract: advice. An evaluator that can use it prepares its compiler while nothing is evaluated
// (toolchain.h); any other, and one that is started anew, compiles them from their beginning. Never
// waits for an evaluation.
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

// What a client has that passes it on.
class TakesChildrenToCome {
 public:
  virtual ~TakesChildrenToCome() = default;
  virtual void expect_children(const Context& ctx, const ChildrenToCome& children) = 0;
};
void expect_children(EvaluatorClient& evaluator, const Context& ctx,
                     const ChildrenToCome& children);

// What the compiler is asked for by all shapes of a task; none where the program does not come so
// far.
std::vector<toolchain::CompileRequest> compile_requests(const KernelProgram& program,
                                                        const Task& task,
                                                        const DeviceFacts& device);

}  // namespace cutegen::eval
