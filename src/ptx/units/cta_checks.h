// SPDX-License-Identifier: Apache-2.0
// CtaChecks: applies all checks (races, undefined values, wgmma) to an instruction or a memory
// access, in the right order.
//
// Contract: call copies() for each access to shared memory. Call functions other than copies() only
// if CtaState::hazards is set. Call stored() after the access, and all other functions before the
// access. A function that returns false has reported a `Finding` (a fault of the kernel).
//
// Example: if (cta.hazards && !checks.shared(access)) return false;
#pragma once

#include "ptx/units/race_checks.h"
#include "ptx/units/undefined_checks.h"
#include "ptx/units/wgmma_checks.h"

namespace cutegen::ptx {

class CtaChecks {
 public:
  explicit CtaChecks(CtaState& cta) : cta_(cta), undefined_(cta), races_(cta), wgmma_(cta) {}
  // Returns whether the caller must call follow() for instructions with Inst::watched.
  bool watches() const { return cta_.hazards && (cta_.hazards->undefined || wgmma_on()); }
  bool follow(const Warp& w, const Inst& in, uint32_t mask);
  bool shared(const WarpAccess& a);
  // Checks a read of shared memory by wgmma: a proxy fence must lie between earlier stores and the
  // read.
  bool visible(const WarpAccess& a);
  // Checks an access to the shared memory of another CTA of the cluster.
  bool remote(const WarpAccess& a, CtaState& owner);
  bool global(const WarpAccess& a, const Buffer& b);
  // WarpAccess::at has offsets in the local memory of the warp.
  void local(const WarpAccess& a);
  // Checks a store that MemoryUnit has executed. If the store is to shared memory, `b` is nullptr
  // and `zero` is the start of shared memory.
  bool stored(const WarpAccess& a, const std::byte* zero, const Buffer* b) {
    return a.sum.contiguous || a.in.op != Op::store || races_.lanes(a, zero, b);
  }
  bool copies(const WarpAccess& a) { return races_.copies(a); }
  WgmmaChecks& wgmma() { return wgmma_; }

 private:
  bool wgmma_on() const { return cta_.wgmma && cta_.races; }

  CtaState& cta_;
  UndefinedChecks undefined_;
  RaceChecks races_;
  WgmmaChecks wgmma_;
};

}  // namespace cutegen::ptx
