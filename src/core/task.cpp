// SPDX-License-Identifier: Apache-2.0
#include "core/task.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace cutegen {
namespace {

constexpr size_t kMaxTensors = 20'000;
constexpr FieldRule kDims = field::most(64) + field::at_least(0);

Result<Scalar> scalar_from(const Json& json) {
  if (json.is_boolean()) return Scalar(json.get<bool>());
  if (json.is_string()) return Scalar(json.get<std::string>());
  if (json.is_number_unsigned() && json.get<uint64_t>() > uint64_t{INT64_MAX})
    return user_error("integer is too large");
  if (json.is_number_integer()) return Scalar(json.get<int64_t>());
  if (json.is_number()) return Scalar(json.get<double>());
  if (json.is_object() && json.size() == 1 && json.contains("float")) {
    const Json& text = json["float"];
    constexpr double inf = std::numeric_limits<double>::infinity();
    if (text == "inf") return Scalar(inf);
    if (text == "-inf") return Scalar(-inf);
    if (text == "nan") return Scalar(std::numeric_limits<double>::quiet_NaN());
  }
  return user_error("expected a boolean, a number or a string");
}

void bound_field(Fields& v, const char* key, std::optional<double>& bound) {
  v(key, bound);
  v.check(!bound || (*bound >= 0 && std::isfinite(*bound)), key,
          std::string(key) + " must be a finite number, not negative");
}

Result<void> check_names(const Task& t) {
  std::set<std::string> names;
  for (const TensorInfo& tensor : t.tensors)
    if (!names.insert(tensor.name).second)
      return user_error("tensor '" + tensor.name + "' occurs twice", "task#/tensors");
  return {};
}

// Each result must be an output, or a tensor that forward() mutates.
Result<void> check_returns(const Task& t) {
  for (const std::string& name : t.returns) {
    const TensorInfo* tensor = t.find(name);
    if (!tensor || !is_result(*tensor))
      return user_error("'" + name + "' is neither an output nor mutated", "task#/returns");
  }
  return {};
}

Result<void> check_shapes(const Task& t) {
  if (t.shapes.empty())
    return user_error("no shapes", "task#/shapes", "the first one is the official shape");
  for (const ShapeCase& s : t.shapes)
    for (const TensorInfo& tensor : t.tensors) {
      auto it = s.tensors.find(tensor.name);
      std::string where = "task#/shapes/" + s.name;
      if (it == s.tensors.end()) return user_error("no shape of '" + tensor.name + "'", where);
      if (it->second.size() != tensor.shape.size())
        return user_error("'" + tensor.name + "' has a different number of dimensions here", where);
    }
  return {};
}

}  // namespace

// JSON has no infinities, so they are written as in graphs: {"float": "inf" | "-inf" | "nan"}.
Json scalar_json(const Scalar& scalar) {
  if (const double* d = std::get_if<double>(&scalar); d && !std::isfinite(*d))
    return {{"float", std::isnan(*d) ? "nan" : *d > 0 ? "inf" : "-inf"}};
  return std::visit([](const auto& v) { return Json(v); }, scalar);
}

Names<TensorRole> enum_names(TensorRole) {
  static constexpr Name<TensorRole> names[] = {{TensorRole::input, "input"},
                                               {TensorRole::parameter, "parameter"},
                                               {TensorRole::buffer, "buffer"},
                                               {TensorRole::output, "output"}};
  return names;
}

Names<ShapeKind> enum_names(ShapeKind) {
  static constexpr Name<ShapeKind> names[] = {{ShapeKind::official, "official"},
                                              {ShapeKind::small, "small"},
                                              {ShapeKind::odd, "odd"},
                                              {ShapeKind::user, "user"},
                                              {ShapeKind::derived, "derived"}};
  return names;
}

const TensorInfo* Task::find(const std::string& tensor) const {
  for (const TensorInfo& t : tensors)
    if (t.name == tensor) return &t;
  return nullptr;
}

std::vector<const TensorInfo*> Task::with_role(TensorRole role) const {
  std::vector<const TensorInfo*> out;
  for (const TensorInfo& t : tensors)
    if (t.role == role) out.push_back(&t);
  return out;
}

std::vector<const TensorInfo*> results_of(const Task& task) {
  std::vector<const TensorInfo*> out = task.with_role(TensorRole::output);
  const auto outputs = std::ptrdiff_t(out.size());
  for (const TensorInfo& t : task.tensors)
    if (t.mutated && t.role != TensorRole::output) out.push_back(&t);
  std::sort(out.begin() + outputs, out.end(), [](auto* a, auto* b) { return a->name < b->name; });
  return out;
}

MathMode mode_of(const Task& task, const TensorInfo& output) {
  return output.math_mode.value_or(task.math_mode);
}

MathMode accuracy_of(const Task& task, const TensorInfo& output) {
  const MathMode mode = mode_of(task, output);
  const bool loosened = task.tf32_convolutions && !output.without_convolution;
  return mode == MathMode::fp32 && loosened ? MathMode::tf32 : mode;
}

std::string mode_text(const Task& task) {
  std::string text = to_string(task.math_mode);
  if (task.tf32_convolutions) text += ", convolutions in tf32 (as PyTorch ships)";
  for (const TensorInfo* out : results_of(task))
    if (mode_of(task, *out) != task.math_mode ||
        (task.tf32_convolutions && out->without_convolution))
      text += ", " + out->name + " in " + to_string(mode_of(task, *out));
  return task.math_mode_asked ? text + " (asked for)" : text;
}

Result<MathMode> math_mode_from(const std::string& name) {
  return from_name<MathMode>(name, "math mode");
}

void fields(Fields& v, ScalarInfo& s) {
  v("name", s.name);
  Json value = v.reading() ? Json() : scalar_json(s.value);
  v("value", value);
  auto scalar = v.reading() ? scalar_from(value) : s.value;
  v.check(scalar, "value");
  if (scalar) s.value = *scalar;
}

void fields(Fields& v, TensorInfo& t) {
  v("name", t.name);
  v.check(!t.name.empty(), "name", "a tensor needs a name");
  v("role", t.role);
  v.by_name("dtype", t.dtype, dtype_from_name);
  v("shape", t.shape, kDims);
  v.check(element_count(t.shape), "shape");
  v("mutated", t.mutated, field::may_lack);
  v("math_mode", t.math_mode);
  v("without_convolution", t.without_convolution, field::if_set);
}

void fields(Fields& v, ShapeCase& s) {
  v("name", s.name);
  v("kind", s.kind);
  v("weight", s.weight, field::may_lack + field::at_least(0));
  v("constants", s.constants, field::may_lack);
  v("tensors", s.tensors, kDims);
  for (const auto& [name, shape] : s.tensors) v.check(element_count(shape), "tensors/" + name);
  v("flops", s.flops.value, field::may_lack + field::at_least(0));
  v("least_bytes", s.least_bytes.value, field::may_lack + field::at_least(0));
  v("values", s.values, field::if_set);
}

void fields(Fields& v, Task& t) {
  v.document("task#");
  v.schema("cutegen.task.v1");
  v("id", t.id);
  v("name", t.name);
  v("file", t.file, field::may_lack);
  v("source", t.source, field::may_lack);
  v("tensors", t.tensors, field::list(kMaxTensors));
  v("attributes", t.attributes, field::list(kMaxTensors));
  v("arguments", t.arguments, field::list(kMaxTensors));
  v("math_mode", t.math_mode);
  v("train_mode", t.train_mode, field::may_lack);
  v("math_mode_asked", t.math_mode_asked, field::if_set);
  v("tf32_convolutions", t.tf32_convolutions, field::if_set);
  v("tolerance", t.tolerance);
  v.check(!t.tolerance || *t.tolerance > 0, "tolerance", "tolerance must be positive");
  bound_field(v, "rtol", t.rtol);
  bound_field(v, "atol", t.atol);
  v("baseline", t.baseline);
  v("shapes", t.shapes, field::list(256));
  v("graph", t.graph, field::may_lack);
  v("workload", t.workload, field::may_lack);
  v("notes", t.notes, field::may_lack);
  v("returns", t.returns, field::if_set);
  if (!v.reading()) return;
  v.check(check_names(t), "tensors");
  v.check(check_returns(t), "returns");
  v.check(check_shapes(t), "shapes");
}

}  // namespace cutegen
