// SPDX-License-Identifier: Apache-2.0
// Pointwise operators of a Builder, and broadcasts of their operands.
#include <fmt/format.h>

#include <cstring>

#include "recipes/fuse/operators.h"
#include "recipes/graph/reshape.h"

namespace cutegen::recipes {

View broadcast(const Shape& from, const Shape& to, const View& view) {
  View inner;
  for (size_t i = 0; i < from.size(); ++i) {
    size_t j = i + to.size() - from.size();
    const bool fixed = from[i] == 1 && to[j] != 1;
    inner.axes.push_back(fixed ? -1 : view.axes[j]);
    if (!view.starts.empty()) inner.starts.push_back(fixed ? Start{} : view.starts[j]);
  }
  return inner;
}

// Broadcasts an operand whose result is reshaped. Of each group of axes that the reshape converts,
// the operand must have all or none. If none, it does not vary along the group's new axes.
std::optional<View> broadcast_reshaped(const Shape& from, const Shape& to, const View& view) {
  Shape padded(to.size() - from.size(), 1);
  padded.insert(padded.end(), from.begin(), from.end());
  auto groups = group_axes(to, *view.reshaped);
  if (!groups) return std::nullopt;
  View inner = view;
  for (const AxisGroup& group : *groups) {
    bool all = true, none = true;
    for (size_t i : group.from) {
      all &= padded[i] == to[i];
      none &= padded[i] == 1;
    }
    if (all) continue;
    if (!none) return std::nullopt;
    for (size_t j : group.to) {
      inner.axes[j] = -1;
      (*inner.reshaped)[j] = 1;
      if (!inner.starts.empty()) inner.starts[j] = {};
    }
  }
  return inner;
}

namespace {

Result<std::vector<int>> operands_of(Builder& builder, const Node& node, const Pointwise& p,
                                     const View& view) {
  NestWriter& nest = builder.nest();
  const Shape& to = node.outputs.front().shape;
  std::vector<int> inputs;
  for (const std::string& operand : p.operands) {
    Shape from = nest.shape_of(operand);
    if (from.size() > to.size())
      return unsupported_error(node.op + ": shapes do not broadcast", node.id);
    View inner = view;
    if (!view.reshaped) {
      inner = broadcast(from, to, view);
    } else {
      auto seen = broadcast_reshaped(from, to, view);
      if (!seen) return nest.cut_at(node, "a reshape of a broadcast result");
      inner = *seen;
    }
    CG_TRY(int input, builder.value(operand, inner));
    // A size is a number of 64 bits, which arithmetic on floats converts.
    if (p.integer && operand.starts_with(kSize))
      input =
          nest.constant("int64_t" + nest.fused().insts[size_t(input)].code.substr(strlen("float")));
    inputs.push_back(input);
  }
  return inputs;
}

// Converts integers and truth values, which take part in arithmetic as floats.
std::vector<int> as_numbers(Builder& builder, const Node& node, const Pointwise& p,
                            std::vector<int> inputs) {
  NestWriter& nest = builder.nest();
  bool copies = (p.code == "{0}" && is_floating(node.outputs.front().dtype)) ||
                base_name(node.op) == "_to_copy";
  bool divides = p.code.find('/') != std::string::npos;
  for (int& input : inputs) {
    const Inst& i = nest.fused().insts[size_t(input)];
    if ((i.integer && !p.boolean) || (i.boolean && (copies || divides)))
      input = nest.make("number", "float({0})", {input});
  }
  return inputs;
}

}  // namespace

Result<int> build_pointwise(Builder& builder, const Node& node, const Pointwise& p,
                            const View& view) {
  NestWriter& nest = builder.nest();
  DType dtype = node.outputs.front().dtype;
  const bool casts = is_integer(dtype) && base_name(node.op) == "_to_copy";
  if (!is_floating(dtype) && dtype != DType::boolean && !casts && !p.integer)
    return unsupported_error(fmt::format("{} of dtype {}", node.op, to_string(dtype)), node.id);
  CG_TRY(std::vector<int> inputs, operands_of(builder, node, p, view));
  if (casts && nest.fused().insts[size_t(inputs.front())].integer) {
    if (dtype == DType::i64) return inputs.front();
    if (device_type(dtype).empty())
      return unsupported_error(fmt::format("{} of integers to {}", node.op, to_string(dtype)),
                               node.id);
    return nest.make("number", fmt::format("int64_t({}({{0}}))", device_type(dtype)), inputs, false,
                     true);
  }
  if (p.integer) {
    for (int& input : inputs) {
      const Inst& i = nest.fused().insts[size_t(input)];
      if (!i.integer && !i.boolean && i.kind != InstKind::constant)
        input = nest.make("number", "int64_t({0})", {input}, false, true);
    }
    return nest.make(node.id, p.code, std::move(inputs), false, true);
  }
  inputs = as_numbers(builder, node, p, std::move(inputs));
  if (p.code == "{0}") return inputs.front();
  return nest.make(node.id, p.code, std::move(inputs), p.boolean);
}

}  // namespace cutegen::recipes
