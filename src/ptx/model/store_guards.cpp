// SPDX-License-Identifier: Apache-2.0
#include "ptx/model/store_guards.h"

#include <algorithm>

namespace cutegen::ptx {
namespace {

constexpr size_t kMostVisits = 5'000'000;  // of instructions, in all searches together

enum class Side : uint8_t { none, falls_through, leaves };  // of a conditional branch or exit

// Finds the instructions that a thread can reach if the condition at `at` never goes to `closed`.
class Search {
 public:
  explicit Search(const Program& p) : p_(p) {}

  const std::vector<char>& reached(size_t at, Side closed) {
    at_ = at, closed_ = closed;
    seen_.assign(p_.code.size(), 0);
    work_ = {0};
    while (!work_.empty()) {
      const size_t pc = work_.back();
      work_.pop_back();
      walk(pc);
    }
    return seen_;
  }

 private:
  bool is_closed(size_t pc, Side side) const { return pc == at_ && side == closed_; }
  void leave(const Inst& in) {
    if (in.op == Op::branch && in.target >= 0) work_.push_back(size_t(in.target));
    if (in.op != Op::branch_index) return;
    for (int32_t target : p_.tables[size_t(in.target)]) work_.push_back(size_t(target));
  }
  // Follows the instructions from `pc` on until one that never falls through.
  void walk(size_t pc) {
    for (; pc < p_.code.size() && !seen_[pc]; ++pc) {
      seen_[pc] = 1;
      const Inst& in = p_.code[pc];
      if (in.op != Op::branch && in.op != Op::branch_index && in.op != Op::exit) continue;
      if (!is_closed(pc, Side::leaves)) leave(in);
      if (in.guard < 0 || is_closed(pc, Side::falls_through)) return;
    }
  }

  const Program& p_;
  size_t at_ = 0;
  Side closed_ = Side::none;
  std::vector<char> seen_;
  std::vector<size_t> work_;
};

}  // namespace

std::vector<std::vector<Guard>> guards_of(const Program& program, const std::vector<size_t>& stores,
                                          const std::vector<size_t>& conditions) {
  std::vector<std::vector<Guard>> out(stores.size());
  for (size_t i = 0; i < stores.size(); ++i) {
    const Inst& in = program.code[stores[i]];
    if (in.guard >= 0) out[i].push_back({.slot = in.guard, .holds = !in.guard_negated});
  }
  if (2 * conditions.size() * program.code.size() > kMostVisits) return out;
  Search search(program);
  for (size_t pc : conditions)
    for (Side closed : {Side::falls_through, Side::leaves}) {
      const Inst& in = program.code[pc];
      const std::vector<char>& reached = search.reached(pc, closed);
      // A thread leaves the straight path if the predicate, perhaps negated, is true.
      const bool holds = (closed == Side::leaves) != in.guard_negated;
      for (size_t i = 0; i < stores.size(); ++i)
        if (!reached[stores[i]]) out[i].push_back({.slot = in.guard, .holds = holds});
    }
  return out;
}

}  // namespace cutegen::ptx
