// SPDX-License-Identifier: Apache-2.0
#include "recipes/fuse/builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "recipes/fuse/extents.h"
#include "recipes/fuse/operators.h"
#include "recipes/fuse/views.h"

namespace cutegen::recipes {
namespace {

// Returns the index of a value among its node's outputs.
size_t output_index(const Node& node, const std::string& name) {
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (node.outputs[i].name == name) return i;
  return 0;
}

// Whether a slice has all elements of its tensor.
bool is_whole(const Operand& operand, const std::vector<Axis>& axes) {
  for (size_t i = 0; i < operand.starts.size(); ++i) {
    if (operand.starts[i].index >= 0) return false;
    const int64_t length = operand.axes[i] < 0 ? 1 : axes[size_t(operand.axes[i])].size;
    if (operand.starts[i].at > 0 || length != operand.shape[i]) return false;
  }
  return true;
}

// Adds the conditions on sizes under which the operand's slice is correct to the plan's
// requirements.
void demand_starts(Fused& fused, const Operand& operand) {
  for (size_t i = 0; i < operand.starts.size(); ++i)
    if (operand.starts[i].multiple > 0)
      operand.starts[i].by_number ? demand_size(fused, operand, i)
                                  : demand_parts(fused, operand, i);
  for (size_t i = 0; i < operand.starts.size(); ++i)
    if (operand.starts[i].step > 1) demand_parts(fused, operand, i);
  for (size_t i = 0; i < operand.starts.size(); ++i)
    if (operand.starts[i].nearest && fused.names.count(operand.tensor))
      demand_elements(fused, operand, i);
}

}  // namespace

Result<int> Builder::value(const std::string& name, const View& seen) {
  View view = seen;
  if (view.reshaped && *view.reshaped == nest_.shape_of(name)) view.reshaped.reset();
  std::string key = fmt::format("{} {}", name, fmt::join(view.axes, ","));
  if (view.reshaped) key += " as " + to_string(*view.reshaped);
  for (const Start& start : view.starts) {
    key += fmt::format(" from {}{} by {}", start.at, start.from, start.step);
    if (start.index >= 0)
      key += fmt::format("+{} {} {}{}", start.index, start.rule(), start.shift,
                         start.reversed ? "-" : "+");
  }
  if (auto it = built_.find(key); it != built_.end()) return it->second;
  CG_TRY(int inst, build(name, nest_.graph().producer(name), view));
  return built_[key] = inst;
}

Result<int> Builder::build(const std::string& name, const Node* node, const View& view) {
  if (name.starts_with(kSize)) return sizes_.size(name.substr(kSize.size()));
  if (!node || nest_.region().kept.count(name)) return leaf(name, view);
  if (node->op.find("getitem") != std::string::npos) {
    auto from = reference(argument(*node, 0, ""));
    Json index = argument(*node, 1, "");
    if (from && index.is_number_integer())
      return value(fmt::format("{}.{}", *from, index.get<int64_t>()), view);
  }
  if (is_slice(*node)) return build_slice(*this, *node, output_index(*node, name), view);
  if (is_join(*node)) return build_join(*this, *node, view);
  CG_TRY(auto gather, find_gather(nest_.graph(), *node));
  if (gather) return build_gather(*this, *node, *gather, view);
  if (output_index(*node, name) != 0)
    return unsupported_error(fmt::format("output {} of {}", output_index(*node, name), node->op),
                             node->id);
  CG_TRY(auto seen, build_view(*this, *node, view));
  if (seen) return *seen;
  if (node->op == kInside) return build_inside(*this, *node, view);
  if (node->op == kShift) return build_shift(*this, *node, view);
  if (node->op == kCounting) return build_counting(*this, *node, view);
  if (node->op == kAffine) return build_affine(*this, *node, view);
  if (node->op == kBlocks) return build_blocks(*this, *node, view);
  if (node->op == kFilled) return build_filled(*this, *node, view);
  if (node->op == kValues) return build_values(*this, *node, view);
  CG_TRY(auto reducing, find_reduction(nest_.graph(), *node));
  if (reducing) return build_reduction(*this, *node, *reducing, view);
  CG_TRY(auto p, lower_pointwise(*node));
  if (!p) return unsupported_error("no recipe covers " + node->op, node->id);
  return build_pointwise(*this, *node, *p, view);
}

Result<int> Builder::leaf(const std::string& name, const View& view) {
  const Value* value = nest_.graph().find(name);
  if (!value) return unsupported_error("the graph has no value " + name);
  if (device_type(value->dtype).empty())
    return unsupported_error(fmt::format("{} of dtype {}", name, to_string(value->dtype)));
  Operand operand{.tensor = name,
                  .dtype = value->dtype,
                  .shape = value->shape,
                  .axes = view.axes,
                  .reshaped = false,
                  .original = value->shape,
                  .kept = false,
                  .extents = {},
                  .parts = {}};
  if (auto kept = nest_.region().kept.find(name); kept != nest_.region().kept.end()) {
    operand.kept = true;
    operand.extents = kept->second;
    if (auto parts = nest_.region().parts.find(name); parts != nest_.region().parts.end())
      operand.parts = parts->second;
  }
  if (view.reshaped && *view.reshaped != value->shape) {
    operand.reshaped = true;
    operand.shape = *view.reshaped;
  }
  operand.starts = view.starts;
  if (is_whole(operand, nest_.fused().axes)) operand.starts.clear();
  demand_starts(nest_.fused(), operand);
  Inst inst;
  inst.kind = InstKind::leaf;
  inst.name = name;
  inst.operand = int(nest_.fused().inputs.size());
  inst.boolean = value->dtype == DType::boolean;
  inst.integer = is_integer(value->dtype);
  for (size_t i = 0; i < operand.axes.size(); ++i) {
    int axis = operand.axes[i];
    if (axis >= 0 && nest_.fused().axes[size_t(axis)].reduced) inst.level = Level::element;
  }
  if (gathers_along(nest_.fused(), operand)) inst.level = Level::element;
  nest_.fused().inputs.push_back(std::move(operand));
  nest_.fused().insts.push_back(std::move(inst));
  return int(nest_.fused().insts.size()) - 1;
}

Result<void> Builder::aim(Operand& output, const Write& write) {
  const Shape whole = nest_.shape_of(write.tensor);
  const int along = output.axes[write.axis];
  output.mode = write.mode;
  output.shape = output.original = whole;
  output.starts.resize(whole.size());
  Start& start = output.starts[write.axis];
  if (!write.index.empty()) {
    const View seen{.axes = write.along ? output.axes : std::vector<int>{along}, .reshaped = {}};
    CG_TRY(int inst, value(write.index, seen));
    const Inst& leaf = nest_.fused().insts[size_t(inst)];
    if (leaf.kind != InstKind::leaf || !leaf.integer) {
      nest_.cut_before(write.index);
      return unsupported_error("a write to " + write.tensor + " at computed positions");
    }
    start.index = leaf.operand;
    start.wraps = write.wraps;
    output.axes[write.axis] = -1;
    return {};
  }
  const int64_t size = whole[write.axis];
  start.at = write.start < 0 ? std::max<int64_t>(0, write.start + size) : write.start;
  if (write.start < 0) start.from_end = size - start.at;
  return {};
}

}  // namespace cutegen::recipes
