// SPDX-License-Identifier: Apache-2.0
// Plan -> canonical JSON, and the schema's text.
#include "core/plan.h"

#include <map>

#include "core/codec.h"

namespace cutegen {

const std::map<std::string, std::string>& core_schemas();  // embedded (CMakeLists.txt)

namespace {

Json list_json(const std::vector<Expr>& list) {
  Json out = Json::array();
  for (const Expr& e : list) out.push_back(e.json());
  return out;
}

Json named_json(const std::vector<std::pair<std::string, Expr>>& list) {
  Json out = Json::object();
  for (const auto& [name, e] : list) out[name] = e.json();
  return out;
}

Json scratch_json(const ScratchSpec& s) {
  Json j{{"name", s.name}, {"dtype", to_string(s.dtype)}, {"shape", list_json(s.shape)}};
  if (s.zero) j["init"] = "zero";
  if (s.weights_life) j["life"] = "weights";
  return j;
}

Json maps_json(const std::vector<TensorMapSpec>& maps) {
  Json out = Json::object();
  for (const TensorMapSpec& m : maps) {
    Json& map = out[m.name];
    map = {{"tensor", m.tensor},
           {"spec", m.spec},
           {"dims", list_json(m.dims)},
           {"strides", list_json(m.strides)}};
    if (!m.im2col) continue;
    map["im2col"] = {{"lower", list_json(m.im2col->lower)}, {"upper", list_json(m.im2col->upper)}};
    if (!m.im2col->steps.empty()) map["im2col"]["steps"] = list_json(m.im2col->steps);
  }
  return out;
}

Json arg_json(const ArgSpec& a) {
  bool named = a.kind == ArgSpec::Kind::map || a.kind == ArgSpec::Kind::tensor;
  return {{to_string(a.kind), named ? Json(a.name) : a.value.json()}};
}

bool is_one(const std::array<Expr, 3>& triple) {
  for (const Expr& e : triple)
    if (e.json() != Json(1)) return false;
  return true;
}

Json triple_json(const std::array<Expr, 3>& t) {
  return Json::array({t[0].json(), t[1].json(), t[2].json()});
}

Json step_json(const Step& s, const std::string& default_id) {
  Json j = Json::object();
  if (s.id != default_id) j["id"] = s.id;
  if (s.is_fill) {
    j["fill"] = s.fill_tensor;
    j["value"] = s.fill_value;
    if (s.when) j["when"] = s.when->json();
    return j;
  }
  j["kernel"] = s.kernel;
  if (s.when) j["when"] = s.when->json();
  j["grid"] = triple_json(s.grid);
  j["block"] = triple_json(s.block);
  if (!is_one(s.cluster)) j["cluster"] = triple_json(s.cluster);
  if (s.shared_bytes.json() != Json(0)) j["shared_bytes"] = s.shared_bytes.json();
  if (s.cooperative) j["cooperative"] = true;
  if (s.pdl) j["pdl"] = true;
  if (!s.args.empty()) j["args"] = codec::array_of(s.args, arg_json);
  return j;
}

Json steps_json(const std::vector<Step>& steps, const std::string& list) {
  Json out = Json::array();
  for (size_t i = 0; i < steps.size(); ++i)
    out.push_back(step_json(steps[i], default_step_id(list, i)));
  return out;
}

}  // namespace

Names<Dialect> enum_names(Dialect) {
  static constexpr Name<Dialect> names[] = {
      {Dialect::cute, "cute"}, {Dialect::cuda, "cuda"}, {Dialect::cute_strict, "cute-strict"}};
  return names;
}

std::optional<Dialect> parse_dialect(std::string_view name) {
  for (Dialect d : {Dialect::cute, Dialect::cuda, Dialect::cute_strict})
    if (name == to_string(d)) return d;
  return std::nullopt;
}

Names<ArgSpec::Kind> enum_names(ArgSpec::Kind) {
  using Kind = ArgSpec::Kind;
  static constexpr Name<Kind> names[] = {
      {Kind::map, "map"}, {Kind::tensor, "tensor"}, {Kind::i32, "i32"}, {Kind::u32, "u32"},
      {Kind::i64, "i64"}, {Kind::f32, "f32"},       {Kind::f64, "f64"}};
  return names;
}

Json to_json(const Plan& p) {
  Json j{
      {"cutegen", 1}, {"dialect", to_string(p.dialect)}, {"arch", p.arch}, {"sources", p.sources}};
  if (!p.bind.empty())
    for (const auto& [name, target] : p.bind) j["bind"][name] = target;
  if (!p.symbols.empty()) j["symbols"] = named_json(p.symbols);
  if (!p.defines.empty()) j["defines"] = named_json(p.defines);
  if (!p.requires_.empty()) j["requires"] = list_json(p.requires_);
  if (!p.scratch.empty()) j["scratch"] = codec::array_of(p.scratch, scratch_json);
  if (!p.tensor_maps.empty()) j["tensor_maps"] = maps_json(p.tensor_maps);
  if (!p.prepare.empty()) j["prepare"] = steps_json(p.prepare, "prepare");
  j["steps"] = steps_json(p.steps, "steps");
  return j;
}

const std::string& plan_schema() {
  return core_schemas().at("schemas/plan.v1.json");
}

}  // namespace cutegen
