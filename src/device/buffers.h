// SPDX-License-Identifier: Apache-2.0
// Buffers of a run, as the evaluator describes them to the runner.
//
// Contract: descriptors travel beside the JSON form, in the same order. The runner checks every
// size against the memory that it got.
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
  int64_t offset = -1;  // in the shared memory; -1: large, addresses only
  bool read_only = false;
  BufferContent content = BufferContent::data;
  int64_t pattern_bytes = 0;  // not 0 (GPU): this many bytes at `offset`, repeated, fill it
  int copies = 1;             // of a buffer with a pattern: timed runs alternate between them
  int64_t period_bytes = 0;   // not 0 (simulator): this many bytes at `offset` are mapped again
                              // and again, both multiples of a page
};

// GPU memory of the evaluator: the runner maps it (inputs read-only) and copies nothing.
struct SharedBuffer {
  std::string name;
  int64_t bytes = 0;
  int descriptor = -1;
  int64_t mapped_bytes = 0, offset = 0;  // what is mapped, and where in it the buffer begins
  bool read_only = false;
  int copies = 1;  // of "y", bound as "y#1" ...; timed runs alternate between them
  std::string initial =
      {};  // of a mutated tensor: the buffer whose bytes each timed run starts with
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
