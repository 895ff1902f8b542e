// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/kept_values.h"

#include <set>

namespace cutegen::recipes {

KeptValues kept_values(const Fused& fused, const std::vector<int>& later,
                       const std::vector<size_t>& room) {
  std::set<int> values, seen;
  std::set<size_t> needed;  // operands that later passes read as they are
  std::vector<int> work = later;
  while (!work.empty()) {
    const int inst = work.back();
    work.pop_back();
    const Inst& i = fused.insts[size_t(inst)];
    if (i.level != Level::element || !seen.insert(inst).second) continue;
    if (i.kind == InstKind::leaf)
      needed.insert(size_t(i.operand));
    else if (i.kind == InstKind::pointwise && i.depth == 0 && !i.boolean && !i.integer)
      values.insert(inst);
    else
      work.insert(work.end(), i.inputs.begin(), i.inputs.end());
  }
  KeptValues kept;
  auto place = room.begin();
  for (int value : values) {
    while (place != room.end() && needed.count(*place) != 0) ++place;
    if (place == room.end()) return {};
    kept[value] = *place++;
  }
  return kept;
}

}  // namespace cutegen::recipes
