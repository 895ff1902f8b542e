// SPDX-License-Identifier: Apache-2.0
// plan.json -> Plan, field by field. plan_check.cpp checks what depends on the task.
#include <algorithm>
#include <cmath>

#include "core/codec.h"
#include "core/plan.h"

namespace cutegen {
namespace {

constexpr size_t kMaxText = size_t{1} << 20;
constexpr size_t kMaxNames = 1024, kMaxSteps = 512, kMaxArgs = 256, kMaxRank = 8;

// The error for a planned field says that it is reserved, instead of "unknown field".
Result<void> refuse_reserved(const Json& json, std::initializer_list<const char*> names,
                             const std::string& where) {
  for (const char* name : names)
    if (json.is_object() && json.contains(name))
      return user_error(fmt::format("'{}' is reserved for a later version", name),
                        where + "/" + name, "remove it");
  return {};
}

// `states` was reserved in the past, but mutated tensors need no field.
Result<void> refuse_states(const Json& json, const std::string& where) {
  if (!json.is_object() || !json.contains("states")) return {};
  return user_error("'states' is not a field of a plan", where + "/states",
                    "pass a mutated tensor by its name, {\"tensor\": \"x\"}: it holds its initial "
                    "values, and the kernel writes the final ones there");
}

bool is_identifier(const std::string& s) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !s.empty() && s.size() <= 128 && letter(s[0]) &&
         std::all_of(s.begin(), s.end(), [&](char c) { return letter(c) || digit(c); });
}

Result<std::string> identifier(std::string name, const std::string& where) {
  if (is_identifier(name)) return name;
  return user_error(
      "'" + name.substr(0, 64) + "' is not a name", where,
      "a name has letters, digits and '_', begins with a letter, and has at most 128 characters");
}

Result<std::string> identifier_field(ObjectReader& r, const std::string& key) {
  CG_TRY(std::string name, r.string(key));
  return identifier(std::move(name), r.place(key));
}

// A tensor's name: identifiers or numbers joined by dots.
Result<std::string> tensor_field(ObjectReader& r, const std::string& key) {
  CG_TRY(std::string name, r.string(key));
  if (name.empty() || name.size() > 256)
    return user_error("a tensor's name has 1 to 256 characters", r.place(key));
  return name;
}

Result<std::vector<Expr>> expressions(ObjectReader& r, const std::string& key, size_t least,
                                      size_t most) {
  CG_TRY(auto out, codec::list<Expr>(r, key, most, Expr::from_json));
  if (out.size() < least)
    return user_error(fmt::format("expected {} to {} entries, found {}", least, most, out.size()),
                      r.place(key));
  return out;
}

using NamedExprs = std::vector<std::pair<std::string, Expr>>;

Result<NamedExprs> named_expressions(ObjectReader& r, const std::string& key) {
  CG_TRY(Json object, r.object_or_null(key));
  if (object.size() > kMaxNames)
    return user_error(fmt::format("{} entries; the limit is {}", object.size(), kMaxNames),
                      r.place(key));
  NamedExprs out;
  for (const auto& [name, value] : object.items()) {
    std::string where = r.place(key) + "/" + name;
    CG_CHECK(identifier(name, where));
    CG_TRY(Expr e, Expr::from_json(value, where));
    out.emplace_back(name, std::move(e));
  }
  return out;
}

Result<std::vector<std::string>> read_sources(ObjectReader& r) {
  CG_TRY(auto names, r.strings("sources"));
  if (names.empty() || names.size() > kMostSources)
    return user_error(fmt::format("a program has 1 to {} sources", kMostSources),
                      r.place("sources"));
  for (size_t i = 0; i < names.size(); ++i) {
    std::string where = fmt::format("{}/{}", r.place("sources"), i);
    CG_CHECK(check_source_name(names[i], where));
    if (std::count(names.begin(), names.end(), names[i]) > 1)
      return user_error("'" + names[i] + "' is listed twice", where);
  }
  return names;
}

Result<std::vector<std::string>> read_arch(ObjectReader& r) {
  if (!r.has("arch")) return Plan{}.arch;
  CG_TRY(auto list, r.strings("arch"));
  if (list.empty() || list.size() > 16)
    return user_error("expected 1 to 16 architectures", r.place("arch"));
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string& a = list[i];
    size_t digits = 0;
    while (3 + digits < a.size() && a[3 + digits] >= '0' && a[3 + digits] <= '9') ++digits;
    std::string tail = a.size() >= 3 + digits ? a.substr(3 + digits) : a;
    bool good = a.starts_with("sm_") && digits >= 2 && digits <= 3 &&
                (tail.empty() || tail == "+" || tail == "a" || tail == "f");
    if (!good)
      return user_error("'" + a.substr(0, 64) + "' is not an architecture",
                        fmt::format("{}/{}", r.place("arch"), i),
                        "write \"sm_80+\" (this one and later) or an exact one such as \"sm_90a\"");
  }
  return list;
}

Result<std::vector<std::pair<std::string, std::string>>> read_bind(ObjectReader& r) {
  CG_TRY(Json object, r.object_or_null("bind"));
  if (object.size() > kMaxNames)
    return user_error(fmt::format("{} entries; the limit is {}", object.size(), kMaxNames),
                      r.place("bind"));
  std::vector<std::pair<std::string, std::string>> out;
  ObjectReader b(object, r.place("bind"));
  for (const auto& [name, value] : object.items()) {
    CG_CHECK(identifier(name, b.place(name)));
    CG_TRY(std::string target, tensor_field(b, name));
    out.emplace_back(name, std::move(target));
  }
  return out;
}

Result<ScratchSpec> scratch_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  ScratchSpec s;
  CG_TRY(s.name, identifier_field(r, "name"));
  CG_TRY(std::string dtype, r.string("dtype"));
  CG_TRY(s.dtype, codec::at(dtype_from_name(dtype), r.place("dtype")));
  if (dtype != to_string(s.dtype))
    return user_error("unknown dtype '" + dtype + "'", r.place("dtype"),
                      std::string("write '") + to_string(s.dtype) + "'");
  CG_TRY(Json shape, r.array("shape"));
  CG_TRY(s.shape, expressions(r, "shape", 0, kMaxRank));
  CG_TRY(std::string init, r.string_or("init", "poison"));
  if (init != "poison" && init != "zero")
    return user_error("unknown init '" + init + "'", r.place("init"), "one of poison, zero");
  s.zero = init == "zero";
  CG_TRY(std::string life, r.string_or("life", "call"));
  if (life != "call" && life != "weights")
    return user_error("unknown life '" + life + "'", r.place("life"), "one of call, weights");
  s.weights_life = life == "weights";
  CG_CHECK(r.finish());
  return s;
}

Result<Im2colSpec> read_im2col(const Json& json, size_t dims, const std::string& where) {
  if (dims < 3)
    return user_error(fmt::format("im2col mode with {} dims", dims), where,
                      "give 3 to 5 dims: channels, one to three spatial dims, images");
  ObjectReader r(json, where);
  Im2colSpec out;
  CG_TRY(out.lower, expressions(r, "lower", dims - 2, dims - 2));
  CG_TRY(out.upper, expressions(r, "upper", dims - 2, dims - 2));
  if (r.has("steps")) {
    CG_TRY(out.steps, expressions(r, "steps", dims - 2, dims - 2));
  }
  CG_CHECK(r.finish());
  return out;
}

Result<std::vector<TensorMapSpec>> read_tensor_maps(ObjectReader& r) {
  CG_TRY(Json object, r.object_or_null("tensor_maps"));
  if (object.size() > kMaxNames)
    return user_error(fmt::format("{} entries; the limit is {}", object.size(), kMaxNames),
                      r.place("tensor_maps"));
  std::vector<TensorMapSpec> out;
  for (const auto& [name, value] : object.items()) {
    ObjectReader m(value, r.place("tensor_maps") + "/" + name);
    TensorMapSpec t;
    CG_TRY(t.name, identifier(name, m.where()));
    CG_TRY(t.tensor, tensor_field(m, "tensor"));
    CG_TRY(t.spec, identifier_field(m, "spec"));
    CG_TRY(t.dims, expressions(m, "dims", 1, 5));
    CG_TRY(t.strides, expressions(m, "strides", 1, 5));
    if (m.has("im2col")) {
      CG_TRY(Json im2col, m.object("im2col"));
      CG_TRY(t.im2col, read_im2col(im2col, t.dims.size(), m.place("im2col")));
    }
    CG_CHECK(m.finish());
    if (t.dims.size() != t.strides.size())
      return user_error(fmt::format("{} dims but {} strides", t.dims.size(), t.strides.size()),
                        m.where(), "give one stride, in elements, for each dim");
    out.push_back(std::move(t));
  }
  return out;
}

Result<ArgSpec> arg_from(const Json& json, const std::string& where) {
  CG_CHECK(refuse_reserved(json, {"state", "rng"}, where));
  if (!json.is_object() || json.size() != 1)
    return user_error("an argument is an object with one field", where,
                      "such as {\"tensor\": \"x\"} or {\"i32\": \"M\"}");
  const std::string key = json.items().begin().key();
  ObjectReader r(json, where);
  ArgSpec a;
  CG_TRY(a.kind, from_name<ArgSpec::Kind>(key, "kind of argument", where));
  if (a.kind == ArgSpec::Kind::tensor) {
    CG_TRY(a.name, tensor_field(r, key));
  } else if (a.kind == ArgSpec::Kind::map) {
    CG_TRY(a.name, identifier_field(r, key));
  } else {
    CG_TRY(a.value, Expr::from_json(json[key], r.place(key)));
  }
  return a;
}

Result<void> read_triple(ObjectReader& r, const std::string& key, std::array<Expr, 3>& out,
                         bool required) {
  if (!required && !r.has(key)) return {};
  CG_CHECK(r.array(key));
  CG_TRY(auto list, expressions(r, key, 1, 3));
  for (size_t i = 0; i < list.size(); ++i) out[i] = list[i];
  return {};
}

Result<void> read_launch(ObjectReader& r, Step& s) {
  CG_TRY(s.kernel, identifier_field(r, "kernel"));
  CG_CHECK(read_triple(r, "grid", s.grid, true));
  CG_CHECK(read_triple(r, "block", s.block, true));
  CG_CHECK(read_triple(r, "cluster", s.cluster, false));
  if (r.has("shared_bytes")) {
    CG_TRY(Json shared, r.any("shared_bytes"));
    CG_TRY(s.shared_bytes, Expr::from_json(shared, r.place("shared_bytes")));
  }
  CG_TRY(s.cooperative, r.boolean_or("cooperative", false));
  CG_TRY(s.pdl, r.boolean_or("pdl", false));
  CG_TRY(s.args, codec::list<ArgSpec>(r, "args", kMaxArgs, arg_from));
  return {};
}

Result<void> read_fill(ObjectReader& r, Step& s) {
  s.is_fill = true;
  CG_TRY(s.fill_tensor, tensor_field(r, "fill"));
  CG_TRY(s.fill_value, r.number("value"));
  return {};
}

Result<Step> step_from(const Json& json, const std::string& where) {
  CG_CHECK(refuse_reserved(json, {"for", "after", "reference", "steps"}, where));
  ObjectReader r(json, where);
  Step s;
  if (r.has("id")) {
    CG_TRY(s.id, identifier_field(r, "id"));
  }
  if (r.has("when")) {
    CG_TRY(Json when, r.any("when"));
    CG_TRY(s.when, Expr::from_json(when, r.place("when")));
  }
  if (r.has("fill")) {
    CG_CHECK(read_fill(r, s));
  } else {
    CG_CHECK(read_launch(r, s));
  }
  CG_CHECK(r.finish());
  return s;
}

Result<std::vector<Step>> read_steps(ObjectReader& r, const std::string& key) {
  CG_TRY(auto steps, codec::list<Step>(r, key, kMaxSteps, step_from));
  for (size_t i = 0; i < steps.size(); ++i)
    if (steps[i].id.empty()) steps[i].id = default_step_id(key, i);
  return steps;
}

Result<void> read_version(ObjectReader& r) {
  CG_TRY(int64_t version, r.integer("cutegen"));
  if (version != 1)
    return user_error(fmt::format("plan version {} is not known", version), r.place("cutegen"),
                      "this cutegen reads version 1");
  return {};
}

Result<Dialect> read_dialect(ObjectReader& r) {
  CG_TRY(std::string name, r.string_or("dialect", to_string(Dialect::cute)));
  if (auto dialect = parse_dialect(name)) return *dialect;
  return user_error("unknown dialect '" + name.substr(0, 64) + "'", r.place("dialect"),
                    "one of cute, cuda");
}

}  // namespace

Result<void> check_source_name(const std::string& name, const std::string& where) {
  auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  if (!name.empty() && name.size() <= 64 && name[0] != '.' && name[0] != '-' &&
      std::all_of(name.begin(), name.end(), plain) && name.ends_with(".cu"))
    return {};
  return user_error("'" + name.substr(0, 80) + "' is not a source name", where,
                    "give a plain file name of letters, digits, '_', '-' and '.' that ends in .cu");
}

std::string default_step_id(const std::string& list, size_t index) {
  return fmt::format("{}{}", list == "prepare" ? "p" : "s", index);
}

Result<Plan> parse_plan(const std::string& text, const std::string& name) {
  CG_TRY(Json json, parse_json(text, name, kMaxText));
  return plan_from_json(json, name);
}

Result<Plan> plan_from_json(const Json& json, const std::string& name) {
  ObjectReader r(json, name + "#");
  CG_CHECK(read_version(r));
  CG_CHECK(refuse_states(json, r.where()));
  CG_CHECK(refuse_reserved(json, {"layouts", "rng", "for", "after"}, r.where()));
  Plan p;
  CG_TRY(p.dialect, read_dialect(r));
  CG_TRY(p.arch, read_arch(r));
  CG_TRY(p.sources, read_sources(r));
  CG_TRY(p.bind, read_bind(r));
  CG_TRY(p.symbols, named_expressions(r, "symbols"));
  CG_TRY(p.defines, named_expressions(r, "defines"));
  CG_TRY(p.requires_, expressions(r, "requires", 0, kMaxNames));
  CG_TRY(p.scratch, codec::list<ScratchSpec>(r, "scratch", kMaxNames, scratch_from));
  CG_TRY(p.tensor_maps, read_tensor_maps(r));
  CG_TRY(p.prepare, read_steps(r, "prepare"));
  CG_CHECK(r.array("steps"));
  CG_TRY(p.steps, read_steps(r, "steps"));
  if (p.steps.empty()) return user_error("a plan needs at least one step", r.place("steps"));
  CG_CHECK(r.finish());
  return p;
}

}  // namespace cutegen
