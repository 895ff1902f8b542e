// SPDX-License-Identifier: Apache-2.0
// The memory of one run: buffers inside the evaluator's shared memory, and the large ones of a
// timing run, which exist as addresses only.
//
// Contract: a large read-only buffer reads as zeros and costs no memory. A large writable one is
// the evaluator's small ring mapped again and again, so that a program cannot fill the machine's
// memory however much it writes; its values mean nothing. A buffer with a period is a part of the
// shared memory mapped again and again: its values repeat. All mappings end with the object.
// A buffer with a pattern (of a GPU) is addresses too; the pattern lies in the shared memory.
// Shared buffers (of a GPU) are the evaluator's, handed over before the run by their descriptors.
//
// Example: CG_TRY(RunMemory m, RunMemory::map(frame.body, frame.fds)); device.bind(m.bindings());
#pragma once

#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "device/device.h"

namespace cutegen::runner {

struct HandedOver {
  BufferBinding binding;  // without addresses
  size_t bytes = 0;
  UniqueFd descriptor;
};
// The buffers of a "share" request, with their descriptors.
[[nodiscard]] Result<std::vector<HandedOver>> handed_over(const Json& buffers,
                                                          std::vector<UniqueFd> fds);

class RunMemory {
 public:
  // fds: the shared memory, then the ring (needed only where a buffer is large); none where every
  // buffer was handed over.
  [[nodiscard]] static Result<RunMemory> map(const Json& buffers, const std::vector<UniqueFd>& fds,
                                             std::vector<HandedOver> shared);
  ~RunMemory();
  RunMemory() = default;
  RunMemory(RunMemory&&) = default;
  RunMemory& operator=(RunMemory&&) = delete;
  [[nodiscard]] const std::vector<BufferBinding>& bindings() const { return bindings_; }
  // A part of the shared memory.
  [[nodiscard]] Result<std::span<std::byte>> part(int64_t offset, int64_t bytes) const;

 private:
  struct Region {
    void* at;
    size_t bytes;
  };
  [[nodiscard]] Result<std::byte*> reserve(size_t bytes);
  [[nodiscard]] Result<std::byte*> map_large(size_t bytes, bool read_only, int ring);
  [[nodiscard]] Result<std::byte*> map_repeated(size_t bytes, bool read_only, int file,
                                                int64_t offset, int64_t period);
  // So much of a file, again and again.
  [[nodiscard]] static Result<void> repeat(std::byte* at, size_t bytes, bool read_only, int file,
                                           size_t window, size_t offset);
  Mapping shared_;
  std::vector<Region> regions_;
  std::vector<BufferBinding> bindings_;
  std::vector<HandedOver> handed_over_;
};

}  // namespace cutegen::runner
