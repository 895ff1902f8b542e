// SPDX-License-Identifier: Apache-2.0
#include "ptx/bulk/bulk_reader.h"

#include <fmt/format.h>

#include <cstring>

#include "ptx/ops/warp_ops.h"

namespace cutegen::ptx {
namespace {

uint32_t lane_word(const Warp& w, int32_t slot, int lane) {
  return words_at(w.registers, slot)[lane];
}

// Makes the whole copy one row of bytes.
void one_row(BulkCopy& c, uint64_t global, uint32_t size) {
  c.row = c.pitch = c.bytes = size;
  if (size > 0) c.rows.push_back({.shared = 0, .global = global, .from = 0, .to = size});
}

}  // namespace

uint64_t lane_address(const Warp& w, const int32_t* address, int lane) {
  uint64_t v = 0;
  const size_t size = address[2] ? 8 : 4;
  std::memcpy(&v, w.registers + address[0] + size_t(lane) * size, size);
  v += uint64_t(int64_t{address[1]});
  return address[2] ? v : v & 0xffffffff;
}

std::optional<uint16_t> BulkReader::ctas(const Warp& w, const Inst& in, int lane) {
  const int32_t slot = in.list[bulk::kCtaMask];
  if (slot < 0) return std::nullopt;
  uint16_t v = 0;
  std::memcpy(&v, w.registers + slot + lane * 2, 2);
  return v;
}

bool BulkReader::read(Warp& w, const Inst& in, int lane, BulkCopy& c) {
  c.kind = BulkKind(in.sub), c.pc = w.current.pc, c.warp = w.index, c.lane = lane;
  if (in.b >= 0) c.op = AtomicOp(in.b);
  if (c.kind == BulkKind::deposit) {
    deposit(w, in, lane, c);
    return true;
  }
  if (in.vec > 0) return tensor(w, in, lane, c);
  if (in.c >= 0) c.type = AtomicType(in.c), c.element = bytes_of(c.type);
  return in.e == 1 ? shared_bytes(w, in, lane, c) : bytes(w, in, lane, c);
}

bool BulkReader::tensor(Warp& w, const Inst& in, int lane, BulkCopy& c) {
  const auto map = checks_.map_at(w, lane, lane_address(w, in.list + bulk::kGlobal, lane));
  if (!map) return false;
  TensorPlace at;
  for (size_t i = 0; i < in.vec; ++i)
    at[i] = int32_t(lane_word(w, in.list[bulk::kCoordinates + i], lane));
  TensorOffsets offsets{};
  for (size_t i = 0; i < offsets.size() && in.list[bulk::kOffsets + i] >= 0; ++i)
    std::memcpy(&offsets[i], w.registers + in.list[bulk::kOffsets + i] + lane * 2, 2);
  if (!checks_.tensor(w, in, lane, *map, at, offsets)) return false;
  c.row = map->row_bytes(), c.pitch = map->pitch(), c.swizzle = map->swizzle;
  c.bytes = uint32_t(map->bytes()), c.fill_nan = map->fill_nan, c.element = map->element();
  if (c.kind == BulkKind::reduce) c.type = *atomic_type_of(map->type);
  c.rows = rows_of(*map, at, c.kind == BulkKind::store || c.kind == BulkKind::reduce, offsets);
  return checks_.global(w, lane, c);
}

bool BulkReader::bytes(Warp& w, const Inst& in, int lane, BulkCopy& c) {
  const uint64_t global = lane_address(w, in.list + bulk::kGlobal, lane);
  const uint32_t size = lane_word(w, in.list[bulk::kSize], lane);
  if (!checks_.bytes(w, lane, global, size)) return false;
  one_row(c, global, size);
  return checks_.global(w, lane, c);
}

// A copy from this CTA's shared memory to the shared memory of another CTA.
bool BulkReader::shared_bytes(Warp& w, const Inst& in, int lane, BulkCopy& c) {
  const uint32_t size = lane_word(w, in.list[bulk::kSize], lane);
  c.from = BulkSource::shared, c.reduces = in.b >= 0;
  c.source = lane_address(w, in.list + bulk::kGlobal, lane);
  if (c.source >> kRankShift == cta_.rank + 1) c.source &= kSharedOfCta - 1;
  if (!checks_.bytes(w, lane, 0, size)) return false;
  one_row(c, 0, size);
  return true;
}

void BulkReader::deposit(const Warp& w, const Inst& in, int lane, BulkCopy& c) {
  c.kind = BulkKind::load, c.from = BulkSource::registers, c.reduces = in.b >= 0;
  if (in.c >= 0) c.type = AtomicType(in.c);
  const size_t size = size_t(in.target), count = size_t(in.e);
  c.element = uint32_t(size);
  c.held.resize(size * count);
  for (size_t i = 0; i < count; ++i)
    std::memcpy(c.held.data() + i * size,
                w.registers + in.list[bulk::kCoordinates + i] + size_t(lane) * size, size);
  one_row(c, 0, uint32_t(c.held.size()));
}

}  // namespace cutegen::ptx
