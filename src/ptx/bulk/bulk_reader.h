// SPDX-License-Identifier: Apache-2.0
// BulkReader: makes one lane's BulkCopy from the operands of its instruction.
//
// Contract: read() fills all fields except the address in shared memory, and checks the accesses to
// global memory. A function that returns false has reported a finding.
//
// Example: BulkCopy c; if (!reader.read(w, in, lane, c)) return false;
#pragma once

#include "ptx/bulk/bulk_checks.h"

namespace cutegen::ptx {

// Computes a lane's address from three entries of Inst::list: register slot, offset, and whether
// the slot has 64 bits.
uint64_t lane_address(const Warp& w, const int32_t* address, int lane);

class BulkReader {
 public:
  BulkReader(CtaState& cta, BulkChecks& checks) : cta_(cta), checks_(checks) {}
  bool read(Warp& w, const Inst& in, int lane, BulkCopy& c);
  // The CTAs of a multicast, one bit per rank; nullopt: the instruction is not a multicast.
  static std::optional<uint16_t> ctas(const Warp& w, const Inst& in, int lane);

 private:
  bool tensor(Warp& w, const Inst& in, int lane, BulkCopy& c);
  bool bytes(Warp& w, const Inst& in, int lane, BulkCopy& c);
  bool shared_bytes(Warp& w, const Inst& in, int lane, BulkCopy& c);
  void deposit(const Warp& w, const Inst& in, int lane, BulkCopy& c);

  CtaState& cta_;
  BulkChecks& checks_;
};

}  // namespace cutegen::ptx
