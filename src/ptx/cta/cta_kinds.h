// SPDX-License-Identifier: Apache-2.0
// CtaKinds: groups the CTAs of a grid by their control flow, without running them.
//
// Contract: two CTAs have the same kind if each decision (a branch, comparison, ...; see
// ptx/cta/cta_slice.h) has the same outcomes in both CTAs. find() evaluates the decisions of all
// CTAs and threads. If all threads would take too many steps, find() evaluates only the first and
// the last thread along each axis of a CTA, which is enough for comparisons of indices. If even
// these threads would take too many steps, find() gives up. Two CTAs of the same kind may still
// differ in control flow that depends on values from memory or from other threads.
//
// Example: CtaKinds kinds = CtaKinds::find(job);
//          for (int64_t cta : kinds.members_of_kinds_without(ran, seed)) { /* run it, too */ }
#pragma once

#include <cstdint>
#include <vector>

#include "ptx/cta/job.h"

namespace cutegen::ptx {

class CtaKinds {
 public:
  static CtaKinds find(const Job& job);

  // Returns false if find() gave up, because the grid is too large or the kernel's loops are
  // too long. The kinds are then unknown.
  bool known() const { return known_; }
  int64_t count() const { return int64_t(sizes_.size()); }
  // Returns one random CTA of each kind that does not occur among the CTAs `ran`. The rarest kinds
  // come first.
  std::vector<int64_t> members_of_kinds_without(const std::vector<int64_t>& ran,
                                                uint64_t seed) const;
  // Returns the CTAs of each kind. Returns no lists if known() is false or if no decision depends
  // on the CTA.
  std::vector<std::vector<int64_t>> members() const;

 private:
  bool known_ = true;
  std::vector<uint32_t> kind_of_;     // by CTA; empty if members() returns no lists
  std::vector<int64_t> sizes_ = {0};  // number of CTAs of each kind
};

}  // namespace cutegen::ptx
