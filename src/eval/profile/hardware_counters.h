// SPDX-License-Identifier: Apache-2.0
// HardwareCounters: runs a program in a runner of its own under ncu, to read a GPU's counters.
//
// Contract: count() starts ncu, which starts the sandboxed runner, runs the steps once and reads
// ncu's table. Both processes end before it returns, even if it exceeds its limit. The caller holds
// the GPU's slot. If ncu counts nothing, the Answer has the problem and the remedy; it is never the
// program's fault. The object remembers permanent problems (no ncu, no permission) and does not try
// again. If ncu fails in the sandbox, count() tries a weaker one, unless the sandbox is required;
// `grade` says which one it used. Returns an Error only if the Context ended.
//
// Example: CG_TRY(auto a, counters.count(ctx, request)); if (a.kernels.empty()) print(a.problem);
#pragma once

#include <optional>

#include "eval/runner/runner.h"
#include "toolchain/ncu.h"
#include "toolchain/ncu_report.h"

namespace cutegen::eval {

struct CountRequest {
  std::vector<std::string> ptx, code;  // modules, and cubins if there are any
  RunRequest run;
  std::vector<std::string> metrics;
  Nanoseconds limit = std::chrono::seconds(120);
  UniqueFd memory = {};  // the memory that `run` names, if nobody else owns it
};

class HardwareCounters {
 public:
  struct Answer {
    std::string tool;                           // "ncu 2025.3.1.0"
    std::vector<toolchain::NcuKernel> kernels;  // one entry per launch, in order
    std::string problem, remedy;                // why `kernels` is empty, and what to do
    sandbox::Grade grade;
  };
  HardwareCounters(DeviceName device, bool require_sandbox)
      : device_(std::move(device)), require_sandbox_(require_sandbox) {}
  Result<Answer> count(const Context& ctx, CountRequest request);
  // A kernel that stores a word, with one metric: tests whether counters can be read at all.
  static Result<CountRequest> probe_request();
  Result<Answer> probe(const Context& ctx);

 private:
  Result<Answer> once(const Context& ctx, const CountRequest& request,
                      toolchain::NcuRefusal& refusal);
  bool loosen(toolchain::NcuRefusal::Kind why);
  RunnerOptions runner_options(const CountRequest& request, int log) const;

  DeviceName device_;
  bool require_sandbox_;
  std::optional<toolchain::NcuTool> tool_;
  enum class Sandbox { full, administrator, none } sandbox_ = Sandbox::full;
  bool worked_ = false;               // ncu has worked in sandbox_
  int failures_ = 0;                  // number of failures before ncu first worked
  Answer refused_;                    // a permanent problem
  std::vector<std::string> unknown_;  // metrics that this GPU's ncu does not have
};

}  // namespace cutegen::eval
