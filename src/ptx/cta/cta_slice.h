// SPDX-License-Identifier: Apache-2.0
// CtaSlice: the part of a program that can be evaluated without memory. The results of the slice's
// instructions depend only on kernel parameters and on the indices of CTA, thread and loop
// iteration. A CtaSlice also lists the decisions (branches, comparisons, ...) that the slice's
// instructions make, or the addresses of the program's global stores. SliceValues evaluates a
// slice.
//
// Contract: the slice contains an instruction if the slice computes all of the instruction's
// operands, and if no other instruction writes the same result register. Only a register that a
// loop advances (`Counter`) may have two writers. A decision depends on the CTA's index. A decision
// is the value of a predicate, the order of a comparison's operands, or whether a value is zero. A
// value that may be zero is the result of a shift, or an operand (such as a factor) of arithmetic
// on data. The slice omits instructions that no decision (or no address) needs. SliceValues
// evaluates 32 CTAs at a time: each lane of its registers belongs to one CTA, and all CTAs have the
// same thread index.
//
// Example: CtaSlice slice(program); SliceValues values(job);
//          values.run(slice.once); values.set_ctas(ctas); values.run(slice.by_cta);
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ptx/cta/job.h"
#include "ptx/cta/registers.h"

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

// A store to global memory whose address the slice computes.
struct StorePlace {
  size_t pc = 0;
  uint8_t depends = 0;
};

class CtaSlice {
 public:
  enum class Of : uint8_t { decisions, stores };
  explicit CtaSlice(const Program& program, Of of = Of::decisions);

  // The slice's instructions in order of evaluation, grouped by the indices on which their results
  // depend. The instructions in `by_loop` use counters.
  std::vector<size_t> once, by_cta, by_thread, by_loop;
  std::vector<Counter> counters;
  std::vector<Decision> decisions;
  std::vector<StorePlace> stores;  // only with Of::stores
  // Only with Of::stores: predicates that decide which stores a thread executes (StorePaths).
  std::vector<int32_t> conditions;
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
  void find_stores();
  void keep_needed();

  const Program& p_;
  Writers writers_;
  std::unordered_map<int32_t, Value> known_;
  std::vector<size_t> order_;
  std::unordered_set<int32_t> decided_, guards_;  // registers
};

class SliceValues {
 public:
  static constexpr size_t kLanes = 32;
  using Ctas = std::array<int64_t, kLanes>;  // indices in the grid
  explicit SliceValues(const Job& job) : job_(job), file_(job, 1), registers_(file_.of(0)) {}
  void run(size_t pc);
  void run(const std::vector<size_t>& pcs) {
    for (size_t pc : pcs) run(pc);
  }
  void set_ctas(const Ctas& ctas);
  void set_thread(int64_t thread);
  const std::byte* registers() const { return registers_; }
  int64_t steps() const { return steps_; }  // evaluated instructions

 private:
  void load(const Inst& in);
  void set_lane(const SpecialSlot& s, size_t lane, int64_t value);
  int64_t cta_value(Special which, const std::array<int64_t, 3>& at) const;
  uint32_t thread_value(Special which, int64_t thread) const;

  const Job& job_;
  RegisterFile file_;
  std::byte* registers_;
  int64_t steps_ = 0;
};

}  // namespace cutegen::ptx
