// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/row_outputs.h"

#include <algorithm>
#include <optional>

#include "recipes/text/kernel_text.h"
#include "recipes/text/sizes_at_shapes.h"

namespace cutegen::recipes {
namespace {

bool is_plain(const Operand& operand) {
  return !operand.kept && !operand.reshaped && !operand.sliced() && !operand.counts &&
         operand.mode == WriteMode::store;
}

// A stage of pointwise work on whole tensors.
Fused* plain_stage(Stage& stage) {
  auto* fused = std::get_if<Fused>(&stage);
  if (!fused || fused->window || fused->special() || fused->scans() || fused->reduces())
    return nullptr;
  const bool plain =
      std::all_of(fused->inputs.begin(), fused->inputs.end(), is_plain) &&
      std::all_of(fused->outputs.begin(), fused->outputs.end(),
                  [](const FusedOutput& output) { return is_plain(output.operand); });
  const bool always = fused->when.empty() && fused->demands.empty();
  return plain && always && fused->sizes.empty() ? fused : nullptr;
}

// Whether `rows` has all axes of `whole` but the innermost one.
bool lacks_innermost(const Task& task, const Fused& rows, const Fused& whole) {
  const size_t axes = rows.axes.size();
  if (axes == 0 || axes + 1 != whole.axes.size() || whole.axes.back().size < 2) return false;
  for (size_t i = 0; i < axes; ++i)
    if (rows.axes[i].size != whole.axes[i].size ||
        !same_size(task, whole.names, rows.axes[i].extent, whole.axes[i].extent))
      return false;
  return true;
}

// Whether the stage writes all its outputs in full, in the order of its axes, to tensors that
// neither stage reads.
bool can_move(const Fused& rows, const Fused& whole) {
  return std::all_of(rows.outputs.begin(), rows.outputs.end(), [&](const FusedOutput& output) {
    const Operand& operand = output.operand;
    if (operand.axes.size() != rows.axes.size()) return false;
    for (size_t i = 0; i < operand.axes.size(); ++i)
      if (operand.axes[i] != int(i)) return false;
    const bool computed = rows.insts[size_t(output.inst)].kind == InstKind::pointwise;
    return computed && !in_place(rows, operand.tensor) &&
           std::none_of(whole.inputs.begin(), whole.inputs.end(),
                        [&](const Operand& input) { return input.tensor == operand.tensor; });
  });
}

bool same_operand(const Operand& a, const Operand& b) {
  const auto used = [](const Operand& operand) {
    std::vector<int> axes;
    for (int axis : operand.axes)
      if (axis >= 0) axes.push_back(axis);
    return axes;
  };
  return a.tensor == b.tensor && used(a) == used(b) && a.original == b.original;
}

bool same_inst(const Inst& a, const Inst& b) {
  return a.kind == b.kind && a.code == b.code && a.inputs == b.inputs && a.operand == b.operand &&
         a.boolean == b.boolean && a.integer == b.integer;
}

// Returns `whole` with the instructions and outputs of `rows`, unless `rows` reads more.
std::optional<Fused> joined(const Fused& rows, Fused whole) {
  std::vector<int> at;  // the instructions of `rows` in `whole`
  for (Inst inst : rows.insts) {
    if (inst.kind == InstKind::leaf) {
      const Operand& operand = rows.inputs[size_t(inst.operand)];
      const auto found = std::find_if(whole.inputs.begin(), whole.inputs.end(),
                                      [&](const Operand& o) { return same_operand(o, operand); });
      if (found == whole.inputs.end()) return std::nullopt;
      inst.operand = int(found - whole.inputs.begin());
    } else if (inst.kind != InstKind::pointwise && inst.kind != InstKind::constant) {
      return std::nullopt;
    }
    for (int& input : inst.inputs) input = at[size_t(input)];
    const auto same = std::find_if(whole.insts.begin(), whole.insts.end(),
                                   [&](const Inst& other) { return same_inst(other, inst); });
    at.push_back(int(same - whole.insts.begin()));
    if (same == whole.insts.end()) whole.insts.push_back(std::move(inst));
  }
  for (FusedOutput output : rows.outputs) {
    output.inst = at[size_t(output.inst)];
    whole.outputs.push_back(std::move(output));
  }
  return whole;
}

}  // namespace

void join_row_outputs(const Task& task, Stages& stages) {
  for (size_t i = 0; i < stages.list.size(); ++i) {
    const Fused* rows = plain_stage(stages.list[i]);
    for (size_t j = 0; rows && j < stages.list.size(); ++j) {
      Fused* whole = j == i ? nullptr : plain_stage(stages.list[j]);
      if (!whole || !lacks_innermost(task, *rows, *whole) || !can_move(*rows, *whole)) continue;
      auto both = joined(*rows, *whole);
      if (!both) continue;
      *whole = std::move(*both);
      stages.list.erase(stages.list.begin() + long(i--));
      break;
    }
  }
}

}  // namespace cutegen::recipes
