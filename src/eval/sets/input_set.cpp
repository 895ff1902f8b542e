// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/input_set.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/weighted.h"
#include "tensor/half.h"

namespace cutegen::eval {
namespace {

Result<void> check_slot(const torch::TensorSlot& slot, size_t total) {
  CG_TRY(int64_t count, element_count(slot.shape));
  if (slot.bytes != size_t(count) * size_of(slot.dtype) || slot.bytes > total ||
      slot.offset > total - slot.bytes)
    return world_error("the torch worker's tensor '" + slot.name + "' does not fit its memory");
  return {};
}

const torch::TensorSlot* find_slot(const torch::TensorSet& set, const std::string& name,
                                   const std::string& part) {
  for (const torch::TensorSlot& s : set.slots)
    if (s.name == name && s.part == part) return &s;
  return nullptr;
}

std::vector<double> values_of(const Mapping& memory, const torch::TensorSlot& slot) {
  std::vector<double> out(slot.bytes / size_of(slot.dtype));
  to_double(slot.dtype, {memory.data() + slot.offset, slot.bytes}, out);
  return out;
}

// The rounding error of a sequential sum, relative to the error of the native sum, which adds block
// by block. The ratio grows with the square root of the length.
double growth_in_order(double longest) {
  constexpr double kBlock = 256, kMost = 8;
  return std::clamp(std::sqrt(longest / kBlock), 1.0, kMost);
}

// The ratio of the RMS errors, if there is no sequential reference. For 512, 4,096, 32,768 and
// 262,144 uniform products, the error was 3.5, 10.6, 14.7 and 31 times cuBLAS's error.
double rms_growth_in_order(double longest) {
  constexpr double kPerRoot = 6, kMost = 31;
  return std::min(1 + std::sqrt(longest) / kPerRoot, kMost);
}

double longest_axis(const Task& task, const ShapeCase& shape) {
  int64_t longest = 1;
  if (task.workload == kElementwise) return 1;
  for (const auto& [name, dims] : shape.tensors)
    for (int64_t d : dims) longest = std::max(longest, d);
  return double(longest);
}

Result<Expected> expected_of(const Task& task, const TensorInfo& info, const ShapeCase& at,
                             const torch::TensorSet& set, const Mapping& memory) {
  const Shape& shape = at.tensors.at(info.name);
  const torch::TensorSlot* truth = find_slot(set, info.name, torch::part::truth);
  const torch::TensorSlot* native = find_slot(set, info.name, torch::part::native);
  const torch::TensorSlot* sensitivity = find_slot(set, info.name, torch::part::sensitivity);
  if (!native) return world_error("the torch worker gave no result for '" + info.name + "'");
  if (!truth) truth = native;  // the module does not run in float64; the set's notes say so
  if (native->shape != shape || native->dtype != info.dtype ||
      truth->bytes / size_of(truth->dtype) != native->bytes / size_of(native->dtype))
    return world_error("the torch worker's result for '" + info.name + "' has another shape");
  std::vector<double> wiggle;
  if (sensitivity) wiggle = values_of(memory, *sensitivity);
  if (wiggle.size() != native->bytes / size_of(native->dtype)) wiggle.clear();
  std::vector<double> in_order;
  if (const torch::TensorSlot* slot = find_slot(set, info.name, torch::part::sequential))
    in_order = values_of(memory, *slot);
  if (in_order.size() != native->bytes / size_of(native->dtype)) in_order.clear();
  // For an excerpt of a timed shape, a sample of blocks writes only some elements.
  const auto keep = is_timed(at) ? KeepReferences::yes : KeepReferences::no;
  Expected e = make_expected({.name = info.name, .dtype = info.dtype, .shape = shape},
                             values_of(memory, *truth), values_of(memory, *native), wiggle,
                             tolerance_rule(task, at, info), in_order, keep);
  e.nan_is_undefined = leaves_out_elements(set.family);
  return e;
}

}  // namespace

bool leaves_out_elements(const std::string& family) {
  return family == family::special || family == family::extremes;
}

ToleranceRule tolerance_rule(const Task& task, const ShapeCase& shape, const TensorInfo& output) {
  ToleranceRule rule;
  const double longest = longest_axis(task, shape);
  switch (accuracy_of(task, output)) {
    case MathMode::fp32:
      rule = {.factor = 32 * growth_in_order(longest), .eps = 0x1p-23};
      if (longest > 1) rule.growth = rms_growth_in_order(longest);
      break;
    case MathMode::tf32:
    case MathMode::fp16:
      rule = {.factor = 4, .eps = 0x1p-10, .floor_eps = 0x1p-12, .sensitivity = 0};
      break;
    case MathMode::bf16:
      rule = {.factor = 4, .eps = 0x1p-7, .floor_eps = 0x1p-9, .sensitivity = 0};
      break;
  }
  rule.factor *= task.tolerance.value_or(1.0);
  rule.rms *= task.tolerance.value_or(1.0);
  rule.rtol = task.rtol.value_or(-1), rule.atol = task.atol.value_or(-1);
  return rule;
}

const torch::TensorSlot* InputSet::initial(const std::string& name) const {
  for (const torch::TensorSlot& slot : inputs)
    if (slot.name == name) return &slot;
  return nullptr;
}

Judgement judge_result(const InputSet& set, const Expected& e, std::span<const std::byte> bytes,
                       const Poison* poison) {
  const torch::TensorSlot* slot = set.initial(e.spec.name);
  Judgement j = judge(e, bytes, slot ? nullptr : poison);
  if (!slot) return j;
  const std::span<const std::byte> before = set.bytes_of(*slot);
  const size_t step = size_of(e.spec.dtype);
  for (size_t i = 0; i < j.is_wrong.size(); ++i)
    if (j.is_wrong[i] && std::memcmp(bytes.data() + i * step, before.data() + i * step, step) == 0)
      ++j.unwritten;
  return j;
}

double compat_tolerance(MathMode mode) {
  return mode == MathMode::fp16 || mode == MathMode::bf16 ? 1e-2 : 1e-4;
}

Result<std::shared_ptr<const InputSet>> make_input_set(const Task& task, const ShapeCase& shape,
                                                       torch::TensorSet tensors) {
  auto set = std::make_shared<InputSet>();
  set->shape = shape.name;
  set->family = tensors.family;
  set->notes = tensors.notes;
  set->model_seed = tensors.model_seed;
  set->as_made = tensors.as_made;
  CG_TRY(set->memory, Mapping::map(tensors.memory.get(), tensors.bytes, false));
  for (const torch::TensorSlot& slot : tensors.slots) CG_CHECK(check_slot(slot, tensors.bytes));
  for (const TensorInfo& info : task.tensors) {
    auto at = shape.tensors.find(info.name);
    if (at == shape.tensors.end())
      return world_error("shape '" + shape.name + "' lacks the tensor '" + info.name + "'");
    if (info.role == TensorRole::output) continue;
    const torch::TensorSlot* slot = find_slot(tensors, info.name, torch::part::value);
    if (!slot || slot->shape != at->second || slot->dtype != info.dtype)
      return world_error("the torch worker gave no value of the expected shape for '" + info.name +
                         "'");
    set->inputs.push_back(*slot);
  }
  for (const TensorInfo* info : results_of(task)) {
    CG_TRY(Expected e, expected_of(task, *info, shape, tensors, set->memory));
    set->outputs.push_back(std::move(e));
  }
  return std::shared_ptr<const InputSet>(std::move(set));
}

}  // namespace cutegen::eval
