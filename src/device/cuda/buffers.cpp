// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/buffers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/text.h"

namespace cutegen::device::cuda {
namespace {

constexpr size_t kAlign = 256;                     // bytes, as CUDA's allocators guarantee
constexpr size_t kGuardWindow = size_t{64} << 10;  // bytes checked on each side

std::string copy_name(const std::string& name, int copy) {
  return copy == 0 ? name : name + "#" + std::to_string(copy);
}

unsigned char random_byte() {
  std::byte b{};
  random_bytes(std::span(&b, 1));
  return uint8_t(b);
}

}  // namespace

void Buffers::clear() {
  for (const auto& [name, b] : placed_)
    if (b.shared)
      memory_.drop(b.block);
    else
      memory_.give_back(b.block);
  placed_.clear();
}

Result<void> Buffers::write_guards(const PlacedBuffer& b, Handle stream) {
  const size_t before = b.at - b.block.mapped;
  const size_t behind = b.block.mapped_bytes - before - b.bytes;
  Status s = kOk;
  if (before) s = driver_.set8(b.block.mapped, b.guard, before, stream);
  if (behind && s == kOk) s = driver_.set8(b.at + b.bytes, b.guard, behind, stream);
  return driver_.check(s, "writing the guards of a buffer");
}

// Copies the pattern once, then doubles the filled part with each copy.
Result<void> Buffers::fill_in(const PlacedBuffer& b, std::span<const std::byte> pattern,
                              Handle stream) {
  size_t done = std::min(pattern.size(), b.bytes);
  CG_CHECK(driver_.check(driver_.to_device(b.at, pattern.data(), done), "copying to the GPU"));
  while (done < b.bytes) {
    const size_t step = std::min(done, b.bytes - done);
    CG_CHECK(driver_.check(driver_.copy(b.at + done, b.at, step, stream), "filling a buffer"));
    done += step;
  }
  return {};
}

Result<void> Buffers::place_shared(const BufferBinding& given) {
  const SharedPart& part = given.shared;
  PlacedBuffer b;
  b.bytes = given.bytes.size();
  b.read_only = given.read_only;
  b.copies = std::max(given.copies, 1);
  b.shared = true;
  b.initial = given.initial;
  if (placed_.contains(given.name))
    return user_error("buffer " + sanitize(given.name, 80) + " is bound twice", {},
                      "bind each name once");
  if (part.offset > part.mapped_bytes || b.bytes > part.mapped_bytes - part.offset)
    return world_error("a shared buffer lies outside its memory");
  CG_TRY(b.block, memory_.import(part.descriptor, part.mapped_bytes, given.read_only));
  b.at = b.block.mapped + part.offset;
  placed_.emplace(given.name, std::move(b));
  return {};
}

Result<void> Buffers::bind(const std::vector<BufferBinding>& list, Handle stream) {
  clear();
  if (list.empty()) return {};
  at_the_end_ = !at_the_end_;
  run_ = 0;
  for (const BufferBinding& given : list) {
    if (given.shared.descriptor >= 0) {
      CG_CHECK(place_shared(given));
      continue;
    }
    const int copies = given.pattern.empty() ? 1 : std::max(given.copies, 1);
    for (int i = 0; i < copies; ++i) CG_CHECK(place(given, copy_name(given.name, i), stream));
  }
  return {};
}

Result<void> Buffers::place(const BufferBinding& given, const std::string& name, Handle stream) {
  PlacedBuffer b;
  b.bytes = given.bytes.size();
  b.read_only = given.read_only;
  b.guard = random_byte();
  b.copies = std::max(given.copies, 1);
  if (placed_.contains(name))
    return user_error("buffer " + sanitize(name, 80) + " is bound twice", {},
                      "bind each name once");
  CG_TRY(b.block, memory_.take(b.bytes));
  b.at = b.block.mapped;
  if (at_the_end_) b.at += b.block.mapped_bytes - (b.bytes + kAlign - 1) / kAlign * kAlign;
  if (given.pattern.empty()) b.host = given.bytes;
  b.pattern.assign(given.pattern.begin(), given.pattern.end());
  b.is_state = given.content == BufferContent::data && !given.read_only && !given.pattern.empty();
  PlacedBuffer& placed = placed_.emplace(name, std::move(b)).first->second;
  CG_CHECK(write_guards(placed, stream));
  if (placed.bytes == 0) return {};
  if (!placed.pattern.empty()) return fill_in(placed, placed.pattern, stream);
  return driver_.check(driver_.to_device(placed.at, placed.host.data(), placed.bytes),
                       "copying to the GPU");
}

Result<void> Buffers::refill(const std::string& name, Handle stream) {
  CG_TRY(const PlacedBuffer* b, find(name, "refill"));
  if (!b->initial.empty()) return restore(name, stream);
  if (b->pattern.empty() || b->read_only || b->bytes == 0) return {};
  return fill_in(*b, b->pattern, stream);
}

Result<void> Buffers::restore(const std::string& name, Handle stream) {
  CG_TRY(const PlacedBuffer* b, find(name, "restore"));
  if (b->bytes == 0) return {};
  if (b->is_state) return fill_in(*b, b->pattern, stream);
  if (b->initial.empty()) return {};
  const auto from = placed_.find(b->initial);
  if (from == placed_.end() || from->second.bytes != b->bytes || b->read_only)
    return world_error("a mutated tensor has no initial buffer of its size");
  return driver_.check(driver_.copy(b->at, from->second.at, b->bytes, stream),
                       "restoring a mutated tensor");
}

Result<const PlacedBuffer*> Buffers::find(const std::string& name, const std::string& step) const {
  auto at = placed_.find(name);
  if (at != placed_.end() && at->second.copies > 1 && run_ > 0)
    at = placed_.find(copy_name(name, run_ % at->second.copies));
  if (at != placed_.end()) return &at->second;
  return user_error("buffer " + sanitize(name, 80) + " is not bound", "step " + sanitize(step, 80),
                    "bind it before the run");
}

Result<bool> Buffers::intact(Address from, size_t bytes, unsigned char guard) const {
  if (bytes == 0) return true;
  std::vector<unsigned char> now(bytes);
  CG_CHECK(driver_.check(driver_.to_host(now.data(), from, bytes), "reading a guard"));
  return std::all_of(now.begin(), now.end(), [guard](unsigned char c) { return c == guard; });
}

Result<std::string> Buffers::copy_back() {
  std::string damage;
  for (const auto& [name, b] : placed_) {
    if (b.shared) continue;
    if (!b.host.empty())
      CG_CHECK(
          driver_.check(driver_.to_host(b.host.data(), b.at, b.bytes), "copying from the GPU"));
    const size_t before = b.at - b.block.mapped;
    const size_t behind = b.block.mapped_bytes - before - b.bytes;
    const size_t left = std::min(before, kGuardWindow), right = std::min(behind, kGuardWindow);
    CG_TRY(bool left_ok, intact(b.at - left, left, b.guard));
    CG_TRY(bool right_ok, intact(b.at + b.bytes, right, b.guard));
    if (damage.empty() && !(left_ok && right_ok))
      damage = fmt::format("memory {} '{}' was written", left_ok ? "behind" : "before",
                           sanitize(name, 80));
  }
  return damage;
}

Result<void> Buffers::read(const std::string& name, int64_t offset,
                           std::span<std::byte> out) const {
  const auto at = placed_.find(name);  // the named copy, whatever use_copy() chose
  if (at == placed_.end()) return world_error("a buffer that is read is not bound");
  const PlacedBuffer& b = at->second;
  if (offset < 0 || out.size() > b.bytes || size_t(offset) > b.bytes - out.size())
    return world_error("a part that is read lies outside its buffer");
  if (out.empty()) return {};
  return driver_.check(driver_.to_host(out.data(), b.at + size_t(offset), out.size()),
                       "copying from the GPU");
}

}  // namespace cutegen::device::cuda
