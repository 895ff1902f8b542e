// SPDX-License-Identifier: Apache-2.0
// The memory of one run: buffers in the evaluator's shared memory, and the large buffers of a
// timing run, which only reserve addresses.
//
// Contract: a large read-only buffer contains zeros and takes no memory. A large writable buffer
// maps a small memory file of the evaluator (the ring) repeatedly, so that a program cannot fill
// the machine's memory; its values are meaningless. A buffer with a period maps a part of the
// shared memory repeatedly, so its values repeat. A buffer with a pattern (on a GPU) only reserves
// addresses; the pattern is in the shared memory. Shared buffers (on a GPU) belong to the
// evaluator, which sends their descriptors before the run. The destructor removes all mappings.
//
// Example: CG_TRY(RunMemory m, RunMemory::map(call.buffers, frame.fds, {}));
// device.bind(m.bindings());
#pragma once

#include <vector>

#include "base/file.h"
#include "device/buffers.h"

namespace cutegen::runner {

struct HandedOver {
  device::BufferBinding binding;  // without addresses
  size_t bytes = 0;
  UniqueFd descriptor;
};
// The buffers of a share call with their descriptors.
Result<std::vector<HandedOver>> handed_over(const std::vector<device::SharedBuffer>& given,
                                            std::vector<UniqueFd> fds);

class RunMemory {
 public:
  // fds: the shared memory, then the ring (only for large writable buffers). Empty if the evaluator
  // sent every buffer before.
  static Result<RunMemory> map(const std::vector<device::RunBuffer>& wanted,
                               const std::vector<UniqueFd>& fds, std::vector<HandedOver> shared);
  ~RunMemory();
  RunMemory() = default;
  RunMemory(RunMemory&&) = default;
  RunMemory& operator=(RunMemory&&) = delete;
  const std::vector<device::BufferBinding>& bindings() const { return bindings_; }
  // A part of the shared memory.
  Result<std::span<std::byte>> part(int64_t offset, int64_t bytes) const;

 private:
  struct Region {
    void* at;
    size_t bytes;
  };
  Result<std::byte*> reserve(size_t bytes);
  Result<std::byte*> map_large(size_t bytes, bool read_only, int ring);
  Result<std::byte*> map_repeated(size_t bytes, bool read_only, int file, int64_t offset,
                                  int64_t period);
  // Maps `window` bytes of a file repeatedly.
  static Result<void> repeat(std::byte* at, size_t bytes, bool read_only, int file, size_t window,
                             size_t offset);
  Mapping shared_;
  std::vector<Region> regions_;
  std::vector<device::BufferBinding> bindings_;
  std::vector<HandedOver> handed_over_;
};

}  // namespace cutegen::runner
