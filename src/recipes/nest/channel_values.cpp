// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/channel_values.h"

#include <algorithm>
#include <map>
#include <set>

namespace cutegen::recipes {
namespace {

// Which positions a value depends on: no position (constants, single elements), only the channel,
// or more.
enum class Reach { none, channel, more };

class Finder {
 public:
  explicit Finder(const Fused& fused) : fused_(fused) {}

  std::vector<int> run() {
    for (const FusedOutput& output : fused_.outputs) visit(output.inst);
    return {found_.begin(), found_.end()};
  }

 private:
  void visit(int inst) {
    if (!seen_.insert(inst).second) return;
    const Inst& i = fused_.insts[size_t(inst)];
    if (reach(inst) == Reach::channel && !i.boolean && !i.integer) {
      found_.insert(inst);
      return;
    }
    for (int input : i.inputs) visit(input);
  }

  Reach reach(int inst) {
    if (auto known = reach_.find(inst); known != reach_.end()) return known->second;
    return reach_[inst] = reach_of(inst);
  }

  Reach reach_of(int inst) {
    const Inst& i = fused_.insts[size_t(inst)];
    if (i.kind == InstKind::constant) return i.code == kCount ? Reach::more : Reach::none;
    if (i.kind == InstKind::leaf)
      return fused_.window && inst == fused_.window->inst ? Reach::more : of_leaf(i);
    if (i.kind != InstKind::pointwise) return Reach::more;
    Reach most = Reach::none;
    for (int input : i.inputs) most = std::max(most, reach(input));
    return most;
  }

  Reach of_leaf(const Inst& leaf) const {
    Reach most = Reach::none;
    for (int axis : fused_.inputs[size_t(leaf.operand)].axes)
      if (axis >= 0) most = std::max(most, axis == 1 ? Reach::channel : Reach::more);
    return most;
  }

  const Fused& fused_;
  std::map<int, Reach> reach_;
  std::set<int> seen_, found_;
};

}  // namespace

std::vector<int> channel_values(const Fused& fused) {
  std::vector<int> found = Finder(fused).run();
  if (found.size() > kMostChannelValues) found.clear();
  return found;
}

}  // namespace cutegen::recipes
