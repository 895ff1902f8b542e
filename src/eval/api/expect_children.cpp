// SPDX-License-Identifier: Apache-2.0
#include "eval/api/expect_children.h"

#include <set>

namespace cutegen::eval {

void expect_children(EvaluatorClient& evaluator, const Context& ctx,
                     const ChildrenToCome& children) {
  if (auto* takes = dynamic_cast<TakesChildrenToCome*>(&evaluator))
    takes->expect_children(ctx, children);
}

std::vector<toolchain::CompileRequest> compile_requests(const KernelProgram& program,
                                                        const Task& task,
                                                        const DeviceFacts& device) {
  std::vector<toolchain::CompileRequest> out;
  std::set<std::string> seen;
  auto arch = choose_arch(program.plan, device);
  if (!arch) return out;
  for (const ShapeCase& shape : task.shapes) {
    auto builds = module_builds(program, task, shape, device);
    if (!builds) continue;  // the plan rejects this shape
    for (const ModuleBuild& build : *builds) {
      auto source = program.sources.find(build.source);
      if (source != program.sources.end() && seen.insert(build.key()).second)
        out.push_back({.name = build.source,
                       .source = source->second,
                       .defines = build.defines,
                       .arch = *arch});
    }
  }
  return out;
}

}  // namespace cutegen::eval
