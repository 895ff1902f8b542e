// SPDX-License-Identifier: Apache-2.0
// CtaSlice: the part of a program that can be evaluated without memory. The results of the slice's
// instructions depend only on kernel parameters and on the indices of CTA, thread and loop
// iteration. A CtaSlice also lists the decisions (branches, comparisons, ...) that the slice's
// instructions make.
//
// Contract: the slice contains an instruction if the slice computes all its operands and no other
// instruction writes its result register. Only a register that a loop advances (`Counter`) may have
// two writers. A decision depends on the CTA's index. A decision is a predicate, a comparison, a
// shift, or the question whether an operand of arithmetic on data, such as a factor, is zero. The
// slice omits instructions that no decision needs.
//
// Example: CtaSlice slice(program); for (size_t pc : slice.by_cta) { /* evaluate it */ }
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ptx/decode/program.h"

namespace cutegen::ptx {

// Bits that say which indices a value depends on.
inline constexpr uint8_t kByCta = 1, kByThread = 2, kByLoop = 4;
uint8_t dependence(Special which);

// The type of the operands of a comparison.
enum class Compared : uint8_t { s16, u16, s32, u32, s64, u64, f32, f64, none };

// A value in the program whose outcome may differ between CTAs. The outcome of a comparison is the
// order of its operands (less, equal, greater), because the order says more than true or false. If
// the order differs between the first and the last thread of a CTA, the operands may be equal in a
// thread between these two.
struct Decision {
  enum class Of : uint8_t { predicate, zero, order } of = Of::predicate;
  int32_t slot = -1, other = -1;  // order: the operands
  int32_t bytes = 0;              // per lane
  Compared as = Compared::none;
  uint8_t depends = 0;
  int32_t guard = -1;  // the predicate, if the decision guards a branch
};

// A register that one instruction sets before a loop and another instruction changes in the loop.
struct Counter {
  int32_t slot = -1;
  size_t first = 0, next = 0;  // the instructions that write the register
  uint8_t depends = kByLoop;
};

class CtaSlice {
 public:
  explicit CtaSlice(const Program& program);

  // The slice's instructions in order of evaluation, grouped by the indices on which their results
  // depend. The instructions in `by_loop` use counters.
  std::vector<size_t> once, by_cta, by_thread, by_loop;
  std::vector<Counter> counters;
  std::vector<Decision> decisions;
  bool depends_on_threads = false;  // whether some decision depends on the thread index

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
