// SPDX-License-Identifier: Apache-2.0
#include "ptx/model/load_groups.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "ptx/ops/async_copy.h"

namespace cutegen::ptx {
namespace {

constexpr size_t kMostTogether = 32;

bool loads_global(const Inst& in) {
  return in.op == Op::load && (in.space == Space::global || in.space == Space::generic);
}

// A forward branch with a condition skips guarded code. The assembler guards the instructions
// instead, so that loads before, inside and after the guarded code are in flight together.
bool skips_guarded_code(const Inst& in, size_t pc) {
  return in.op == Op::branch && in.guard >= 0 && in.target > int32_t(pc);
}

bool ends_block(const Inst& in, size_t pc) {
  if (skips_guarded_code(in, pc)) return false;
  return in.op == Op::branch || in.op == Op::branch_index || in.op == Op::exit ||
         in.op == Op::barrier || in.op == Op::atomic;
}

// By register: the length of the chain of dependent loads that its value needs, within a block.
class Depths {
 public:
  void clear() { of_.clear(); }
  int inputs(const Inst& in) const {
    return std::max({at(in.a), at(in.b), at(in.c), at(in.e), at(in.guard)});
  }
  void set(int32_t slot, int depth) {
    if (slot >= 0) of_[slot] = depth;
  }

 private:
  int at(int32_t slot) const {
    auto it = slot < 0 ? of_.end() : of_.find(slot);
    return it == of_.end() ? 0 : it->second;
  }
  std::unordered_map<int32_t, int> of_;
};

// The copies that a pipeline of cp.async keeps in flight: those of one group, times the number of
// groups that the program leaves pending at its waits, plus the group that it starts meanwhile.
int64_t groups_in_flight(const Program& program) {
  int64_t most = 0;
  for (const Inst& in : program.code)
    if (in.op == Op::async_wait && in.imm != kWaitAll) most = std::max(most, in.imm);
  return std::min(most, int64_t(kMostTogether)) + 1;
}

void count_copies(const Program& program, std::vector<uint8_t>& out) {
  const int64_t groups = groups_in_flight(program);
  std::vector<size_t> group;
  for (size_t i = 0; i < program.code.size(); ++i) {
    const Inst& in = program.code[i];
    if (in.op == Op::async_copy) group.push_back(i);
    const bool ends = in.op == Op::async_commit || in.op == Op::async_wait;
    if (!ends && i + 1 < program.code.size()) continue;
    for (size_t at : group)
      out[at] = uint8_t(std::min(int64_t(group.size()) * groups, int64_t(kMostTogether)));
    group.clear();
  }
}

}  // namespace

std::vector<uint8_t> load_groups(const Program& program) {
  std::vector<uint8_t> out(program.code.size());
  // The loads, by the number of stores before them and by their depth.
  std::map<std::tuple<int, int>, std::vector<size_t>> groups;
  Depths depths;
  int stores = 0;
  std::vector<std::pair<int32_t, int>> guards;  // ends and depths of the guarded code around
  auto close = [&] {
    for (const auto& [key, loads] : groups)
      for (size_t at : loads) out[at] = uint8_t(std::min(loads.size(), kMostTogether));
    groups.clear(), depths.clear(), guards.clear();
    stores = 0;
  };
  for (size_t i = 0; i < program.code.size(); ++i) {
    const Inst& in = program.code[i];
    if (ends_block(in, i)) {
      close();
      continue;
    }
    std::erase_if(guards, [&](const auto& guard) { return guard.first <= int32_t(i); });
    int depth = depths.inputs(in);
    for (const auto& guard : guards) depth = std::max(depth, guard.second);
    if (skips_guarded_code(in, i)) {
      guards.emplace_back(in.target, depth);
      continue;
    }
    stores += in.op == Op::store && in.space != Space::shared;
    if (in.op != Op::load) {
      depths.set(in.d, depth);
      continue;
    }
    const bool global = loads_global(in);
    for (int k = 0; k < in.vec; ++k) depths.set(in.v[k], depth + global);
    if (!global) continue;
    // Only a load of constant data may begin before an earlier store.
    const bool constant = program.lines[i].text.find(".nc") != std::string_view::npos;
    groups[{constant ? 0 : stores, depth}].push_back(i);
  }
  close();
  count_copies(program, out);
  return out;
}

}  // namespace cutegen::ptx
