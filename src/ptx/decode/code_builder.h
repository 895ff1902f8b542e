// SPDX-License-Identifier: Apache-2.0
// CodeBuilder: builds a `Program` (a decoded kernel) instruction by instruction, and allocates
// slots in its register file.
//
// Contract: begin() sets the current statement. emit() adds an instruction with the guard and the
// line of the current statement. wrong() returns a user error that names the current statement.
//
// Example: code.begin(s, guard); code.emit(in, {in.a}, {in.d});
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "ptx/decode/decode.h"
#include "ptx/decode/forms.h"
#include "ptx/text/ast.h"

namespace cutegen::ptx {

// The place of an operand (a register, an immediate or a special register) in a warp's register
// file.
struct Slot {
  int32_t offset = -1;
  int size = 0;  // bytes per lane; 0: predicate
};

struct Guard {
  int32_t slot = -1;
  bool negated = false;
};

class CodeBuilder {
 public:
  void begin(const Statement& s, Guard guard) { now_ = &s, guard_ = guard; }
  const Statement& now() const { return *now_; }
  const Guard& guard() const { return guard_; }

  Inst& emit(Inst in, std::vector<int32_t> reads, std::vector<int32_t> writes);
  // Emits the arithmetic instruction `form` of the table of forms (forms.h), without flags such as
  // ftz.
  Result<void> simple(const std::string& form, Slot d, const std::vector<Slot>& sources,
                      int64_t imm = 0);
  // Emits an instruction that ends the launch as `unsupported` when a warp executes it.
  Result<void> unsupported(const std::string& what);
  Inst& last() { return program.code.back(); }

  // `size` is the number of bytes per lane, or 0 for a predicate.
  int32_t allocate(int size);
  // Allocates a slot that the liveness analysis treats as a register of the kernel.
  Slot add_register(int size);
  Slot constant(uint64_t bits, int size, int32_t variable = -1);
  Slot special(Special which);
  // Returns the slot of the carry flag, which add.cc, subc, madc and so on use.
  Slot carry();
  // Returns scratch registers for one instruction: five words per lane.
  const int32_t* scratch();
  // Stores a list in the program, so that Inst::list can point to the list.
  const int32_t* keep(std::vector<int32_t> list);
  int64_t used() const { return used_; }
  // Runs analyze_liveness(), mark_patterns() and mark_wgmma_registers(), and returns the Program.
  // finish() leaves the builder empty.
  Program finish();

  tl::unexpected<Error> wrong(const std::string& message) const;
  Result<void> count(const Statement& s, size_t least, size_t most) const;

  Program program;

 private:
  std::vector<Effects> effects_;
  std::vector<SlotRange> slots_;  // registers, for liveness
  std::map<std::tuple<uint64_t, int, int32_t>, Slot> constants_;
  std::map<Special, Slot> specials_;
  Slot carry_;
  int32_t scratch_[5] = {-1, -1, -1, -1, -1};
  int64_t used_ = 0, predicates_at_ = 0;
  const Statement* now_ = nullptr;
  Guard guard_;
};

}  // namespace cutegen::ptx
