// SPDX-License-Identifier: Apache-2.0
// BulkReader: reads the operands of a bulk copy instruction (cp.async.bulk, st.async, ...) for one
// lane, and fills the lane's `BulkCopy`.
//
// Contract: read() fills all fields of the BulkCopy except its address in shared memory, and checks
// the accesses to global memory. A function that returns false has reported a `Finding` (a fault of
// the kernel).
//
// Example: BulkCopy c; if (!reader.read(w, in, lane, c)) return false;
#pragma once

#include "ptx/bulk/bulk_checks.h"

namespace cutegen::ptx {

// Computes the address of a lane from three entries of Inst::list: the register, the offset, and
// whether the register has 64 bits.
uint64_t lane_address(const Warp& w, const int32_t* address, int lane);

class BulkReader {
 public:
  BulkReader(CtaState& cta, BulkChecks& checks) : cta_(cta), checks_(checks) {}
  bool read(Warp& w, const Inst& in, int lane, BulkCopy& c);
  // Returns the CTAs that a multicast writes, one bit per rank, or nullopt if the instruction is
  // not a multicast.
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
