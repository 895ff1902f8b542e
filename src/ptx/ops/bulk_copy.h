// SPDX-License-Identifier: Apache-2.0
// BulkCopy: a copy in flight by the async proxy (cp.async.bulk, cp.reduce.async.bulk).
//
// Contract: a load writes shared memory, and an mbarrier counts its bytes. The simulator treats
// st.async and red.async as loads from registers. The CTA that receives a load keeps the load in
// its BulkCopies, even if another CTA of the cluster (`rank`) started the load. A store first reads
// shared memory, then writes global memory. A store belongs to the next group that its thread
// commits. A tensor copy moves the rows of a box (ptx/ops/tensor_map.h). A copy without a tensor
// map is a single row of bytes.
//
// Example: for (BulkCopy& c : copies.all()) if (c.mbarrier == at) deliver(c);
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "ptx/ops/tensor_map.h"

namespace cutegen::ptx {

// The value of Inst::sub for Op::bulk_copy. `deposit` is st.async or red.async, which the simulator
// treats as loads.
enum class BulkKind : uint8_t { load, store, reduce, prefetch, deposit };
enum class BulkSource : uint8_t { global, shared, registers };  // of a load

// Indices into Inst::list for Op::bulk_copy. An address takes three entries: the register, the
// offset, and whether the register has 64 bits. If Inst::e is 1, the address at kGlobal is in
// shared memory. The values of a `deposit` begin at kCoordinates; for a deposit, Inst::e is the
// number of values, and Inst::target the bytes per value. The im2col offsets of a tensor copy begin
// at kOffsets. For a tensor copy in im2col mode, Inst::target is 1.
namespace bulk {
inline constexpr size_t kShared = 0, kGlobal = 3, kMbarrier = 6, kSize = 9, kCoordinates = 10,
                        kCtaMask = 15, kOffsets = 16, kCount = 19;
}

// Maximum number of bulk copies in flight per CTA. If a CTA starts more copies, the simulator
// completes the oldest copy.
inline constexpr size_t kMostBulkCopies = 1024;

struct BulkCopy {
  BulkKind kind = BulkKind::load;
  BulkSource from = BulkSource::global;
  int32_t pc = 0;
  // Rank of the CTA that started the copy; -1 if that CTA also keeps the copy.
  int rank = -1;
  int warp = 0, lane = 0;
  uint64_t source = 0;    // source of a load from the shared memory of CTA `rank`
  uint64_t shared = 0;    // target of a load, or source of a store, in shared memory
  uint64_t mbarrier = 0;  // of a load
  uint32_t bytes = 0;     // number of bytes that the mbarrier counts
  uint32_t row = 0, pitch = 0;
  uint8_t swizzle = 0;
  bool fill_nan = false;
  bool reduces = false;         // the load is a reduction into shared memory
  AtomicOp op = AtomicOp::add;  // of a reduction
  AtomicType type = AtomicType::u32;
  uint32_t element = 1;  // bytes per element of a reduction
  uint64_t group = 0;
  bool has_read = false;  // for a store: `held` has its bytes
  std::vector<TensorRow> rows;
  std::vector<std::byte> held;

  // Calls f(from, to) for each range of shared memory that the copy accesses.
  template <class F>
  void each_part(F f) const;
  // Calls f(shared, row offset, bytes) for each piece of a row that is contiguous in shared memory.
  template <class F>
  void each_piece(const TensorRow& r, F f) const;
};

class BulkCopies {
 public:
  std::deque<BulkCopy>& all() { return copies_; }
  const std::deque<BulkCopy>& all() const { return copies_; }
  bool any() const { return !copies_.empty(); }
  bool full() const { return copies_.size() >= kMostBulkCopies; }
  uint64_t group_of(int thread) const { return committed_[size_t(thread)]; }
  void commit(int warp, uint32_t lanes);
  void begin(size_t threads) {
    copies_.clear();
    committed_.assign(threads, 0);
  }
  // Returns the first copy that will write or read one of the bytes [from, to), or nullptr.
  const BulkCopy* find(uint64_t from, uint64_t to) const;

 private:
  std::deque<BulkCopy> copies_;
  std::vector<uint64_t> committed_;  // number of committed groups, by thread
};

template <class F>
void BulkCopy::each_piece(const TensorRow& r, F f) const {
  if (swizzle == 0) {
    f(shared + r.shared, uint32_t{0}, row);
    return;
  }
  for (uint32_t at = 0; at < row; at += 16) f(swizzled(shared + r.shared + at, swizzle), at, 16u);
}

template <class F>
void BulkCopy::each_part(F f) const {
  if (rows.empty()) return;
  if (pitch == row) return f(shared, shared + uint64_t{pitch} * rows.size());
  for (const TensorRow& r : rows)
    each_piece(r, [&](uint64_t at, uint32_t, uint32_t n) { f(at, at + n); });
}

}  // namespace cutegen::ptx
