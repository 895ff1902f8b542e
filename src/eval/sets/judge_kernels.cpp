// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/judge_kernels.h"

namespace cutegen::eval {

Result<void> prepare_judge(const Context& ctx, GpuJudge& judge, const JudgeKernels& options) {
  CG_TRY(toolchain::ToolPaths paths,
         toolchain::find_tools({.python = options.python, .most_cuda = options.cuda_version}));
  toolchain::ToolchainOptions tools{.paths = std::move(paths)};
  tools.require_sandbox = options.require_sandbox;
  CG_TRY(auto toolchain, toolchain::Toolchain::open(std::move(tools)));
  return judge.prepare(ctx, *toolchain);
}

}  // namespace cutegen::eval
