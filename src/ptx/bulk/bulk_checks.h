// SPDX-License-Identifier: Apache-2.0
// BulkChecks: checks the addresses of a bulk copy (cp.async.bulk), and its accesses to global
// memory.
//
// Contract: a function that returns false or nullopt has reported a `Finding` (a fault of the
// kernel) for the lane at the warp's current instruction. global() also counts the traffic. After a
// call of global(), host() returns the host address of a row of the copy.
//
// Example: if (!checks.global(w, lane, copy)) return false;
#pragma once

#include <optional>
#include <string>

#include "ptx/cta/cta_state.h"
#include "ptx/cta/warp_access.h"

namespace cutegen::ptx {

uint32_t bytes_of(AtomicType type);  // per element

class BulkChecks {
 public:
  explicit BulkChecks(CtaState& cta) : cta_(cta) {}
  // Reads the tensor map at a generic address.
  std::optional<TensorMap> map_at(const Warp& w, int lane, uint64_t address);
  bool tensor(const Warp& w, const Inst& in, int lane, const TensorMap& map,
              const TensorPlace& place, const TensorOffsets& offsets);
  // Checks the global memory accesses of a copy without a tensor map.
  bool bytes(const Warp& w, int lane, uint64_t global, uint32_t size);
  // Checks that all rows of the copy lie in buffers that the copy may access, and that no other
  // access races with the copy.
  bool global(Warp& w, int lane, const BulkCopy& c);
  void fail(const Warp& w, int lane, const std::string& what);
  std::byte* host(const TensorRow& r);

 private:
  const Buffer* buffer(const Warp& w, int lane, const BulkCopy& c, uint64_t at, uint64_t bytes);
  bool row(Warp& w, int lane, const BulkCopy& c, const TensorRow& r);
  bool ordered(Warp& w, int lane, const BulkCopy& c, const Buffer& b, uint64_t at, uint32_t n);

  bool fenced(const Warp& w, int lane, const Buffer& b, const BufferShadow& shadow, uint64_t at,
              uint32_t n);

  CtaState& cta_;
  const Buffer* last_ = nullptr;
};

}  // namespace cutegen::ptx
