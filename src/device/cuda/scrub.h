// SPDX-License-Identifier: Apache-2.0
// Scrubber: overwrites registers, local memory and persisting L2 lines, through which a kernel
// could pass data to the next run. (OwnKernels and the buffers overwrite shared memory and
// buffers.)
//
// Contract: a failure never ends a timing. The Scrubber does not retry a failed step; missing()
// names it. run() queues kernels on the stream and does not wait for them.
//
// Example: Scrubber s(driver, sms); s.prepare(); s.run(stream, value, spare); s.missing();
#pragma once

#include <string>
#include <vector>

#include "device/cuda/driver.h"

namespace cutegen::device::cuda {

// The PTX of both kernels, scrub_registers and scrub_local, with arguments (value, spare).
std::string scrub_ptx();

class Scrubber {
 public:
  Scrubber(const Driver& driver, int sms) : driver_(driver), sms_(sms) {}
  // Loads the kernels on the first call.
  void prepare();
  // spare: four bytes of device memory that the kernels may write, so that the compiler keeps their
  // work.
  void run(Handle stream, uint32_t value, Address spare);
  // What was not overwritten: "registers", "local memory", "persisting L2 lines".
  const std::vector<std::string>& missing() const { return missing_; }
  // Call it before the context ends.
  void unload();

 private:
  struct Kernel {
    const char* name;
    const char* what;
    unsigned blocks, threads;  // per SM; per block
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
