// SPDX-License-Identifier: Apache-2.0
// WgmmaUnit: executes wgmma.mma_async, fence, commit_group, wait_group, and setmaxnreg.
//
// Contract: each warp computes its own 16 rows when the warp issues a wgmma.mma_async, so the
// warp's registers have the result at once. WgmmaChecks reports a program that uses the result
// before wait_group. At wait_group, a warp waits for the other three warps. After wait_group, any
// thread may reuse the shared memory that all four warps have read.
//
// Example: if (wgmma.execute(w, in, mask) == Meet::here) ++w.current.pc;
#pragma once

#include "ptx/cta/warp_scheduler.h"
#include "ptx/units/cta_checks.h"

namespace cutegen::ptx {

class WgmmaUnit {
 public:
  WgmmaUnit(CtaState& cta, WarpScheduler& scheduler, CtaChecks& checks)
      : cta_(cta), scheduler_(scheduler), checks_(checks) {}
  Meet execute(Warp& w, const Inst& in, uint32_t mask);
  // Call ended() when the warp has ended. Returns false after it has reported a `Finding` (a fault
  // of the kernel): other warps of the warpgroup execute wgmma without the ended warp.
  bool ended(const Warp& w);

 private:
  struct Operand;  // in shared memory
  bool multiply(Warp& w, const Inst& in, const WarpgroupSteps::Step& step);
  void wait(Warp& w, const Inst& in);
  bool in_step(const Warp& w, const WarpgroupSteps::Step& step);
  bool uniform(const Warp& w, int32_t slot, const char* what);
  const uint32_t* checked(Warp& w, Operand& operand);
  bool check_reads(Warp& w, const SharedTile& tile, const uint32_t* chunks);
  void report(const Warp& w, const char* kind, std::string message);

  CtaState& cta_;
  WarpScheduler& scheduler_;
  CtaChecks& checks_;
};

}  // namespace cutegen::ptx
