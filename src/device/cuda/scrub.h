// SPDX-License-Identifier: Apache-2.0
// Scrubber: overwrites registers and local memory, and resets persisting L2 lines, so that a kernel
// cannot leave data for the next run. (OwnKernels overwrites shared memory; Buffers refills the
// buffers.)
//
// Contract: a failure of the Scrubber never ends a timing. If the Scrubber cannot overwrite a kind
// of storage, missing() names this kind, and later runs do not try again. The function run() queues
// kernels on the stream and does not wait for their end.
//
// Example: Scrubber s(driver, sms); s.prepare(); s.run(stream, value, spare); s.missing();
#pragma once

#include <string>
#include <vector>

#include "device/cuda/driver.h"

namespace cutegen::device::cuda {

// Returns PTX with two kernels, scrub_registers and scrub_local, which take the arguments (value,
// spare).
std::string scrub_ptx();

class Scrubber {
 public:
  Scrubber(const Driver& driver, int sms) : driver_(driver), sms_(sms) {}
  // Loads the kernels on the first call.
  void prepare();
  // `spare`: address of four bytes of device memory. The kernels may write to `spare`, so that the
  // compiler cannot remove their work.
  void run(Handle stream, uint32_t value, Address spare);
  // What run() cannot overwrite: "registers", "local memory", "persisting L2 lines".
  const std::vector<std::string>& missing() const { return missing_; }
  // Call unload() before the CUDA context ends.
  void unload();

 private:
  struct Kernel {
    const char* name;
    const char* what;
    unsigned blocks, threads;  // blocks per SM; threads per block
    Handle function = nullptr;
  };
  void miss(const char* what);

  const Driver& driver_;
  int sms_;
  bool prepared_ = false, resets_ = true;
  Handle module_ = nullptr;
  Kernel kernels_[2] = {
      {.name = "scrub_registers", .what = "registers", .blocks = 1, .threads = 256},
      {.name = "scrub_local", .what = "local memory", .blocks = 4, .threads = 512}};
  std::vector<std::string> missing_;
};

}  // namespace cutegen::device::cuda
