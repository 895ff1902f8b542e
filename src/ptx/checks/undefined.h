// SPDX-License-Identifier: Apache-2.0
// Undefined: tracks undefined values from the load of an unwritten word to their use.
//
// Contract: a kernel may load an undefined value, for example if it loads the tail of a tile and
// discards it. A kernel has a fault if an address, a branch or an output depends on such a value.
// Each word of memory has a state of one byte: 0 never written, 1 written, 2 a copy of an undefined
// value. following() becomes true when a CTA reads an undefined value for the first time. From then
// on, every register has a mask of the lanes that depend on an undefined value.
//
// Example: if (auto t = undefined.follow(step)) report(t->origin, t->what);
#pragma once

#include <optional>

#include "ptx/checks/undefined_memory.h"
#include "ptx/checks/undefined_registers.h"

namespace cutegen::ptx {

class Undefined {
 public:
  using Step = UndefinedStep;
  struct Trouble {
    Origin origin;
    const char* what;
    int lane = 0;
  };

  Undefined(const Program& program, int warps, size_t shared_bytes, size_t local_bytes);
  void begin();
  bool following() const { return registers_.following(); }
  // Call follow() before an instruction, to mark the instruction's results as defined or undefined.
  // If the instruction has a fault, follow() returns the fault.
  std::optional<Trouble> follow(const Step& s);
  // Call clear() before a load, to mark the load's registers as defined.
  void clear(const Step& s);
  // Call load() before a load of unwritten words, to mark the load's registers as undefined.
  void load(const Step& s, const uint8_t* state, const uint64_t* at, const Origin& origin);

  const UndefinedRegisters& registers() const { return registers_; }
  UndefinedMemory& memory() { return memory_; }

 private:
  uint32_t at(int warp, int32_t slot) const { return registers_.mask_of(warp, slot); }
  std::optional<Trouble> sink(const Step& s, int32_t slot, uint32_t lanes, const char* what);
  void result(const Step& s);
  void shuffle(const Step& s);
  uint32_t settled(const Step& s);

  const Program& program_;
  UndefinedRegisters registers_;
  UndefinedMemory memory_;
  AluFn select_[3], and_, or_;
};

}  // namespace cutegen::ptx
