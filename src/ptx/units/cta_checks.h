// SPDX-License-Identifier: Apache-2.0
// CtaChecks: which checks an access meets, in which order.
//
// Contract: call all but copies() only if CtaState::hazards is set, before the access itself;
// stored() after it. A function that returns false has reported a finding.
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
  // Whether instructions that are Inst::watched need follow().
  bool watches() const { return cta_.hazards && (cta_.hazards->undefined || wgmma_on()); }
  bool follow(const Warp& w, const Inst& in, uint32_t mask);
  bool shared(const WarpAccess& a);
  // A read by wgmma: a proxy fence follows the stores before it.
  bool visible(const WarpAccess& a);
  // Of the shared memory of another CTA of the cluster.
  bool remote(const WarpAccess& a, CtaState& owner);
  bool global(const WarpAccess& a, const Buffer& b);
  // at: offsets in the local memory of the warp.
  void local(const WarpAccess& a);
  // The lanes of a store have written; b: nullptr if to shared memory, which begins at `zero`.
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
