// SPDX-License-Identifier: Apache-2.0
#include "recipes/fuse/nest_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace cutegen::recipes {

NestWriter::NestWriter(const Region& region, std::vector<Axis> axes)
    : region_(region), graph_(region.source.graph) {
  fused_.axes = std::move(axes);
  fused_.names = region.names;
}

Shape NestWriter::shape_of(const std::string& name) const {
  const Value* value = graph_.find(name);
  return value ? value->shape : Shape{};
}

void NestWriter::cut_before(const std::string& name) {
  if (cut_.empty()) cut_ = name;
}

tl::unexpected<Error> NestWriter::cut_at(const Node& node, const std::string& why) {
  cut_before(node.outputs.front().name);
  return unsupported_error(why, node.id);
}

int NestWriter::add(Inst inst) {
  fused_.insts.push_back(std::move(inst));
  return int(fused_.insts.size()) - 1;
}

int NestWriter::make(const std::string& name, const std::string& code, std::vector<int> inputs,
                     bool boolean, bool integer) {
  const std::string key = fmt::format("make {} {} {}", code, fmt::join(inputs, ","),
                                      boolean   ? "boolean"
                                      : integer ? "integer"
                                                : "");
  if (auto it = built_.find(key); it != built_.end()) return it->second;
  Inst inst;
  inst.kind = InstKind::pointwise;
  inst.name = name;
  inst.code = code;
  inst.boolean = boolean;
  inst.integer = integer;
  for (int input : inputs) {
    const Inst& i = fused_.insts[size_t(input)];
    if (i.level == Level::element) inst.level = Level::element;
    inst.depth = std::max(inst.depth, i.depth);
  }
  inst.inputs = std::move(inputs);
  return built_[key] = add(std::move(inst));
}

int NestWriter::reduce(const std::string& name, ReduceKind kind, int input) {
  std::string key = fmt::format("reduce {} {}", int(kind), input);
  if (auto it = built_.find(key); it != built_.end()) return it->second;
  Inst inst;
  inst.kind = InstKind::reduction;
  inst.name = name;
  inst.reduce = kind;
  inst.integer = kind == ReduceKind::argmax || kind == ReduceKind::argmin ||
                 kind == ReduceKind::total || kind == ReduceKind::largest ||
                 kind == ReduceKind::smallest;
  inst.depth = fused_.insts[size_t(input)].depth + 1;
  inst.inputs = {input};
  return built_[key] = add(std::move(inst));
}

int NestWriter::constant(const std::string& code) {
  Inst inst;
  inst.kind = InstKind::constant;
  inst.code = code;
  return add(std::move(inst));
}

int NestWriter::position() {
  if (auto it = built_.find("position"); it != built_.end()) return it->second;
  Inst inst;
  inst.kind = InstKind::position;
  inst.level = Level::element;
  inst.name = "position";
  inst.integer = true;
  return built_["position"] = add(std::move(inst));
}

// Adds an operand without a tensor, whose elements are 0, 1, 2, ... along an axis of the nest.
int NestWriter::places(int axis, const std::string& extent) {
  const std::string key = fmt::format("{} {}", kPlaces, axis);
  if (auto it = built_.find(key); it != built_.end()) return it->second;
  fused_.names.emplace(kPlaces, "place");
  const int64_t size = fused_.axes[size_t(axis)].size;
  Operand operand{.tensor = kPlaces,
                  .dtype = DType::i64,
                  .shape = {size},
                  .axes = {axis},
                  .original = {size},
                  .counts = true};
  if (!extent.empty()) operand.extents = {extent};
  Inst inst;
  inst.kind = InstKind::leaf;
  inst.name = kPlaces;
  inst.operand = int(fused_.inputs.size());
  inst.integer = true;
  if (fused_.axes[size_t(axis)].reduced) inst.level = Level::element;
  fused_.inputs.push_back(std::move(operand));
  return built_[key] = add(std::move(inst));
}

int NestWriter::line(const std::vector<std::pair<int, int64_t>>& terms) {
  std::string key = "line";
  for (const auto& [axis, step] : terms) key += fmt::format(" {}*{}", axis, step);
  if (auto it = built_.find(key); it != built_.end()) return it->second;
  fused_.names.emplace(kPlaces, "place");
  Operand operand{.tensor = kPlaces, .dtype = DType::i64, .counts = true};
  Inst inst;
  inst.kind = InstKind::leaf;
  inst.name = kPlaces;
  inst.operand = int(fused_.inputs.size());
  inst.integer = true;
  for (const auto& [axis, step] : terms) {
    operand.axes.push_back(axis);
    operand.steps.push_back(step);
    operand.shape.push_back(axis < 0 ? 1 : fused_.axes[size_t(axis)].size);
    if (axis >= 0 && fused_.axes[size_t(axis)].reduced) inst.level = Level::element;
  }
  operand.original = operand.shape;
  fused_.inputs.push_back(std::move(operand));
  return built_[key] = add(std::move(inst));
}

}  // namespace cutegen::recipes
