// SPDX-License-Identifier: Apache-2.0
// OwnKernels: cutegen's own kernels around a timed run, and their memory. gate: holds back the run
// until all of it is queued. tick: measures the SM clock. soil: overwrites shared memory.
//
// Contract: prepare() allocates pinned memory; load() allocates the rest before the first timed
// run. All kernels are queued on the caller's stream. A closed gate opens by itself after a time
// limit.
//
// Example: CG_CHECK(own.shut_gate(stream)); ... own.open_gate();
#pragma once

#include <atomic>
#include <optional>

#include "device/cuda/driver.h"
#include "device/device.h"

namespace cutegen::device::cuda {

class OwnKernels {
 public:
  explicit OwnKernels(const Driver& driver) : driver_(driver) {}
  Result<void> prepare();
  Result<void> load(const DeviceFacts& facts, size_t l2_bytes);
  void close();

  // Holds back everything that is queued after it.
  Result<void> shut_gate(Handle stream);
  void open_gate() { std::atomic_ref(pinned_->gate).store(gates_); }
  // Measures the SM clock; clock_hz() returns it once the stream is empty.
  Result<void> tick(Handle stream);
  std::optional<double> clock_hz() const;
  Result<void> cool_l2(Handle stream);
  // How long the last cool_l2() took, once the stream is empty. Longer than usual means that other
  // work uses the GPU's memory.
  std::optional<double> cooling_ns() const;
  Result<void> soil_shared(Handle stream);
  // A value that differs from run to run.
  uint32_t mark() const { return gates_ * 2654435761U; }
  Address spare() const { return flush_; }

 private:
  struct Pinned {
    uint32_t gate;        // the gate kernel waits for its value
    uint64_t cycles, ns;  // cycles and time of an SM, from the tick kernel
  };
  Result<void> launch_one(Handle kernel, void** arguments, Handle stream);  // one thread

  const Driver& driver_;
  Pinned* pinned_ = nullptr;
  Address pinned_address_ = 0, flush_ = 0;
  size_t flush_bytes_ = 0;
  unsigned sms_ = 0, shared_bytes_ = 0;
  uint32_t gates_ = 0;
  Handle cooling_ = nullptr, cooled_ = nullptr;  // events around cool_l2()
  Handle module_ = nullptr, gate_ = nullptr, tick_ = nullptr, soil_ = nullptr;
};

}  // namespace cutegen::device::cuda
