// SPDX-License-Identifier: Apache-2.0
#include "ptx/model/load_groups.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace cutegen::ptx {
namespace {

constexpr size_t kMostTogether = 32;

bool loads_global(const Inst& in) {
  return in.op == Op::load && (in.space == Space::global || in.space == Space::generic);
}

bool ends_block(const Inst& in) {
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

}  // namespace

std::vector<uint8_t> load_groups(const Program& program) {
  std::vector<uint8_t> out(program.code.size());
  // The loads, by the number of stores before them and by their depth.
  std::map<std::tuple<int, int>, std::vector<size_t>> groups;
  Depths depths;
  int stores = 0;
  auto close = [&] {
    for (const auto& [key, loads] : groups)
      for (size_t at : loads) out[at] = uint8_t(std::min(loads.size(), kMostTogether));
    groups.clear(), depths.clear();
    stores = 0;
  };
  for (size_t i = 0; i < program.code.size(); ++i) {
    const Inst& in = program.code[i];
    if (ends_block(in)) {
      close();
      continue;
    }
    stores += in.op == Op::store && in.space != Space::shared;
    const int depth = depths.inputs(in);
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
  return out;
}

}  // namespace cutegen::ptx
