// SPDX-License-Identifier: Apache-2.0
#include "runner/memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace cutegen::runner {
namespace {

constexpr size_t kMostWindows = 16384;  // mappings of one buffer; Linux allows a process 65,530

Result<size_t> size_of_file(int fd) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return errno_error("fstat of shared memory");
  return size_t(info.st_size);
}

}  // namespace

RunMemory::~RunMemory() {
  for (const Region& r : regions_) ::munmap(r.at, r.bytes);
}

Result<std::byte*> RunMemory::reserve(size_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return errno_error("cannot reserve addresses for a buffer");
  regions_.push_back({.at = at, .bytes = bytes});
  return static_cast<std::byte*>(at);
}

Result<std::byte*> RunMemory::map_large(size_t bytes, bool read_only, int ring) {
  CG_TRY(std::byte * at, reserve(bytes));
  if (read_only) return at;
  if (ring < 0) return world_error("a large buffer came without a ring");
  CG_TRY(size_t window, size_of_file(ring));
  if (window == 0) return world_error("the ring is empty");
  CG_CHECK(repeat(at, bytes, false, ring, window, 0));
  return at;
}

Result<void> RunMemory::repeat(std::byte* at, size_t bytes, bool read_only, int file, size_t window,
                               size_t offset) {
  const int access = read_only ? PROT_READ : PROT_READ | PROT_WRITE;
  for (size_t done = 0; done < bytes; done += window) {
    size_t step = std::min(window, bytes - done);
    void* part = ::mmap(at + done, step, access, MAP_SHARED | MAP_FIXED, file, off_t(offset));
    if (part == MAP_FAILED) return errno_error("cannot map a large buffer");
  }
  return {};
}

Result<std::byte*> RunMemory::map_repeated(size_t bytes, bool read_only, int file, int64_t offset,
                                           int64_t period) {
  const auto page = int64_t(::sysconf(_SC_PAGESIZE));
  if (period < page || period % page != 0 || offset % page != 0)
    return world_error("the period of a buffer is not a multiple of a page");
  CG_TRY(auto window, part(offset, period));
  (void)window;
  if (bytes / size_t(period) > kMostWindows)
    return world_error("a buffer repeats a part too often");
  CG_TRY(std::byte * at, reserve(std::max<size_t>(bytes, 1)));
  CG_CHECK(repeat(at, bytes, read_only, file, size_t(period), size_t(offset)));
  return at;
}

Result<std::span<std::byte>> RunMemory::part(int64_t offset, int64_t bytes) const {
  const auto total = int64_t(shared_.size());
  if (offset < 0 || bytes < 0 || bytes > total || offset > total - bytes)
    return world_error("a buffer lies outside the shared memory");
  return std::span(shared_.data() + offset, size_t(bytes));
}

Result<std::vector<HandedOver>> handed_over(const std::vector<device::SharedBuffer>& given,
                                            std::vector<UniqueFd> fds) {
  std::vector<HandedOver> out;
  if (given.size() != fds.size()) return world_error("shared buffers came without their memory");
  for (size_t i = 0; i < fds.size(); ++i) {
    HandedOver one{.bytes = size_t(given[i].bytes), .descriptor = std::move(fds[i])};
    one.binding.name = given[i].name;
    one.binding.read_only = given[i].read_only;
    one.binding.initial = given[i].initial;
    one.binding.copies = given[i].copies;
    one.binding.shared = {.descriptor = one.descriptor.get(),
                          .mapped_bytes = size_t(given[i].mapped_bytes),
                          .offset = size_t(given[i].offset)};
    out.push_back(std::move(one));
  }
  return out;
}

Result<RunMemory> RunMemory::map(const std::vector<device::RunBuffer>& wanted,
                                 const std::vector<UniqueFd>& fds, std::vector<HandedOver> shared) {
  RunMemory out;
  for (HandedOver& given : shared) {
    CG_TRY(std::byte * at, out.reserve(std::max<size_t>(given.bytes, 1)));
    given.binding.bytes = {at, given.bytes};
    out.bindings_.push_back(given.binding);
  }
  out.handed_over_ = std::move(shared);
  if (fds.empty() && wanted.empty()) return out;
  if (fds.empty()) return world_error("a run came without memory");
  CG_TRY(size_t total, size_of_file(fds[0].get()));
  CG_TRY(out.shared_, Mapping::map(fds[0].get(), total, true));
  for (const device::RunBuffer& b : wanted) {
    const auto size = size_t(b.bytes);
    device::BufferBinding binding{
        .name = b.name, .read_only = b.read_only, .content = b.content, .copies = b.copies};
    if (b.pattern_bytes != 0) {
      CG_TRY(binding.pattern, out.part(b.offset, b.pattern_bytes));
      CG_TRY(std::byte * at, out.reserve(std::max<size_t>(size, 1)));
      binding.bytes = {at, size};
    } else if (b.period_bytes != 0) {
      CG_TRY(std::byte * at,
             out.map_repeated(size, b.read_only, fds[0].get(), b.offset, b.period_bytes));
      binding.bytes = {at, size};
    } else if (b.offset >= 0) {
      CG_TRY(binding.bytes, out.part(b.offset, b.bytes));
    } else {
      CG_TRY(std::byte * at, out.map_large(size, b.read_only, fds.size() > 1 ? fds[1].get() : -1));
      binding.bytes = {at, size};
    }
    out.bindings_.push_back(std::move(binding));
  }
  return out;
}

}  // namespace cutegen::runner
