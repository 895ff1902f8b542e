// SPDX-License-Identifier: Apache-2.0
// BulkShared: checks the accesses of a bulk copy (cp.async.bulk) to shared memory.
//
// Contract: `owner` is the CTA of the cluster whose shared memory a load writes. A function that
// returns false has reported a `Finding` (a fault of the kernel) for the executing CTA at the
// warp's current instruction.
//
// Example: if (!checks.target(w, owner, copy, span, 16)) return false;
#pragma once

#include "ptx/cta/cta_state.h"

namespace cutegen::ptx {

class BulkShared {
 public:
  explicit BulkShared(CtaState& cta) : cta_(cta) {}
  // Checks the target of a load or the source of a store: bounds, alignment, and earlier accesses
  // that are not ordered before the copy.
  bool target(const Warp& w, const CtaState& owner, const BulkCopy& c, uint64_t span,
              uint64_t align);
  // Checks the source of a load from this CTA's shared memory.
  bool source(const Warp& w, const BulkCopy& c);
  // Call delivered() when a load has arrived in this CTA. Call released() when a store has read
  // this CTA's shared memory.
  void delivered(const BulkCopy& c);
  void released(const BulkCopy& c);
  // Call source_read() when a copy from the shared memory of the CTA `issuer` to this CTA has read
  // its source.
  void source_read(const BulkCopy& c, CtaState& issuer);
  // Reports that this CTA ends although a load that writes or reads its shared memory has not
  // arrived yet.
  void report_left(const BulkCopy& c, const CtaState& owner);

 private:
  // A range of shared memory that a bulk copy writes or reads.
  struct Part {
    const CtaState& owner;
    bool written;
    uint64_t from, to;
  };
  bool placed(const Warp& w, const BulkCopy& c, uint64_t at, uint64_t span, uint64_t align);
  bool free_of_copies(const Warp& w, const BulkCopy& c, const Part& p);
  bool raced(const Warp& w, const BulkCopy& c, const Part& p);
  bool fenced(const Warp& w, const BulkCopy& c, const Part& p);

  CtaState& cta_;
};

}  // namespace cutegen::ptx
