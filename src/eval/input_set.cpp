// SPDX-License-Identifier: Apache-2.0
#include "eval/input_set.h"

#include <algorithm>
#include <cmath>

#include "tensor/half.h"

namespace cutegen {
namespace {

Result<void> check_slot(const TensorSlot& slot, size_t total) {
  CG_TRY(int64_t count, element_count(slot.shape));
  if (slot.bytes != static_cast<size_t>(count) * size_of(slot.dtype) || slot.bytes > total ||
      slot.offset > total - slot.bytes)
    return world_error("the torch worker's tensor '" + slot.name + "' does not fit its memory");
  return {};
}

const TensorSlot* find_slot(const TensorSet& set, const std::string& name,
                            const std::string& part) {
  for (const TensorSlot& s : set.slots)
    if (s.name == name && s.part == part) return &s;
  return nullptr;
}

std::vector<double> values_of(const Mapping& memory, const TensorSlot& slot) {
  std::vector<double> out(slot.bytes / size_of(slot.dtype));
  to_double(slot.dtype, {memory.data() + slot.offset, slot.bytes}, out);
  return out;
}

// Rounding errors of a sum in order, one after the other, grow like the root of its length against
// those of the native one, which sums by blocks.
double growth_in_order(const Task& task, const ShapeCase& shape) {
  constexpr double kBlock = 256, kMost = 8;
  if (task.workload == "elementwise") return 1;
  int64_t longest = 1;
  for (const auto& [name, dims] : shape.tensors)
    for (int64_t d : dims) longest = std::max(longest, d);
  return std::clamp(std::sqrt(static_cast<double>(longest) / kBlock), 1.0, kMost);
}

Result<Expected> expected_of(const Task& task, const TensorInfo& info, const ShapeCase& at,
                             const TensorSet& set, const Mapping& memory) {
  const Shape& shape = at.tensors.at(info.name);
  const TensorSlot* truth = find_slot(set, info.name, "truth");
  const TensorSlot* native = find_slot(set, info.name, "native");
  const TensorSlot* sensitivity = find_slot(set, info.name, "sensitivity");
  if (!native) return world_error("the torch worker gave no result for '" + info.name + "'");
  if (!truth) truth = native;  // float64 did not run: the set's notes say so
  if (native->shape != shape || native->dtype != info.dtype ||
      truth->bytes / size_of(truth->dtype) != native->bytes / size_of(native->dtype))
    return world_error("the torch worker's result for '" + info.name + "' has another shape");
  std::vector<double> wiggle;
  if (sensitivity) wiggle = values_of(memory, *sensitivity);
  if (wiggle.size() != native->bytes / size_of(native->dtype)) wiggle.clear();
  Expected e = make_expected({info.name, info.dtype, shape}, values_of(memory, *truth),
                             values_of(memory, *native), wiggle, tolerance_rule(task, at));
  // The reference gives no result for what it makes NaN of; elsewhere it does.
  e.nan_is_undefined = set.family == "special";
  return e;
}

}  // namespace

ToleranceRule tolerance_rule(const Task& task, const ShapeCase& shape) {
  ToleranceRule rule;
  switch (task.math_mode) {
    case MathMode::fp32:
      rule = {32 * growth_in_order(task, shape), 0x1p-23};
      break;
    case MathMode::tf32:
    case MathMode::fp16:
      rule = {4, 0x1p-10};
      break;
    case MathMode::bf16:
      rule = {4, 0x1p-7};
      break;
  }
  rule.factor *= task.tolerance.value_or(1.0);
  return rule;
}

double compat_tolerance(MathMode mode) {
  return mode == MathMode::fp16 || mode == MathMode::bf16 ? 1e-2 : 1e-4;
}

Result<std::shared_ptr<const InputSet>> make_input_set(const Task& task, const ShapeCase& shape,
                                                       TensorSet tensors) {
  auto set = std::make_shared<InputSet>();
  set->shape = shape.name;
  set->family = tensors.family;
  set->notes = tensors.notes;
  set->model_seed = tensors.model_seed;
  CG_TRY(set->memory, Mapping::map(tensors.memory.get(), tensors.bytes, false));
  for (const TensorSlot& slot : tensors.slots) CG_CHECK(check_slot(slot, tensors.bytes));
  for (const TensorInfo& info : task.tensors) {
    auto at = shape.tensors.find(info.name);
    if (at == shape.tensors.end())
      return world_error("shape '" + shape.name + "' lacks the tensor '" + info.name + "'");
    if (info.role == TensorRole::output) {
      CG_TRY(Expected e, expected_of(task, info, shape, tensors, set->memory));
      set->outputs.push_back(std::move(e));
      continue;
    }
    const TensorSlot* slot = find_slot(tensors, info.name, "value");
    if (!slot || slot->shape != at->second || slot->dtype != info.dtype)
      return world_error("the torch worker gave no value of the right shape for '" + info.name +
                         "'");
    set->inputs.push_back(*slot);
  }
  return std::shared_ptr<const InputSet>(std::move(set));
}

}  // namespace cutegen
