// SPDX-License-Identifier: Apache-2.0
#include "eval/runner/arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/hash.h"

namespace cutegen::eval {
namespace {

constexpr size_t kAlign = 256;
constexpr uint64_t kMostGap = 16;  // in units of kAlign

// SplitMix64: a fast generator. Its seed is secret, so programs cannot predict the guards.
struct Stream {
  uint64_t state;
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
};

uint64_t secret() {
  uint64_t value = 0;
  random_bytes(std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

size_t round_up(size_t bytes) {
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

// Calls f(begin, end) for every range of memory outside the buffers.
template <class F>
void each_gap(const std::vector<RunBuffer>& buffers, size_t total, F f) {
  size_t at = 0;
  for (const RunBuffer& b : buffers) {
    f(at, size_t(b.offset));
    at = size_t(b.offset + b.bytes);
  }
  f(at, total);
}

}  // namespace

// Four 16-bit lanes. 0x7ff1..0x7fff is a NaN as f16, bf16 and as the upper part of f32 and f64;
// 0x7b00..0x7bff is finite and huge in all of them. The sign is random too.
Poison draw_poison(PoisonKind kind) {
  Stream random{secret()};
  Poison out;
  for (size_t lane = 0; lane < 4; ++lane) {
    uint64_t r = random.next();
    auto bits = uint16_t(kind == PoisonKind::nan ? 0x7ff1 + r % 15 : 0x7b00 + r % 256);
    if (r >> 63) bits |= 0x8000;
    std::memcpy(out.data() + lane * 2, &bits, 2);
  }
  return out;
}

Result<Arena> Arena::make(std::vector<ArenaItem> items, Fill fill) {
  Arena a;
  Stream random{secret()};
  a.guard_seed_ = secret();
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.next() % i]);
  auto gap = [&] { return kAlign * (1 + random.next() % kMostGap); };
  size_t total = gap();
  for (const ArenaItem& item : items) {
    const auto content = item.kind == ArenaItem::Kind::output    ? device::BufferContent::output
                         : item.kind == ArenaItem::Kind::scratch ? device::BufferContent::scratch
                                                                 : device::BufferContent::data;
    a.buffers_.push_back({.name = item.name,
                          .bytes = int64_t(item.bytes),
                          .offset = int64_t(total),
                          .read_only = item.kind == ArenaItem::Kind::input,
                          .content = content});
    total = round_up(total + item.bytes) + gap();
  }
  a.items_ = std::move(items);
  a.poison_ = draw_poison(fill);
  CG_TRY(a.memory_, make_memfd("run", total));
  CG_TRY(a.mapping_, Mapping::map(a.memory_.get(), total, true));
  for (size_t i = 0; i < a.items_.size(); ++i) {
    const ArenaItem& item = a.items_[i];
    std::byte* at = a.mapping_.data() + a.buffers_[i].offset;
    if (item.kind == ArenaItem::Kind::input || item.kind == ArenaItem::Kind::state) {
      CG_ASSERT(item.content.size() == item.bytes);
      if (item.bytes) std::memcpy(at, item.content.data(), item.bytes);
    } else if (item.kind != ArenaItem::Kind::zeroed) {
      for (size_t b = 0; b < item.bytes; b += a.poison_.size())
        std::memcpy(at + b, a.poison_.data(), std::min(a.poison_.size(), item.bytes - b));
    }
  }
  a.write_guards();
  return a;
}

void Arena::write_guards() {
  Stream random{guard_seed_};
  each_gap(buffers_, mapping_.size(), [&](size_t begin, size_t end) {
    for (size_t at = begin; at < end; at += 8) {
      uint64_t value = random.next();
      std::memcpy(mapping_.data() + at, &value, std::min<size_t>(8, end - at));
    }
  });
}

std::span<const std::byte> Arena::bytes_of(const std::string& name) const {
  for (const RunBuffer& b : buffers_)
    if (b.name == name) return {mapping_.data() + b.offset, size_t(b.bytes)};
  CG_ASSERT(false);
}

std::vector<std::string> Arena::findings() const {
  std::vector<std::string> out;
  Stream random{guard_seed_};
  size_t gap = 0;
  each_gap(buffers_, mapping_.size(), [&](size_t begin, size_t end) {
    bool intact = true;
    for (size_t at = begin; at < end; at += 8) {
      uint64_t value = random.next();
      intact =
          intact && std::memcmp(mapping_.data() + at, &value, std::min<size_t>(8, end - at)) == 0;
    }
    if (!intact)
      out.push_back(gap == 0
                        ? fmt::format("memory before '{}' was written", buffers_[0].name)
                        : fmt::format("memory behind '{}' was written", buffers_[gap - 1].name));
    ++gap;
  });
  for (size_t i = 0; i < items_.size(); ++i) {
    const ArenaItem& item = items_[i];
    if (item.kind != ArenaItem::Kind::input || item.bytes == 0) continue;
    const std::byte* now = mapping_.data() + buffers_[i].offset;
    auto differs = std::mismatch(now, now + item.bytes, item.content.begin()).first - now;
    if (size_t(differs) < item.bytes)
      out.push_back(
          fmt::format("the input '{}' was changed, first at byte {}", item.name, differs));
  }
  return out;
}

}  // namespace cutegen::eval
