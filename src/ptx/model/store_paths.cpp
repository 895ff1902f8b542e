// SPDX-License-Identifier: Apache-2.0
#include "ptx/model/store_paths.h"

#include <utility>

namespace cutegen::ptx {
namespace {

constexpr size_t kMostSearches = 1024;

}  // namespace

StorePaths::StorePaths(const Program& program, std::vector<size_t> stores,
                       std::vector<int32_t> predicates)
    : p_(program), stores_(std::move(stores)), all_(stores_.size(), 1) {
  for (size_t i = 0; i < predicates.size(); ++i) bit_of_[predicates[i]] = i;
}

const std::vector<char>& StorePaths::reached(uint64_t outcomes) {
  auto at = known_.find(outcomes);
  if (at != known_.end()) return at->second;
  if (known_.size() >= kMostSearches) return all_;
  search(outcomes);
  std::vector<char>& out = known_[outcomes];
  for (size_t pc : stores_)
    out.push_back(seen_[pc] && value_of(p_.code[pc], outcomes) != Value::no);
  return out;
}

// The value of the instruction's guard, which may be negated.
StorePaths::Value StorePaths::value_of(const Inst& in, uint64_t outcomes) const {
  if (in.guard < 0) return Value::yes;
  auto at = bit_of_.find(in.guard);
  if (at == bit_of_.end()) return Value::unknown;
  return (outcomes >> at->second & 1) != in.guard_negated ? Value::yes : Value::no;
}

void StorePaths::search(uint64_t outcomes) {
  seen_.assign(p_.code.size(), 0);
  work_ = {0};
  while (!work_.empty()) {
    const size_t pc = work_.back();
    work_.pop_back();
    walk(pc, outcomes);
  }
}

// Follows the instructions from `pc` on until one that does not fall through.
void StorePaths::walk(size_t pc, uint64_t outcomes) {
  for (; pc < p_.code.size() && !seen_[pc]; ++pc) {
    seen_[pc] = 1;
    const Inst& in = p_.code[pc];
    if (in.op != Op::branch && in.op != Op::branch_index && in.op != Op::exit) continue;
    const Value value = value_of(in, outcomes);
    if (value != Value::no) leave(in);
    if (value == Value::yes) return;
  }
}

void StorePaths::leave(const Inst& in) {
  if (in.op == Op::branch && in.target >= 0) work_.push_back(size_t(in.target));
  if (in.op != Op::branch_index) return;
  for (int32_t target : p_.tables[size_t(in.target)]) work_.push_back(size_t(target));
}

}  // namespace cutegen::ptx
