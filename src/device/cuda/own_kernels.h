// SPDX-License-Identifier: Apache-2.0
// OwnKernels: launches cutegen's own kernels before and after a timed run: `gate` delays the run
// until the host has queued all of its launches, `tick` measures the SM clock, and `soil`
// overwrites shared memory.
//
// Contract: prepare() allocates pinned memory. Before the first timed run, load() allocates all
// memory that is not pinned. OwnKernels queues its kernels on the caller's stream. A gate kernel
// ends by itself after a time limit.
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

  // Queues the gate kernel, which delays all later work on the stream until open_gate().
  Result<void> shut_gate(Handle stream);
  void open_gate() { std::atomic_ref(pinned_->gate).store(gates_); }
  // Queues a measurement of the SM clock. Once the stream is empty, clock_hz() returns the result.
  Result<void> tick(Handle stream);
  std::optional<double> clock_hz() const;
  Result<void> cool_l2(Handle stream);
  // Returns the duration of the last cool_l2(), once the stream is empty. If cool_l2() takes longer
  // than usual, other work is using the GPU's memory.
  std::optional<double> cooling_ns() const;
  Result<void> soil_shared(Handle stream);
  // Returns a value that differs from run to run.
  uint32_t mark() const { return gates_ * 2654435761U; }
  Address spare() const { return flush_; }

 private:
  struct Pinned {
    uint32_t gate;        // word that the gate kernel polls
    uint64_t cycles, ns;  // clock cycles and time, which the tick kernel writes
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
