// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/in_place.h"

#include <fmt/format.h>

#include <algorithm>

#include "recipes/graph/names.h"
#include "recipes/nest/nest.h"
#include "recipes/text/kernel_text.h"

namespace cutegen::recipes {
namespace {

using Operands = std::vector<const Operand*>;

void add_inputs(const Fused& fused, Operands& list) {
  for (const Operand& operand : fused.inputs)
    if (!operand.counts) list.push_back(&operand);
  if (fused.window) list.insert(list.end(), {&fused.window->input, &fused.window->weight});
}

void add_inputs(const Contraction& product, Operands& list) {
  list.insert(list.end(), {&product.a.operand, &product.b.operand});
  for (const Contraction::Partner& partner : product.partners) list.push_back(&partner.b.operand);
  for (const Contraction& part : product.parts) add_inputs(part, list);
  add_inputs(product.loads, list);
  add_inputs(product.finish, list);
}

Operands inputs_of(const Stage& stage) {
  Operands list;
  if (const auto* product = std::get_if<Contraction>(&stage)) {
    add_inputs(*product, list);
  } else if (const auto* attention = std::get_if<Attention>(&stage)) {
    for (const Attended* a : {&attention->q, &attention->k, &attention->v})
      list.push_back(&a->operand);
    if (attention->mask) list.push_back(&attention->mask->operand);
    add_inputs(attention->loads, list);
  } else {
    add_inputs(std::get<Fused>(stage), list);
  }
  return list;
}

std::vector<FusedOutput>& outputs_in(Stage& stage) {
  if (auto* product = std::get_if<Contraction>(&stage)) return product->finish.outputs;
  if (auto* attention = std::get_if<Attention>(&stage)) return attention->outputs;
  return std::get<Fused>(stage).outputs;
}

const Operand* written_in(const Stage& stage, const std::string& tensor) {
  for (const FusedOutput& output : outputs_of(stage))
    if (!output.operand.kept && output.operand.tensor == tensor) return &output.operand;
  return nullptr;
}

bool same_element(const Operand& a, const Operand& b) {
  return a.axes == b.axes && a.shape == b.shape && !a.sliced() && !b.sliced() && a.parts.empty();
}

// Returns whether the stage may write a tensor that it also reads: each element must be read only
// by the thread that writes it. Several threads read an element that belongs to a whole row or
// nest. In a nest over columns, threads beyond the last column read the first column.
bool reads_before_writing(const Stage& stage, const Operand& written) {
  const auto* fused = std::get_if<Fused>(&stage);
  if (!fused || fused->window || fused->special() || fused->scans()) return false;
  if (fused->reduces() && (!make_nest(*fused).reduced_inside || !varies(*fused, written)))
    return false;
  const bool one_element = std::all_of(written.axes.begin(), written.axes.end(), [&](int axis) {
    return axis < 0 || fused->axes[size_t(axis)].size == 1;
  });
  if (one_element) return false;  // every thread reads it
  const Operands inputs = inputs_of(stage);
  return std::all_of(inputs.begin(), inputs.end(), [&](const Operand* input) {
    return input->tensor != written.tensor || same_element(*input, written);
  });
}

// Whether a stage could read the new value of the tensor.
bool reads_new_value(const Stages& stages, const std::string& tensor) {
  bool is_new = false;
  for (const Stage& stage : stages.list) {
    const Operands inputs = inputs_of(stage);
    const bool reads = std::any_of(inputs.begin(), inputs.end(), [&](const Operand* input) {
      return input->tensor == tensor && !input->kept;
    });
    const Operand* written = written_in(stage, tensor);
    if (reads && (is_new || (written && !reads_before_writing(stage, *written)))) return true;
    is_new = is_new || written;
  }
  return false;
}

void add_name(Contraction& product, const std::string& tensor, const std::string& name) {
  product.loads.names[tensor] = product.finish.names[tensor] = name;
  for (Contraction& part : product.parts) add_name(part, tensor, name);
}

void add_name(Stage& stage, const std::string& tensor, const std::string& name) {
  if (auto* product = std::get_if<Contraction>(&stage))
    add_name(*product, tensor, name);
  else if (auto* attention = std::get_if<Attention>(&stage))
    attention->loads.names[tensor] = name;
  else
    std::get<Fused>(stage).names[tensor] = name;
}

// The identifiers of all tensors and scratch buffers of the stages.
std::map<std::string, std::string> names_in(const Task& task, const Stages& stages) {
  std::map<std::string, std::string> names = short_names(task);
  for (const Scratch& scratch : stages.scratch) names.emplace(scratch.name, scratch.name);
  return names;
}

// Lets the stages write the new value to scratch, from which a last stage copies it.
Result<void> copy_last(const Task& task, const TensorInfo& tensor, Stages& stages) {
  std::map<std::string, std::string> names = names_in(task, stages);
  Names words;
  for (const auto& [of, name] : names) (void)words.unique(name);
  const std::string fresh = words.unique(names.at(tensor.name) + "_new");
  names.emplace(fresh, fresh);
  std::vector<std::string> extents;
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    extents.push_back(fmt::format("dim({},{})", names.at(tensor.name), i));
  for (Stage& stage : stages.list)
    for (FusedOutput& output : outputs_in(stage)) {
      Operand& operand = output.operand;
      if (operand.kept || operand.tensor != tensor.name) continue;
      operand.tensor = fresh, operand.kept = true, operand.extents = extents;
      add_name(stage, fresh, fresh);
    }
  Graph graph;
  graph.placeholders = {{.name = fresh, .dtype = tensor.dtype, .shape = tensor.shape}};
  graph.outputs = {fresh};
  const Decomposed source{.graph = std::move(graph), .extents = {}};
  CG_TRY(Fused copy,
         fuse(Region{.source = source,
                     .names = names,
                     .kept = {{fresh, extents}},
                     .outputs = {{.tensor = tensor.name, .value = fresh, .dtype = tensor.dtype}}})
             .fused);
  stages.scratch.push_back({.name = fresh, .dtype = tensor.dtype, .extents = extents});
  stages.list.emplace_back(std::move(copy));
  return {};
}

}  // namespace

Result<Stages> read_before_writing(const Task& task, Stages stages) {
  for (const TensorInfo& tensor : task.tensors)
    if (tensor.mutated && task.graph.finals.contains(tensor.name) &&
        reads_new_value(stages, tensor.name))
      CG_CHECK(copy_last(task, tensor, stages));
  return stages;
}

}  // namespace cutegen::recipes
