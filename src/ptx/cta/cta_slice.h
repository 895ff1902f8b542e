// SPDX-License-Identifier: Apache-2.0
// CtaSlice: the instructions of a program whose results follow from the parameters and from the
// indices of CTA, thread and round of a loop alone, and the decisions that they make.
//
// Contract: an instruction belongs to the slice if all its operands do and no other instruction
// writes its result. A register that a loop advances (Counter) may have two writers. A decision is
// a predicate, a comparison, a shift or a factor of data that depends on the CTA's index. The slice
// omits instructions that no decision needs.
//
// Example: CtaSlice slice(program); for (size_t pc : slice.by_cta) { /* evaluate it */ }
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ptx/decode/program.h"

namespace cutegen::ptx {

// What a value depends on, as bits.
inline constexpr uint8_t kByCta = 1, kByThread = 2, kByLoop = 4;
uint8_t dependence(Special which);

// The type by which an instruction compares its operands.
enum class Compared : uint8_t { s16, u16, s32, u32, s64, u64, f32, f64, none };

// One outcome that may differ between CTAs. An order (less, equal, greater) shows more than the
// result of a comparison: if it changes between the first and the last thread of a CTA, some thread
// between them may be equal.
struct Decision {
  enum class Of : uint8_t { predicate, zero, order } of = Of::predicate;
  int32_t slot = -1, other = -1;  // order: the operands
  int32_t bytes = 0;              // per lane
  Compared as = Compared::none;
  uint8_t depends = 0;
  int32_t guard = -1;  // the predicate, if it guards a branch
};

// A register that one instruction sets before a loop, and one instruction changes in the loop.
struct Counter {
  int32_t slot = -1;
  size_t first = 0, next = 0;  // the instructions that write it
  uint8_t depends = kByLoop;
};

class CtaSlice {
 public:
  explicit CtaSlice(const Program& program);

  // Instructions in order of evaluation, by what their results depend on. Those of `by_loop` need
  // counters.
  std::vector<size_t> once, by_cta, by_thread, by_loop;
  std::vector<Counter> counters;
  std::vector<Decision> decisions;
  bool depends_on_threads = false;  // some decision does

 private:
  struct Value {
    uint8_t depends = 0;
    int64_t pc = -1;  // -1: a constant, special register or counter
  };
  using Writers = std::unordered_map<int32_t, std::vector<size_t>>;

  void find_counters();
  void spread();
  bool is_plain(size_t pc) const;
  bool knows(size_t pc) const;
  uint8_t depends_of(size_t pc) const;
  int32_t bytes_of(int32_t slot) const;
  void add(int32_t written, Decision decision);
  void add_zero(int32_t slot);
  void find_decisions();
  void find_factors();
  void keep_needed();

  const Program& p_;
  Writers writers_;
  std::unordered_map<int32_t, Value> known_;
  std::vector<size_t> order_;
  std::unordered_set<int32_t> decided_, guards_;  // registers
};

}  // namespace cutegen::ptx
