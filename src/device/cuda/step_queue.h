// SPDX-License-Identifier: Apache-2.0
// StepQueue: queues the steps of a program on the GPU's stream, and waits for their end.
//
// Contract: queue() does not wait for the step. If a kernel faults or does not end, the CUDA
// context is broken: lost() returns true, and nothing more can run in this process.
//
// Example: CG_TRY(Status s, queue.queue(step, true)); CG_TRY(s, queue.wait(ctx, limit));
#pragma once

#include <string>
#include <variant>

#include "device/cuda/buffers.h"
#include "device/cuda/modules.h"

namespace cutegen::device::cuda {

class StepQueue {
 public:
  StepQueue(const Driver& driver, Buffers& buffers, Modules& modules)
      : driver_(driver), buffers_(buffers), modules_(modules) {}
  Result<void> prepare();
  void close();
  Handle stream() const { return stream_; }
  bool lost() const { return lost_; }

  Result<Status> queue(const std::variant<Launch, Fill>& step, bool first);
  // Waits until the stream is empty and returns the stream's status, or kNotReady if the wait takes
  // longer than `limit`.
  Result<Status> wait(const Context& ctx, Nanoseconds limit);
  // Adds a failed status to the report as a fault of `kernel`. Returns an error if no kernel can
  // cause this status.
  Result<void> note_fault(Status status, const std::string& kernel, RunReport& report);
  // elapsed() returns the GPU time between record_begin() and record_end().
  Status record_begin() { return driver_.event_record(begin_, stream_); }
  Status record_end() { return driver_.event_record(end_, stream_); }
  Status elapsed(float* ms) const { return driver_.event_elapsed(ms, begin_, end_); }

 private:
  Result<Status> queue_launch(const Launch& step, bool first);
  Result<Status> queue_fill(const Fill& step);

  const Driver& driver_;
  Buffers& buffers_;
  Modules& modules_;
  Handle stream_ = nullptr, begin_ = nullptr, end_ = nullptr;
  bool lost_ = false;
};

std::string name_of(const std::variant<Launch, Fill>& step);

}  // namespace cutegen::device::cuda
