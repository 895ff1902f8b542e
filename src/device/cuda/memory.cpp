// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/memory.h"

#include <fmt/format.h>

#include "base/units.h"

namespace cutegen::device::cuda {
BlockMemory::~BlockMemory() {
  drop_kept();
}

Result<size_t> BlockMemory::page() {
  if (page_ > 0) return page_;
  AllocationProperties properties;
  properties.location.id = device_;
  constexpr int kMinimum = 0;
  CG_CHECK(
      driver_.check(driver_.granularity(&page_, &properties, kMinimum), "reading the page size"));
  if (page_ == 0) return world_error("the GPU's driver reports no page size");
  return page_;
}

void BlockMemory::drop(const Block& b) {
  if (b.mapped) driver_.unmap(b.mapped, b.mapped_bytes);
  if (b.physical) driver_.release(b.physical);
  if (b.reserved) driver_.unreserve(b.reserved, b.reserved_bytes);
}

void BlockMemory::drop_kept() {
  for (const auto& [bytes, block] : kept_) drop(block);
  kept_.clear();
  kept_bytes_ = 0;
}

// Maps the block between two unmapped pages.
Status BlockMemory::map(Block& b, size_t page, bool read_only) {
  AccessDescription access;
  access.location.id = device_;
  if (read_only) access.flags = 1;
  b.reserved_bytes = b.mapped_bytes + 2 * page;
  Status s = driver_.reserve(&b.reserved, b.reserved_bytes, 0, 0, 0);
  if (s == kOk) s = driver_.map(b.reserved + page, b.mapped_bytes, 0, b.physical, 0);
  if (s != kOk) return s;
  b.mapped = b.reserved + page;
  return driver_.set_access(b.mapped, b.mapped_bytes, &access, 1);
}

Status BlockMemory::make(Block& b, size_t page) {
  AllocationProperties properties;
  properties.location.id = device_;
  if (keeping_.shareable) properties.handle_types = kDescriptor;
  Status s = driver_.create(&b.physical, b.mapped_bytes, &properties, 0);
  return s == kOk ? map(b, page, false) : s;
}

Result<UniqueFd> BlockMemory::share(const Block& block) const {
  int descriptor = -1;
  CG_CHECK(driver_.check(driver_.export_memory(&descriptor, block.physical, kDescriptor, 0),
                         "sharing GPU memory"));
  return UniqueFd(descriptor);
}

Result<Block> BlockMemory::import(int descriptor, size_t mapped_bytes, bool read_only) {
  CG_TRY(size_t page, this->page());
  if (mapped_bytes == 0 || mapped_bytes % page != 0 || mapped_bytes > SIZE_MAX / 2)
    return world_error("shared GPU memory has an invalid size");
  Block b;
  b.mapped_bytes = mapped_bytes;
  // The driver takes a number as a pointer. NOLINTNEXTLINE(performance-no-int-to-ptr)
  void* handle = reinterpret_cast<void*>(intptr_t(descriptor));
  Status s = driver_.import_memory(&b.physical, handle, kDescriptor);
  if (s == kOk) s = map(b, page, read_only);
  if (s == kOk) return b;
  drop(b);
  return fail(driver_.check(s, "mapping shared GPU memory").error());
}

Result<Block> BlockMemory::take(size_t bytes) {
  CG_TRY(size_t page, this->page());
  if (bytes > SIZE_MAX / 2) return world_error("a buffer is larger than any memory");
  const size_t mapped = (std::max<size_t>(bytes, 1) + page - 1) / page * page;
  if (auto at = kept_.find(mapped); at != kept_.end()) {
    Block b = at->second;
    kept_.erase(at);
    kept_bytes_ -= mapped;
    return b;
  }
  Block b;
  b.mapped_bytes = mapped;
  Status s = make(b, page);
  if (s == kOutOfMemory && !kept_.empty()) {
    drop(b);
    drop_kept();
    b = Block{};
    b.mapped_bytes = mapped;
    s = make(b, page);
  }
  if (s == kOk) return b;
  drop(b);
  return fail(
      driver_.check(s, fmt::format("allocating {} of GPU memory", human(Bytes{int64_t(mapped)})))
          .error());
}

void BlockMemory::give_back(const Block& block) {
  if (block.mapped_bytes > keeping_.most_block ||
      kept_bytes_ + block.mapped_bytes > keeping_.most_bytes) {
    drop(block);
    return;
  }
  kept_bytes_ += block.mapped_bytes;
  kept_.emplace(block.mapped_bytes, block);
}

}  // namespace cutegen::device::cuda
