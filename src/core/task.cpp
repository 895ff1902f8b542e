// SPDX-License-Identifier: Apache-2.0
#include "core/task.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/codec.h"
#include "core/shape_case.h"

namespace cutegen {
namespace {

constexpr size_t kMaxTensors = 20'000;
constexpr size_t kMaxDims = 64;

constexpr codec::Names<MathMode, 4> kModes{{{MathMode::fp32, "fp32"},
                                            {MathMode::tf32, "tf32"},
                                            {MathMode::fp16, "fp16"},
                                            {MathMode::bf16, "bf16"}}};
constexpr codec::Names<TensorRole, 4> kRoles{{{TensorRole::input, "input"},
                                              {TensorRole::parameter, "parameter"},
                                              {TensorRole::buffer, "buffer"},
                                              {TensorRole::output, "output"}}};
constexpr codec::Names<ShapeKind, 5> kKinds{{{ShapeKind::official, "official"},
                                             {ShapeKind::small, "small"},
                                             {ShapeKind::odd, "odd"},
                                             {ShapeKind::user, "user"},
                                             {ShapeKind::derived, "derived"}}};

// JSON has no infinities, so they are written as in graphs: {"float": "inf" | "-inf" | "nan"}.
Json scalar_json(const Scalar& scalar) {
  if (const double* d = std::get_if<double>(&scalar); d && !std::isfinite(*d))
    return {{"float", std::isnan(*d) ? "nan" : *d > 0 ? "inf" : "-inf"}};
  return std::visit([](const auto& v) { return Json(v); }, scalar);
}

Result<Scalar> scalar_from(const Json& json, const std::string& where) {
  if (json.is_boolean()) return Scalar(json.get<bool>());
  if (json.is_string()) return Scalar(json.get<std::string>());
  if (json.is_number_unsigned() && json.get<uint64_t>() > uint64_t{INT64_MAX})
    return user_error("integer is too large", where);
  if (json.is_number_integer()) return Scalar(json.get<int64_t>());
  if (json.is_number()) return Scalar(json.get<double>());
  if (json.is_object() && json.size() == 1 && json.contains("float")) {
    const Json& text = json["float"];
    constexpr double inf = std::numeric_limits<double>::infinity();
    if (text == "inf") return Scalar(inf);
    if (text == "-inf") return Scalar(-inf);
    if (text == "nan") return Scalar(std::numeric_limits<double>::quiet_NaN());
  }
  return user_error("expected a boolean, a number or a string", where);
}

Json scalar_info_json(const ScalarInfo& s) {
  return {{"name", s.name}, {"value", scalar_json(s.value)}};
}

Result<ScalarInfo> scalar_info_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  ScalarInfo s;
  CG_TRY(s.name, r.string("name"));
  CG_TRY(Json value, r.any("value"));
  CG_TRY(s.value, scalar_from(value, r.place("value")));
  CG_CHECK(r.finish());
  return s;
}

Json tensor_json(const TensorInfo& t) {
  Json j{{"name", t.name},
         {"role", to_string(t.role)},
         {"dtype", to_string(t.dtype)},
         {"shape", t.shape},
         {"mutated", t.mutated}};
  if (t.math_mode) j["math_mode"] = to_string(*t.math_mode);
  return j;
}

// A shape whose element count does not overflow.
Result<Shape> shape_from(const Json& json, const std::string& where) {
  CG_TRY(Shape shape, codec::integers(json, where, 0, kMaxDims));
  CG_CHECK(codec::at(element_count(shape), where));
  return shape;
}

Result<TensorInfo> tensor_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  TensorInfo t;
  CG_TRY(t.name, r.string("name"));
  if (t.name.empty()) return user_error("a tensor needs a name", r.place("name"));
  CG_TRY(t.role, codec::enum_field(r, "role", kRoles));
  CG_TRY(std::string dtype, r.string("dtype"));
  CG_TRY(t.dtype, codec::at(dtype_from_name(dtype), r.place("dtype")));
  CG_TRY(Json shape, r.array("shape"));
  CG_TRY(t.shape, shape_from(shape, r.place("shape")));
  CG_TRY(t.mutated, r.boolean_or("mutated", false));
  if (r.has("math_mode")) {
    CG_TRY(t.math_mode, codec::enum_field(r, "math_mode", kModes));
  }
  CG_CHECK(r.finish());
  return t;
}

Json shape_case_json(const ShapeCase& s) {
  Json constants = Json::object(), tensors = Json::object();
  for (const auto& [name, value] : s.constants) constants[name] = value;
  for (const auto& [name, shape] : s.tensors) tensors[name] = shape;
  return {{"name", s.name},
          {"kind", to_string(s.kind)},
          {"weight", s.weight},
          {"constants", constants},
          {"tensors", tensors},
          {"flops", s.flops.value},
          {"least_bytes", s.least_bytes.value}};
}

Result<ShapeCase> shape_case_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  ShapeCase s;
  CG_TRY(s.name, r.string("name"));
  CG_TRY(s.kind, codec::enum_field(r, "kind", kKinds));
  CG_TRY(s.weight, r.number_or("weight", 1));
  if (!(s.weight >= 0)) return user_error("weight must not be negative", r.place("weight"));
  CG_TRY(Json constants, r.object_or_null("constants"));
  ObjectReader c(constants, r.place("constants"));
  for (const auto& [name, value] : constants.items()) {
    CG_TRY(int64_t v, c.integer(name));
    s.constants.emplace_back(name, v);
  }
  CG_TRY(Json tensors, r.object("tensors"));
  for (const auto& [name, shape] : tensors.items()) {
    CG_TRY(s.tensors[name], shape_from(shape, r.place("tensors") + "/" + name));
  }
  CG_TRY(double flops, r.number_or("flops", 0));
  CG_TRY(int64_t bytes, r.integer_or("least_bytes", 0));
  if (!(flops >= 0)) return user_error("flops must not be negative", r.place("flops"));
  if (bytes < 0) return user_error("bytes must not be negative", r.place("least_bytes"));
  s.flops = Flops{flops};
  s.least_bytes = Bytes{bytes};
  CG_CHECK(r.finish());
  return s;
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

Result<void> read_lists(ObjectReader& r, Task& t) {
  CG_TRY(t.tensors, codec::list<TensorInfo>(r, "tensors", kMaxTensors, tensor_from));
  CG_TRY(t.attributes, codec::list<ScalarInfo>(r, "attributes", kMaxTensors, scalar_info_from));
  CG_TRY(t.arguments, codec::list<ScalarInfo>(r, "arguments", kMaxTensors, scalar_info_from));
  CG_TRY(t.shapes, codec::list<ShapeCase>(r, "shapes", 256, shape_case_from));
  if (r.has("notes")) {
    CG_TRY(t.notes, r.strings("notes"));
  }
  CG_TRY(Json graph, r.object_or_null("graph"));
  if (!graph.is_null()) {
    CG_TRY(t.graph, graph_from_json(graph));
  }
  if (r.has("returns")) {
    CG_TRY(t.returns, r.strings("returns"));
  }
  CG_CHECK(check_names(t));
  CG_CHECK(check_returns(t));
  return check_shapes(t);
}

}  // namespace

Result<ShapeCase> shape_case_from_json(const Json& json, const std::string& where) {
  return shape_case_from(json, where);
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
  const auto outputs = static_cast<std::ptrdiff_t>(out.size());
  for (const TensorInfo& t : task.tensors)
    if (t.mutated && t.role != TensorRole::output) out.push_back(&t);
  std::sort(out.begin() + outputs, out.end(), [](auto* a, auto* b) { return a->name < b->name; });
  return out;
}

MathMode mode_of(const Task& task, const TensorInfo& output) {
  return output.math_mode.value_or(task.math_mode);
}

std::string mode_text(const Task& task) {
  std::string text = to_string(task.math_mode);
  if (task.tf32_convolutions) text += ", convolutions in tf32 (as PyTorch ships)";
  for (const TensorInfo* out : results_of(task))
    if (out->math_mode && *out->math_mode != task.math_mode)
      text += ", " + out->name + " in " + to_string(*out->math_mode);
  return task.math_mode_asked ? text + " (asked for)" : text;
}

const char* to_string(MathMode mode) {
  return codec::name_of(kModes, mode);
}
const char* to_string(TensorRole role) {
  return codec::name_of(kRoles, role);
}
const char* to_string(ShapeKind kind) {
  return codec::name_of(kKinds, kind);
}
Result<MathMode> math_mode_from(const std::string& name) {
  return codec::value_of(kModes, name, "math mode");
}

Json to_json(const Task& t) {
  Json j{{"schema", "cutegen.task.v1"},
         {"id", t.id},
         {"name", t.name},
         {"file", t.file},
         {"source", t.source},
         {"tensors", codec::array_of(t.tensors, tensor_json)},
         {"attributes", codec::array_of(t.attributes, scalar_info_json)},
         {"arguments", codec::array_of(t.arguments, scalar_info_json)},
         {"math_mode", to_string(t.math_mode)},
         {"train_mode", t.train_mode}};
  if (t.math_mode_asked) j["math_mode_asked"] = true;
  if (t.tf32_convolutions) j["tf32_convolutions"] = true;
  if (t.tolerance) j["tolerance"] = *t.tolerance;
  if (t.rtol) j["rtol"] = *t.rtol;
  if (t.atol) j["atol"] = *t.atol;
  if (t.baseline) j["baseline"] = *t.baseline;
  j["shapes"] = codec::array_of(t.shapes, shape_case_json);
  j["graph"] = to_json(t.graph);
  j["workload"] = t.workload;
  j["notes"] = t.notes;
  if (!t.returns.empty()) j["returns"] = t.returns;
  return j;
}

Result<Task> task_from_json(const Json& json) {
  ObjectReader r(json, "task#");
  CG_CHECK(codec::check_schema(r, "cutegen.task.v1"));
  Task t;
  CG_TRY(t.id, r.string("id"));
  CG_TRY(t.name, r.string("name"));
  CG_TRY(t.file, r.string_or("file", ""));
  CG_TRY(t.source, r.string_or("source", ""));
  CG_TRY(t.math_mode, codec::enum_field(r, "math_mode", kModes));
  CG_TRY(t.train_mode, r.boolean_or("train_mode", false));
  if (r.has("tolerance")) {
    CG_TRY(t.tolerance, r.number("tolerance"));
    if (!(*t.tolerance > 0)) return user_error("tolerance must be positive", r.place("tolerance"));
  }
  CG_TRY(t.math_mode_asked, r.boolean_or("math_mode_asked", false));
  CG_TRY(t.tf32_convolutions, r.boolean_or("tf32_convolutions", false));
  for (auto [key, bound] : {std::pair{"rtol", &t.rtol}, std::pair{"atol", &t.atol}})
    if (r.has(key)) {
      CG_TRY(*bound, r.number(key));
      if (!(**bound >= 0) || !std::isfinite(**bound))
        return user_error(std::string(key) + " must be a finite number, not negative",
                          r.place(key));
    }
  if (r.has("baseline")) {
    CG_TRY(t.baseline, r.string("baseline"));
  }
  CG_TRY(t.workload, r.string_or("workload", ""));
  CG_CHECK(read_lists(r, t));
  CG_CHECK(r.finish());
  return t;
}

}  // namespace cutegen
