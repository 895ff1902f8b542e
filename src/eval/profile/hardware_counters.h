// SPDX-License-Identifier: Apache-2.0
// HardwareCounters: reads a GPU's counters of a program's launches with ncu around its own runner.
//
// Contract: count() starts ncu with the sandboxed runner below it, runs the steps once and reads
// ncu's table. Both processes end with the call, even if it exceeds its limit. The caller holds the
// GPU's slot. If nothing could be counted, the Answer has the problem and the remedy; it is never
// the program's fault. Permanent problems (no ncu, no permission) are remembered and not tried
// again. If ncu fails in the sandbox, it runs once more with less of it, unless the sandbox is
// required; `grade` says which. Returns an Error only if the Context ended.
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
  UniqueFd memory = {};  // memory that `run` names, if no one else owns it
};

class HardwareCounters {
 public:
  struct Answer {
    std::string tool;                           // "ncu 2025.3.1.0"
    std::vector<toolchain::NcuKernel> kernels;  // one a launch, in their order
    std::string problem, remedy;                // if there are none
    sandbox::Grade grade;
  };
  HardwareCounters(DeviceName device, bool require_sandbox)
      : device_(std::move(device)), require_sandbox_(require_sandbox) {}
  Result<Answer> count(const Context& ctx, CountRequest request);
  // One metric of a kernel that stores a word: whether counters can be read here at all.
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
  bool worked_ = false;               // as sandbox_ says
  int failures_ = 0;                  // before it ever worked
  Answer refused_;                    // what cannot change
  std::vector<std::string> unknown_;  // metrics that this GPU's ncu does not have
};

}  // namespace cutegen::eval
