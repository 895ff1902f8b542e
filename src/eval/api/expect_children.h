// SPDX-License-Identifier: Apache-2.0
// A hint to an evaluator: programs that begin like the best one will follow.
//
// Contract: the hint may be ignored. An evaluator that uses it prepares its compiler while it is
// idle
// (toolchain.h). Other evaluators, and restarted ones, compile such programs from the start. Never
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

// The interface of a client that passes the hint on.
class TakesChildrenToCome {
 public:
  virtual ~TakesChildrenToCome() = default;
  virtual void expect_children(const Context& ctx, const ChildrenToCome& children) = 0;
};
void expect_children(EvaluatorClient& evaluator, const Context& ctx,
                     const ChildrenToCome& children);

// The compilations that the shapes of a task need; empty if the program does not reach the
// compiler.
std::vector<toolchain::CompileRequest> compile_requests(const KernelProgram& program,
                                                        const Task& task,
                                                        const DeviceFacts& device);

}  // namespace cutegen::eval
