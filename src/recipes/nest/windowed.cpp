// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/windowed.h"

#include <fmt/format.h>

#include <algorithm>

#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {
namespace {

Result<Operand> operand_of(const Region& region, const std::string& name) {
  const Value* value = region.source.graph.find(name);
  if (!value) return unsupported_error("the graph has no value " + name);
  if (!is_floating(value->dtype) || device_type(value->dtype).empty())
    return unsupported_error(fmt::format("{} of dtype {}", name, to_string(value->dtype)));
  Operand operand{.tensor = name,
                  .dtype = value->dtype,
                  .shape = value->shape,
                  .axes = {},
                  .reshaped = false,
                  .original = value->shape,
                  .kept = false,
                  .extents = {},
                  .parts = {}};
  if (auto kept = region.kept.find(name); kept != region.kept.end()) {
    operand.kept = true;
    operand.extents = kept->second;
  }
  return operand;
}

// Whether the operand has the axes of the nest, in the same order. It may be a part of a tensor.
bool straight(const Fused& fused, const Operand& operand) {
  if (operand.reshaped || operand.axes.size() != fused.axes.size()) return false;
  for (size_t i = 0; i < fused.axes.size(); ++i)
    if (operand.axes[i] != int(i) || (!operand.sliced() && operand.shape[i] != fused.axes[i].size))
      return false;
  return true;
}

// How often a stage reads a tensor.
size_t reads(const Stage& stage, const std::string& tensor) {
  auto is = [&](const Operand& operand) { return operand.tensor == tensor; };
  auto among = [&](const std::vector<Operand>& operands) {
    return size_t(std::count_if(operands.begin(), operands.end(), is));
  };
  if (const auto* product = std::get_if<Contraction>(&stage))
    return among(product->loads.inputs) + among(product->finish.inputs);
  if (const auto* attention = std::get_if<Attention>(&stage)) return among(attention->loads.inputs);
  const Fused& fused = std::get<Fused>(stage);
  size_t count = among(fused.inputs);
  if (!fused.window) return count;
  // The window's own leaf is computed, not read.
  const Inst& leaf = fused.insts[size_t(fused.window->inst)];
  count -= is(fused.inputs[size_t(leaf.operand)]);
  return count + is(fused.window->input) + is(fused.window->weight);
}

// Whether the stage's work can follow a window in the window's kernel: it must consist of pointwise
// work and of reductions over the channels that give floats.
bool follows(const Fused& fused) {
  if (!fused.reduces()) return true;
  for (size_t i = 0; i < fused.axes.size(); ++i)
    if (fused.axes[i].reduced != (i == 1)) return false;
  const auto along = [&](const FusedOutput& output) {
    const std::vector<int>& axes = output.operand.axes;
    return std::find(axes.begin(), axes.end(), 1) != axes.end();
  };
  for (const FusedOutput& output : fused.outputs)
    if (along(output) != along(fused.outputs.front())) return false;
  return std::none_of(fused.insts.begin(), fused.insts.end(), [&](const Inst& inst) {
    return inst.kind == InstKind::position || (inst.kind == InstKind::reduction && inst.integer);
  });
}

bool accepts(const Fused& fused, const std::string& tensor) {
  if (fused.window || fused.special() || !follows(fused)) return false;
  for (const FusedOutput& output : fused.outputs)
    if (fused.reduces() ? output.operand.reshaped : !straight(fused, output.operand)) return false;
  return std::all_of(fused.inputs.begin(), fused.inputs.end(), [&](const Operand& operand) {
    return !operand.reshaped && (operand.tensor != tensor || straight(fused, operand));
  });
}

// Finds the only stage that reads the tensor; nothing if several do, or one does more than once.
Fused* only_reader(Stages& stages, const std::string& tensor) {
  Stage* found = nullptr;
  for (Stage& stage : stages.list) {
    const size_t count = reads(stage, tensor);
    if (count > 1 || (count == 1 && found)) return nullptr;
    if (count == 1) found = &stage;
  }
  auto* fused = found ? std::get_if<Fused>(found) : nullptr;
  return fused && accepts(*fused, tensor) ? fused : nullptr;
}

// The reader, which now computes the window itself as a leaf.
Fused joined(const Fused& window, Fused reader, const std::string& tensor) {
  WindowLeaf leaf = *window.window;
  for (size_t k = 0; k < reader.insts.size(); ++k) {
    const Inst& inst = reader.insts[k];
    if (inst.kind == InstKind::leaf && reader.inputs[size_t(inst.operand)].tensor == tensor)
      leaf.inst = int(k);
  }
  for (size_t k = 0; k < reader.axes.size(); ++k) reader.axes[k].extent = window.axes[k].extent;
  reader.window = std::move(leaf);
  return reader;
}

// Whether the stage reads slices, or does not write neighbouring elements. Kernels of windows can
// do neither.
bool has_slices(const Fused& fused) {
  const auto takes_turns = [](const Start& start) { return start.index >= 0 || start.step > 1; };
  return std::any_of(fused.inputs.begin(), fused.inputs.end(),
                     [](const Operand& operand) { return operand.sliced(); }) ||
         std::any_of(fused.outputs.begin(), fused.outputs.end(), [&](const FusedOutput& output) {
           const auto& starts = output.operand.starts;
           return std::any_of(starts.begin(), starts.end(), takes_turns);
         });
}

}  // namespace

Result<Fused> window_stage(const Region& region, const Window& window, const Value& result) {
  Fused fused;
  fused.names = region.names;
  WindowLeaf leaf{.window = window, .inst = 0};
  CG_TRY(leaf.input, operand_of(region, window.input));
  if (window.weighted()) {
    CG_TRY(leaf.weight, operand_of(region, window.weight));
  }
  std::vector<std::string> extents{size_text(fused, leaf.input, 0),
                                   size_text(fused, leaf.input, 1)};
  if (window.kind == WindowKind::convolution) extents[1] = size_text(fused, leaf.weight, 0);
  if (window.kind == WindowKind::transposed)
    extents[1] = fmt::format("({})*{}", size_text(fused, leaf.weight, 1), window.groups);
  if (window.kind == WindowKind::resample) {
    const auto& maps = window.resampling.maps;
    extents.clear();
    for (size_t i = 0; i < maps.size(); ++i) {
      const auto& as = maps[i].as;
      if (as && !fused.names.count(as->tensor))
        return unsupported_error("a size of " + as->tensor + ", which is not a tensor of the task");
      extents.push_back(
          maps[i].extent(size_text(fused, leaf.input, i),
                         as ? fmt::format("dim({},{})", fused.names.at(as->tensor), as->dim) : ""));
    }
  }
  for (size_t i = extents.size() - 2; i < window.rank(); ++i)
    extents.push_back("(" +
                      window.extent(i, size_text(fused, leaf.input, i + 2),
                                    window.pools() ? std::to_string(window.kernel[i])
                                                   : size_text(fused, leaf.weight, i + 2)) +
                      ")");
  CG_TRY(Operand own, operand_of(region, result.name));
  own.kept = true;
  own.extents = extents;
  for (size_t i = 0; i < result.shape.size(); ++i) {
    fused.axes.push_back({.size = result.shape[i], .reduced = false, .extent = extents[i]});
    own.axes.push_back(int(i));
  }
  Inst inst;
  inst.name = result.name;
  inst.operand = 0;
  fused.insts.push_back(std::move(inst));
  fused.inputs.push_back(own);
  fused.outputs.push_back({.operand = own, .inst = 0});
  fused.window = std::move(leaf);
  return fused;
}

void fuse_after_windows(Stages& stages, const std::map<std::string, std::string>& names,
                        const std::function<bool(const Fused&)>& fits) {
  for (size_t i = 0; i < stages.list.size();) {
    const auto* stage = std::get_if<Fused>(&stages.list[i]);
    const std::string tensor = outputs_of(stages.list[i]).front().operand.tensor;
    // A stage that already has work behind its window computes something other than its leaf.
    const bool bare =
        stage && stage->window && stage->insts.size() == 1 && stage->outputs.size() == 1;
    Fused* reader = bare ? only_reader(stages, tensor) : nullptr;
    std::optional<Fused> both =
        reader ? std::optional(joined(*stage, *reader, tensor)) : std::nullopt;
    if (!both || has_slices(*both) || !fits(*both)) {
      ++i;
      continue;
    }
    *reader = std::move(*both);
    const std::string& name = names.at(tensor);
    stages.scratch.erase(std::find_if(stages.scratch.begin(), stages.scratch.end(),
                                      [&](const Scratch& s) { return s.name == name; }));
    stages.list.erase(stages.list.begin() + long(i));
  }
}

}  // namespace cutegen::recipes
