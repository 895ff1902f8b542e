// SPDX-License-Identifier: Apache-2.0
// The buffers of a run, as the evaluator describes them to the runner.
//
// Contract: the file descriptors of the buffers travel with the JSON message, in the same order.
// The runner checks every size against the memory that it received.
//
// Example: CG_TRY(auto given, read_json<std::vector<RunBuffer>>(body["buffers"], "buffers#"));
#pragma once

#include <string>

#include "base/fields.h"
#include "device/device.h"

namespace cutegen::device {

struct RunBuffer {
  std::string name;
  int64_t bytes = 0;
  int64_t offset = -1;  // offset in the shared memory; -1: a large buffer, which only has addresses
  bool read_only = false;
  BufferContent content = BufferContent::data;
  // On a GPU: if not 0, repetitions of this many bytes at `offset` fill the buffer.
  int64_t pattern_bytes = 0;
  // Number of copies of a buffer with a pattern; timed runs use them in turn.
  int copies = 1;
  // On a simulator: if not 0, this many bytes at `offset` are mapped repeatedly; both are multiples
  // of a page.
  int64_t period_bytes = 0;
};

// GPU memory of the evaluator, which the runner maps instead of copying (inputs read-only).
struct SharedBuffer {
  std::string name;
  int64_t bytes = 0;
  int descriptor = -1;
  int64_t mapped_bytes = 0, offset = 0;  // the mapped memory; where the buffer begins in it
  bool read_only = false;
  int copies = 1;  // number of copies of "y", named "y", "y#1", ...; timed runs use them in turn
  std::string initial =
      {};  // for a mutated tensor: the buffer from which it is initialised before each timed run
};

// A part of a kept buffer that the device copies into the shared memory.
struct Probe {
  std::string buffer;
  int64_t offset = 0, bytes = 0, at = 0;
};

void fields(Fields& v, RunBuffer& buffer);
void fields(Fields& v, SharedBuffer& buffer);
void fields(Fields& v, Probe& probe);

}  // namespace cutegen::device
