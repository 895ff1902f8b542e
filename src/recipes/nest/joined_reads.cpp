// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/joined_reads.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "recipes/nest/nest.h"

namespace cutegen::recipes {
namespace {

// The instructions that choose among the operands of one cat().
struct Choices {
  int place = -1;           // the leaf with the positions along the joined axis
  std::vector<int> leaves;  // the operands, in order
  std::vector<std::string> ends;
};

bool chooses(const Inst& inst) {
  return inst.kind == InstKind::pointwise && inst.code == kPartOfJoin;
}

// Follows the choices from the first one. Returns nothing if an operand is not a leaf.
std::optional<Choices> choices_from(const Fused& fused, int first) {
  Choices found{.place = fused.insts[size_t(first)].inputs[0]};
  int next = first;
  while (chooses(fused.insts[size_t(next)]) && fused.insts[size_t(next)].inputs[0] == found.place) {
    const std::vector<int>& inputs = fused.insts[size_t(next)].inputs;
    found.leaves.push_back(inputs[2]);
    found.ends.push_back(fused.insts[size_t(inputs[1])].code);
    next = inputs[3];
  }
  found.leaves.push_back(next);
  const auto is_leaf = [&](int inst) { return fused.insts[size_t(inst)].kind == InstKind::leaf; };
  if (!is_leaf(found.place) || !std::all_of(found.leaves.begin(), found.leaves.end(), is_leaf))
    return std::nullopt;
  return found;
}

bool is_written(const Fused& fused, const std::string& tensor) {
  return std::any_of(fused.outputs.begin(), fused.outputs.end(),
                     [&](const FusedOutput& output) { return output.operand.tensor == tensor; });
}

// The operand with the axis that `place` counts instead of an index that selects the nearest
// element. The operand begins where the operands before it end. Returns nothing for an operand that
// the kernel cannot read in this way.
std::optional<Operand> along_place(const Fused& fused, const Operand& operand, int place) {
  Operand part = operand;
  if (part.counts || part.reshaped || !part.steps.empty() || is_written(fused, part.tensor))
    return std::nullopt;
  for (size_t i = 0; i < part.starts.size(); ++i) {
    Start& start = part.starts[i];
    if (start.index < 0) continue;
    const bool plain = start.index == place && start.nearest && !start.reversed && !start.moves &&
                       start.at == 0 && start.from.empty() && start.step == 1;
    if (!plain || part.axes[i] >= 0) return std::nullopt;
    start = Start{.from = shift_text(fused, start)};
    part.axes[i] = fused.inputs[size_t(place)].axes[0];
  }
  if (position(part, fused.inputs[size_t(place)].axes[0]) < 0 || part.gathered())
    return std::nullopt;
  part.in_join = true;
  return part;
}

size_t axes_of(const Operand& operand) {
  return size_t(
      std::count_if(operand.axes.begin(), operand.axes.end(), [](int axis) { return axis >= 0; }));
}

// Whether a thread's tensors of the operands have the same strides, except for the values of
// strides, and each vector lies in one operand.
bool alike(const Fused& fused, const Operand& joined) {
  const Nest nest = make_nest(fused);
  std::vector<Loop> loops = nest.reduced;
  if (!nest.reduced_inside) loops.push_back(nest.kept.back());
  const int place = fused.inputs[size_t(joined.joined.place)].axes[0];
  const auto& inner = loops.back().axes;
  const bool along = std::find(inner.begin(), inner.end(), place) != inner.end();
  return std::all_of(joined.joined.operands.begin(), joined.joined.operands.end(), [&](int index) {
    const Operand& part = fused.inputs[size_t(index)];
    if (along && part.axes.back() != place) return false;  // width_text() knows the last axis
    return std::all_of(loops.begin(), loops.end(), [&](const Loop& loop) {
      return stride(fused, part, loop).move == stride(fused, joined, loop).move;
    });
  });
}

// Replaces the choices that begin with instruction `first` by a leaf.
std::optional<Fused> joined_at(const Fused& fused, int first) {
  const auto choices = choices_from(fused, first);
  if (!choices) return std::nullopt;
  Fused changed = fused;
  const int place = fused.insts[size_t(choices->place)].operand;
  Inst& leaf = changed.insts[size_t(first)];
  const Level level = leaf.level;
  leaf = fused.insts[size_t(choices->leaves[0])];
  leaf.level = level;
  leaf.operand = int(changed.inputs.size());
  changed.inputs.emplace_back();
  Operand joined;
  JoinedParts parts{.operands = {}, .ends = choices->ends, .place = place};
  for (int choice : choices->leaves) {
    const Inst& inst = fused.insts[size_t(choice)];
    auto part = along_place(fused, fused.inputs[size_t(inst.operand)], place);
    if (!part || (!parts.operands.empty() && part->dtype != joined.dtype)) return std::nullopt;
    if (parts.operands.empty() || axes_of(*part) > axes_of(joined)) joined = *part;
    parts.operands.push_back(int(changed.inputs.size()));
    changed.inputs.push_back(std::move(*part));
  }
  joined.in_join = false;
  joined.joined = std::move(parts);
  leaf.name = joined.tensor;
  changed.inputs[size_t(leaf.operand)] = joined;
  if (!alike(changed, joined)) return std::nullopt;
  return changed;
}

// Removes instructions on which no output depends, and operands that no instruction reads.
class Sweep {
 public:
  explicit Sweep(Fused& fused)
      : fused_(fused), insts_(fused.insts.size(), -1), operands_(fused.inputs.size(), -1) {}

  void run() {
    for (FusedOutput& output : fused_.outputs) {
      mark(output.inst);
      for (const Start& start : output.operand.starts) mark_operand(start.index);
    }
    std::vector<Inst> insts;
    for (size_t i = 0; i < insts_.size(); ++i)
      if (insts_[i] == kUsed) insts_[i] = int(insts.size()), insts.push_back(fused_.insts[i]);
    std::vector<Operand> operands;
    for (size_t i = 0; i < operands_.size(); ++i)
      if (operands_[i] == kUsed)
        operands_[i] = int(operands.size()), operands.push_back(std::move(fused_.inputs[i]));
    for (Inst& inst : insts) {
      for (int& input : inst.inputs) input = insts_[size_t(input)];
      if (inst.operand >= 0) inst.operand = operands_[size_t(inst.operand)];
    }
    for (Operand& operand : operands) renumber(operand);
    for (FusedOutput& output : fused_.outputs) {
      output.inst = insts_[size_t(output.inst)];
      renumber(output.operand);
    }
    fused_.insts = std::move(insts);
    fused_.inputs = std::move(operands);
  }

 private:
  static constexpr int kUsed = -2;

  void mark(int inst) {
    if (insts_[size_t(inst)] == kUsed) return;
    insts_[size_t(inst)] = kUsed;
    for (int input : fused_.insts[size_t(inst)].inputs) mark(input);
    mark_operand(fused_.insts[size_t(inst)].operand);
  }

  void mark_operand(int operand) {
    if (operand < 0 || operands_[size_t(operand)] == kUsed) return;
    operands_[size_t(operand)] = kUsed;
    const Operand& o = fused_.inputs[size_t(operand)];
    for (const Start& start : o.starts) mark_operand(start.index);
    for (int part : o.joined.operands) mark_operand(part);
    mark_operand(o.joined.place);
  }

  void renumber(Operand& operand) {
    for (Start& start : operand.starts)
      if (start.index >= 0) start.index = operands_[size_t(start.index)];
    for (int& part : operand.joined.operands) part = operands_[size_t(part)];
    if (operand.joined.place >= 0) operand.joined.place = operands_[size_t(operand.joined.place)];
  }

  Fused& fused_;
  std::vector<int> insts_, operands_;  // new numbers
};

}  // namespace

void join_reads(Fused& fused) {
  bool joined = false;
  // The first choice of a cat() comes after its other choices, which only elements behind the first
  // operand need.
  std::set<int> others;
  for (int i = int(fused.insts.size()); i-- > 0;) {
    if (!chooses(fused.insts[size_t(i)])) continue;
    others.insert(fused.insts[size_t(i)].inputs[3]);
    if (others.count(i) != 0) continue;
    if (auto changed = joined_at(fused, i)) fused = std::move(*changed), joined = true;
  }
  if (joined) Sweep(fused).run();
}

}  // namespace cutegen::recipes
