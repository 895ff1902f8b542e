// SPDX-License-Identifier: Apache-2.0
// Structs with which the evaluator describes the buffers of a run to the runner, the sandboxed
// process that executes programs.
//
// Contract: the JSON message carries the buffers' file descriptors, in the order of the list of
// buffers. The runner checks that every buffer lies inside the memory that the runner received.
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
  // The buffer's offset in the shared memory. -1: a large buffer of the simulator, outside the
  // shared memory.
  int64_t offset = -1;
  bool read_only = false;
  BufferContent content = BufferContent::data;
  // On a GPU, if not 0: the runner fills the buffer with repetitions of this many bytes at
  // `offset`.
  int64_t pattern_bytes = 0;
  // Number of copies of the buffer, which successive timed runs use in turn. Only for buffers with
  // a pattern.
  int copies = 1;
  // On the simulator, if not 0: the runner maps this many bytes at `offset` repeatedly to fill the
  // buffer. `offset` and `period_bytes` are multiples of the page size.
  int64_t period_bytes = 0;
};

// GPU memory that the evaluator owns and the runner maps without copying. The runner maps inputs
// read-only.
struct SharedBuffer {
  std::string name;
  int64_t bytes = 0;
  int descriptor = -1;
  int64_t mapped_bytes = 0, offset = 0;  // size of the mapped memory; the buffer's offset in it
  bool read_only = false;
  // Number of copies "y", "y#1", ... of the buffer, which successive timed runs use in turn.
  int copies = 1;
  // For a tensor that the program changes in place: the name of the buffer with the tensor's values
  // before each timed run.
  std::string initial = {};
};

// A part of a buffer that the runner kept after a run. A `read` call copies the part, `bytes` bytes
// from `offset` on, to the offset `at` of the shared memory.
struct Probe {
  std::string buffer;
  int64_t offset = 0, bytes = 0, at = 0;
};

void fields(Fields& v, RunBuffer& buffer);
void fields(Fields& v, SharedBuffer& buffer);
void fields(Fields& v, Probe& probe);

}  // namespace cutegen::device
