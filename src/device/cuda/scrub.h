// SPDX-License-Identifier: Apache-2.0
// Scrubber: overwrites what a kernel could leave for the next run beside buffers and shared memory:
// registers, local memory, and lines that persist in the L2.
//
// Contract: no failure here may end a timing: what cannot be done once is not tried again, and
// missing() names it. run() queues kernels on the stream; nothing waits for them.
//
// Example: Scrubber s(driver, sms); s.prepare(); s.run(stream, value, spare); s.missing();
#pragma once

#include <string>
#include <vector>

#include "device/cuda/driver.h"

namespace cutegen::cuda {

// PTX of both kernels: scrub_registers and scrub_local, of (value, spare).
[[nodiscard]] std::string scrub_ptx();

class Scrubber {
 public:
  Scrubber(const Driver& driver, int sms) : driver_(driver), sms_(sms) {}
  // Loads the kernels; asked again it does nothing.
  void prepare();
  // `spare`: four bytes of device memory that a kernel may be seen to write.
  void run(Handle stream, uint32_t value, Address spare);
  // "registers", "local memory", "persisting L2 lines": what was not overwritten.
  [[nodiscard]] const std::vector<std::string>& missing() const { return missing_; }
  // Before the context ends.
  void unload();

 private:
  struct Kernel {
    const char* name;
    const char* what;
    unsigned blocks, threads;  // of an SM; of a block
    Handle function = nullptr;
  };
  void miss(const char* what);

  const Driver& driver_;
  int sms_;
  bool prepared_ = false, resets_ = true;
  Handle module_ = nullptr;
  Kernel kernels_[2] = {{"scrub_registers", "registers", 1, 256},
                        {"scrub_local", "local memory", 4, 512}};
  std::vector<std::string> missing_;
};

}  // namespace cutegen::cuda
