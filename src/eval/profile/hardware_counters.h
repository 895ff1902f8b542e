// SPDX-License-Identifier: Apache-2.0
// HardwareCounters: runs a program in a separate runner under ncu (Nsight Compute) to read a GPU's
// hardware counters.
//
// Contract: count() starts ncu, which starts the sandboxed runner, runs the steps once, and reads
// ncu's table. It returns when ncu and the runner have ended, even after a timeout. The caller must
// hold the GPU's lock (GpuSlot). If ncu returns no counters, the Answer has the problem and the
// remedy; the program is never at fault. After a permanent problem (no ncu, no permission), count()
// does not try again. If ncu fails in the sandbox, count() tries a weaker sandbox, unless the full
// sandbox is required; Answer::grade says which protection was in effect. The result is an Error
// only if the Context was cancelled or timed out.
//
// Example: CG_TRY(auto a, counters.count(ctx, request)); if (a.kernels.empty()) print(a.problem);
#pragma once

#include <optional>

#include "eval/runner/runner.h"
#include "toolchain/ncu.h"
#include "toolchain/ncu_report.h"

namespace cutegen::eval {

struct CountRequest {
  std::vector<std::string> ptx, code;  // PTX of each module, and the cubin if one exists
  RunRequest run;
  std::vector<std::string> metrics;
  Nanoseconds limit = std::chrono::seconds(120);
  UniqueFd memory = {};  // owner of the memory of `run`, if not the caller
};

class HardwareCounters {
 public:
  struct Answer {
    std::string tool;                           // "ncu 2025.3.1.0"
    std::vector<toolchain::NcuKernel> kernels;  // one entry per launch, in order
    std::string problem, remedy;                // if `kernels` is empty: the reason, and the remedy
    sandbox::Grade grade;
  };
  HardwareCounters(DeviceName device, bool require_sandbox)
      : device_(std::move(device)), require_sandbox_(require_sandbox) {}
  Result<Answer> count(const Context& ctx, CountRequest request);
  // Returns a request for one metric of a trivial kernel, to test whether ncu can read counters on
  // this machine.
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
  bool worked_ = false;               // whether ncu has worked in the sandbox `sandbox_`
  int failures_ = 0;                  // number of failures before ncu first worked
  Answer refused_;                    // every later answer after a permanent problem
  std::vector<std::string> unknown_;  // metrics that this GPU's ncu does not have
};

}  // namespace cutegen::eval
