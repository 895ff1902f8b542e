// SPDX-License-Identifier: Apache-2.0
#include "ptx/bulk/bulk_move.h"

#include <algorithm>
#include <cstring>

namespace cutegen::ptx {
namespace {

constexpr uint16_t kNaNFill = 0x7ff7;  // an H200 repeats these 16 bits

std::byte* host(const CtaState& cta, const TensorRow& r) {
  const Buffer* b = r.from == r.to ? nullptr : cta.job.memory.find(r.global);
  return b ? b->data + (r.global - b->base) : nullptr;
}

void reduce(const BulkCopy& c, std::byte* to, const std::byte* from, size_t n) {
  for (size_t i = 0; i < n; i += c.element) {
    uint64_t value = 0;
    std::memcpy(&value, from + i, c.element);
    atomic_apply(c.op, c.type, to + i, value, 0);
  }
}

constexpr uint32_t kPiece = 16;  // bytes that a swizzle keeps together

void put_row(CtaState& cta, const BulkCopy& c, const TensorRow& r, const std::byte* from) {
  if (c.swizzle != 0 && !c.reduces && r.from == 0 && r.to == c.row) {  // mostly
    const uint64_t at = c.shared + r.shared;
    std::byte* const shared = cta.shared.data();
    for (uint32_t i = 0; i < c.row; i += kPiece)
      std::memcpy(shared + swizzled(at + i, c.swizzle), from + i, kPiece);
    return;
  }
  c.each_piece(r, [&](uint64_t at, uint32_t offset, uint32_t n) {
    std::byte* to = cta.shared.data() + at;
    const uint32_t begin = std::max(r.from, offset), end = std::min(r.to, offset + n);
    if (begin > offset || end < offset + n) {
      const uint16_t fill = c.fill_nan ? kNaNFill : 0;
      for (uint32_t i = 0; i < n; i += 2) std::memcpy(to + i, &fill, 2);
    }
    if (begin >= end) return;
    if (!c.reduces && end - begin == 16)  // mostly, and of a constant size it is faster
      std::memcpy(to + (begin - offset), from + (begin - r.from), 16);
    else if (c.reduces)
      reduce(c, to + (begin - offset), from + (begin - r.from), end - begin);
    else
      std::memcpy(to + (begin - offset), from + (begin - r.from), end - begin);
  });
}

}  // namespace

void put_rows(CtaState& cta, const BulkCopy& c, const std::byte* from_shared) {
  ++cta.shared_version;
  for (const TensorRow& r : c.rows) {
    const std::byte* from = c.from == BulkSource::shared      ? from_shared + c.source
                            : c.from == BulkSource::registers ? c.held.data()
                                                              : host(cta, r);
    put_row(cta, c, r, from);
  }
}

void take_rows(const CtaState& cta, BulkCopy& c) {
  for (const TensorRow& r : c.rows) {
    c.each_piece(r, [&](uint64_t at, uint32_t offset, uint32_t n) {
      const uint32_t begin = std::max(r.from, offset), end = std::min(r.to, offset + n);
      const std::byte* from = cta.shared.data() + at;
      if (begin < end) c.held.insert(c.held.end(), from + (begin - offset), from + (end - offset));
    });
  }
}

void write_rows(const CtaState& cta, const BulkCopy& c) {
  const std::byte* from = c.held.data();
  for (const TensorRow& r : c.rows) {
    if (r.from == r.to) continue;
    const size_t n = r.to - r.from;
    if (c.kind == BulkKind::store)
      std::memcpy(host(cta, r), from, n);
    else
      reduce(c, host(cta, r), from, n);
    from += n;
  }
}

}  // namespace cutegen::ptx
