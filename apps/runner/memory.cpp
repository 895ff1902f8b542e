// SPDX-License-Identifier: Apache-2.0
#include "runner/memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "device/codec.h"

namespace cutegen::runner {
namespace {

constexpr int64_t kMostCopies = 64;
constexpr size_t kMostWindows = 16384;  // mappings of one buffer; Linux allows a process 65,530

Result<size_t> size_of_file(int fd) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return errno_error("fstat of shared memory");
  return static_cast<size_t>(info.st_size);
}

}  // namespace

RunMemory::~RunMemory() {
  for (const Region& r : regions_) ::munmap(r.at, r.bytes);
}

Result<std::byte*> RunMemory::reserve(size_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return errno_error("cannot reserve addresses for a buffer");
  regions_.push_back({at, bytes});
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
    void* part =
        ::mmap(at + done, step, access, MAP_SHARED | MAP_FIXED, file, static_cast<off_t>(offset));
    if (part == MAP_FAILED) return errno_error("cannot map a large buffer");
  }
  return {};
}

Result<std::byte*> RunMemory::map_repeated(size_t bytes, bool read_only, int file, int64_t offset,
                                           int64_t period) {
  const auto page = static_cast<int64_t>(::sysconf(_SC_PAGESIZE));
  if (period < page || period % page != 0 || offset % page != 0)
    return world_error("the period of a buffer is not a multiple of a page");
  CG_TRY(auto window, part(offset, period));
  (void)window;
  if (bytes / static_cast<size_t>(period) > kMostWindows)
    return world_error("a buffer repeats a part too often");
  CG_TRY(std::byte * at, reserve(std::max<size_t>(bytes, 1)));
  CG_CHECK(
      repeat(at, bytes, read_only, file, static_cast<size_t>(period), static_cast<size_t>(offset)));
  return at;
}

Result<std::span<std::byte>> RunMemory::part(int64_t offset, int64_t bytes) const {
  const auto total = static_cast<int64_t>(shared_.size());
  if (offset < 0 || bytes < 0 || bytes > total || offset > total - bytes)
    return world_error("a buffer lies outside the shared memory");
  return std::span(shared_.data() + offset, static_cast<size_t>(bytes));
}

Result<std::vector<HandedOver>> handed_over(const Json& buffers, std::vector<UniqueFd> fds) {
  std::vector<HandedOver> out;
  if (!buffers.is_array() || buffers.size() != fds.size())
    return world_error("shared buffers came without their memory");
  for (size_t i = 0; i < fds.size(); ++i) {
    ObjectReader r(buffers[i], "buffers#");
    HandedOver one;
    CG_TRY(one.binding.name, r.string("name"));
    CG_TRY(one.binding.read_only, r.boolean("read_only"));
    CG_TRY(int64_t bytes, r.integer("bytes"));
    CG_TRY(int64_t mapped_bytes, r.integer("mapped_bytes"));
    CG_TRY(int64_t offset, r.integer("offset"));
    CG_TRY(int64_t copies, r.integer("copies"));
    CG_TRY(one.binding.initial, r.string_or("initial", ""));
    CG_CHECK(r.finish());
    if (copies < 1 || copies > kMostCopies) return world_error("a buffer has too many copies");
    one.binding.copies = static_cast<int>(copies);
    if (bytes < 0 || mapped_bytes < 0 || offset < 0)
      return world_error("a buffer has a negative size");
    one.bytes = static_cast<size_t>(bytes);
    one.descriptor = std::move(fds[i]);
    one.binding.shared = {one.descriptor.get(), static_cast<size_t>(mapped_bytes),
                          static_cast<size_t>(offset)};
    out.push_back(std::move(one));
  }
  return out;
}

Result<RunMemory> RunMemory::map(const Json& buffers, const std::vector<UniqueFd>& fds,
                                 std::vector<HandedOver> shared) {
  RunMemory out;
  if (!buffers.is_array()) return world_error("a run came without buffers");
  for (HandedOver& given : shared) {
    CG_TRY(std::byte * at, out.reserve(std::max<size_t>(given.bytes, 1)));
    given.binding.bytes = {at, given.bytes};
    out.bindings_.push_back(given.binding);
  }
  out.handed_over_ = std::move(shared);
  if (fds.empty() && buffers.empty()) return out;
  if (fds.empty()) return world_error("a run came without memory");
  CG_TRY(size_t total, size_of_file(fds[0].get()));
  CG_TRY(out.shared_, Mapping::map(fds[0].get(), total, true));
  for (const Json& buffer : buffers) {
    ObjectReader r(buffer, "buffers#");
    CG_TRY(std::string name, r.string("name"));
    CG_TRY(int64_t bytes, r.integer("bytes"));
    CG_TRY(bool read_only, r.boolean("read_only"));
    CG_TRY(std::string content_name, r.string("content"));
    CG_TRY(device::BufferContent content, device::buffer_content_from(content_name));
    CG_TRY(int64_t offset, r.integer_or("offset", -1));
    CG_TRY(int64_t pattern_bytes, r.integer_or("pattern_bytes", 0));
    CG_TRY(int64_t copies, r.integer_or("copies", 1));
    CG_TRY(int64_t period, r.integer_or("period_bytes", 0));
    if (copies < 1 || copies > kMostCopies) return world_error("a buffer has too many copies");
    CG_CHECK(r.finish());
    if (bytes < 0) return world_error("a buffer has a negative size");
    auto size = static_cast<size_t>(bytes);
    device::BufferBinding binding{std::move(name), {}, read_only, content, {}, int(copies), {}, {}};
    if (pattern_bytes != 0) {
      CG_TRY(binding.pattern, out.part(offset, pattern_bytes));
      CG_TRY(std::byte * at, out.reserve(std::max<size_t>(size, 1)));
      binding.bytes = {at, size};
    } else if (period != 0) {
      CG_TRY(std::byte * at, out.map_repeated(size, read_only, fds[0].get(), offset, period));
      binding.bytes = {at, size};
    } else if (offset >= 0) {
      CG_TRY(binding.bytes, out.part(offset, bytes));
    } else {
      CG_TRY(std::byte * at, out.map_large(size, read_only, fds.size() > 1 ? fds[1].get() : -1));
      binding.bytes = {at, size};
    }
    out.bindings_.push_back(std::move(binding));
  }
  return out;
}

}  // namespace cutegen::runner
