// SPDX-License-Identifier: Apache-2.0
// Undefined values: tracks words that nobody wrote from a read to their use.
//
// Contract: a kernel may read an undefined value (it may load a tile's tail and discard it). It is
// a fault if the value decides an address, a branch or what an output holds. Memory has one byte
// per word: 0 never written, 1 written, 2 a copy of an undefined value. From a CTA's first such
// read on, every register has a mask of the lanes that depend on one. Before it, following() is
// false.
//
// Example: if (auto t = undefined.follow(step)) report(t->origin, t->what);
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "ptx/decode/program.h"

namespace cutegen::ptx {

struct Origin {
  int32_t pc = 0;
  int thread = 0;
  Space space = Space::generic;  // generic: a register
  uint64_t at = 0;               // offset
  bool copied = false;           // the place holds a copy of an undefined value
  int32_t buffer = -1;           // index of Memory::State::buffers
};

class Undefined {
 public:
  static constexpr uint8_t kNever = 0, kWritten = 1, kCopy = 2;
  struct Step {
    std::byte* registers;
    const Inst& in;
    int32_t pc;
    int warp;
    uint32_t mask, current;  // lanes that execute it; with those that its guard disables
  };
  struct Trouble {
    Origin origin;
    const char* what;
    int lane = 0;
  };

  Undefined(const Program& program, int warps, size_t shared_bytes, size_t local_bytes);
  void begin();
  bool following() const { return following_; }
  // Before an instruction: marks its results, or returns the fault.
  std::optional<Trouble> follow(const Step& s);
  // The undefined lanes of a register.
  uint32_t mask_of(int warp, int32_t slot) const {
    return following_ ? masks_[size_t(warp)][size_t(slot) / 4] : 0;
  }
  Origin origin_of(int warp, int32_t slot) const;

  // Whether some lane reads a word that is not written. States are by word, from address 0.
  static bool suspicious(const uint8_t* state, uint32_t lanes, const AddressSummary& sum,
                         const uint64_t* at, uint32_t bytes);
  // Before a load: its registers become defined.
  void clear(const Step& s);
  // Before a load that reads words which are not written.
  void load(const Step& s, const uint8_t* state, const uint64_t* at, const Origin& origin);
  // Before a store. `left` counts the words that are not written.
  void store(const Step& s, uint8_t* state, const AddressSummary& sum, const uint64_t* at,
             size_t* left);

  uint8_t* shared() { return shared_.data(); }
  size_t* shared_left() { return &shared_left_; }
  uint8_t* local(int warp) { return local_.data() + size_t(warp) * local_words_ * 32; }

 private:
  void start();
  uint32_t& at(int warp, int32_t slot) { return masks_[size_t(warp)][size_t(slot) / 4]; }
  void mark(int warp, int32_t slot, uint32_t lanes, uint16_t origin, uint32_t of);
  void watch(const Step& s);
  std::optional<Trouble> sink(const Step& s, int32_t slot, uint32_t lanes, const char* what);
  void result(const Step& s);
  void shuffle(const Step& s);
  uint32_t settled(const Step& s);
  uint16_t add_origin(const Origin& o);

  const Program& program_;
  size_t local_words_;  // of a thread
  std::vector<uint8_t> shared_, local_;
  size_t shared_left_ = 0;
  bool following_ = false;
  std::vector<std::vector<uint32_t>> masks_;    // by warp and slot / 4
  std::vector<std::vector<uint16_t>> origins_;  // beside them
  std::vector<Origin> known_;
  std::vector<std::unordered_map<int32_t, uint32_t>> unwritten_;  // zeroed registers, by warp
  AluFn select_[3], and_, or_;
};

}  // namespace cutegen::ptx
