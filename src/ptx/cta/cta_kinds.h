// SPDX-License-Identifier: Apache-2.0
// CtaKinds: finds the CTAs of a grid whose control flow differs from the others', without running
// them.
//
// Contract: two CTAs are of the same kind if each decision (ptx/cta/cta_slice.h) has the same
// outcomes in both. find() evaluates the decisions of all CTAs and threads. If these are too many,
// it evaluates the first and the last thread along each axis, which suffices for comparisons of
// indices. A CTA of the same kind may still differ by values that come from memory or from another
// thread.
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

  // False: the grid is too large, so find() looked at no CTA.
  bool known() const { return known_; }
  int64_t count() const { return int64_t(sizes_.size()); }
  // One random CTA of each kind that no CTA of `ran` has, rarest kinds first.
  std::vector<int64_t> members_of_kinds_without(const std::vector<int64_t>& ran,
                                                uint64_t seed) const;

 private:
  bool known_ = true;
  std::vector<uint32_t> kind_of_;     // by CTA; empty: all CTAs are of one kind
  std::vector<int64_t> sizes_ = {0};  // CTAs of each kind
};

}  // namespace cutegen::ptx
