// SPDX-License-Identifier: Apache-2.0
// Scrubber: overwrites registers and local memory, and resets persisting L2 lines, so that a kernel
// cannot leave data for the next run. (OwnKernels overwrites shared memory; Buffers refills the
// buffers.)
//
// Contract: prepare() selects how much of each thread's local memory run() overwrites: the given
// size, rounded up to a power of two, but at least 1 KiB and at most kMostScrubbedLocal. A failure
// of the Scrubber never ends a timing. If the Scrubber cannot overwrite a kind of storage,
// missing() names this kind, and later runs do not try again. The function run() queues kernels on
// the stream and does not wait for their end.
//
// Example: Scrubber s(driver, sms); s.prepare(bytes); s.run(stream, value, spare); s.missing();
#pragma once

#include <map>
#include <string>
#include <vector>

#include "device/cuda/driver.h"

namespace cutegen::device::cuda {

inline constexpr int64_t kMostScrubbedLocal = 16384;  // bytes per thread

class Scrubber {
 public:
  Scrubber(const Driver& driver, int sms) : driver_(driver), sms_(sms) {}
  // Loads kernels on the first call for each size. local_bytes: the local memory that a thread of
  // the program uses.
  void prepare(int64_t local_bytes);
  // `spare`: address of four bytes of device memory. The kernels may write to `spare`, so that the
  // compiler cannot remove their work.
  void run(Handle stream, uint32_t value, Address spare);
  // What run() cannot overwrite: "registers", "local memory", "persisting L2 lines".
  std::vector<std::string> missing() const;
  // Call unload() before the CUDA context ends.
  void unload();

 private:
  struct Kernel {
    Handle module = nullptr, function = nullptr;
  };
  Kernel load(const std::string& ptx, const std::string& name) const;
  // `blocks`: per SM. After a failure, the kernel has no function.
  void launch(Kernel& k, unsigned blocks, unsigned threads, Handle stream, void** arguments) const;

  const Driver& driver_;
  int sms_;
  bool prepared_ = false, resets_ = true;
  Kernel registers_;
  std::map<int64_t, Kernel> locals_;  // by the bytes of local memory that a thread overwrites
  Kernel* local_ = nullptr;           // the kernel that run() uses
};

}  // namespace cutegen::device::cuda
