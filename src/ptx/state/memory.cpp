// SPDX-License-Identifier: Apache-2.0
#include "ptx/state/memory.h"

#include <algorithm>

#include "ptx/machine/inst.h"

namespace cutegen::ptx {
namespace {

constexpr uint64_t kAlign = 256;
constexpr uint64_t kRedZone = uint64_t{1} << 30;  // addresses between buffers; they take no memory

}  // namespace

Memory::Memory() : state_(std::make_unique<State>()) {}
Memory::~Memory() = default;
Memory::Memory(Memory&&) noexcept = default;
Memory& Memory::operator=(Memory&&) noexcept = default;

uint64_t Memory::add(const std::string& name, std::span<std::byte> storage, Access access,
                     Content content) {
  return state_->place(name, storage, access, content);
}

void Memory::set_defined(uint64_t base) {
  for (Buffer& b : state_->buffers) {
    if (b.base == base) b.content = Content::given;
  }
}

void Memory::settle() {
  state_->settled = state_->next_epoch;
}

uint64_t Memory::State::place(const std::string& name, std::span<std::byte> storage, Access access,
                              Content content) {
  if (next == 0) next = kGlobalBase;
  const uint64_t base = next;
  buffers.push_back({.name = name,
                     .base = base,
                     .size = storage.size(),
                     .data = storage.data(),
                     .access = access,
                     .content = content});
  next = (base + storage.size() + kAlign - 1) / kAlign * kAlign + kRedZone;
  return base;
}

const Buffer* Memory::State::find(uint64_t address) const {
  auto it = std::upper_bound(buffers.begin(), buffers.end(), address,
                             [](uint64_t a, const Buffer& b) { return a < b.base; });
  if (it == buffers.begin()) return nullptr;
  --it;
  return it->holds(address) ? &*it : nullptr;
}

void Memory::State::watch_stores() {
  for (Buffer& b : buffers)
    if (b.access == Access::read_write && b.content == Content::given) b.stored.watch(b.size);
}

const Buffer* Memory::State::nearest(uint64_t address) const {
  const Buffer* best = nullptr;
  uint64_t least = ~uint64_t{0};
  for (const Buffer& b : buffers) {
    const uint64_t distance = address < b.base ? b.base - address : address - (b.base + b.size) + 1;
    if (distance < least) least = distance, best = &b;
  }
  return best;
}

}  // namespace cutegen::ptx
