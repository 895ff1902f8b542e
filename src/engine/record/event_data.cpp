// SPDX-License-Identifier: Apache-2.0
#include "engine/record/event_data.h"

#include "core/codec.h"

#include <algorithm>

namespace cutegen::engine {
namespace {

constexpr codec::Names<ToolsMode, 3> kToolsModes{
    {{ToolsMode::off, "off"}, {ToolsMode::on, "on"}, {ToolsMode::automatic, "auto"}}};

constexpr int64_t kMostToolCalls = 64;  // of one question

Json admission_json(const eval::Admission& a) {
  return Json{{"admitted", a.admitted},
              {"lazy_answers_tried", a.lazy_answers_tried},
              {"passing", a.passing},
              {"families", a.families},
              {"remark", a.remark}};
}

Result<eval::Admission> admission_from(const Json& json) {
  eval::Admission a;
  ObjectReader r(json, "task/admission");
  CG_TRY(a.admitted, r.boolean("admitted"));
  CG_TRY(int64_t tried, r.integer("lazy_answers_tried"));
  a.lazy_answers_tried = static_cast<int>(tried);
  CG_TRY(a.passing, r.strings("passing"));
  CG_TRY(a.families, r.strings("families"));
  CG_TRY(a.remark, r.string("remark"));
  return a;
}

Json evaluator_json(const eval::EvaluatorOptions& o) {
  return Json{{"device", o.device.text()},
              {"python", o.python},
              {"require_sandbox", o.require_sandbox},
              {"use_cache", o.use_cache},
              {"runner_threads", o.runner_threads}};
}

Result<eval::EvaluatorOptions> evaluator_from(const Json& json) {
  eval::EvaluatorOptions o;
  ObjectReader r(json, "opened/evaluator");
  CG_TRY(std::string device, r.string("device"));
  CG_TRY(o.device, DeviceName::parse(device));
  CG_TRY(o.python, r.string("python"));
  CG_TRY(o.require_sandbox, r.boolean("require_sandbox"));
  CG_TRY(o.use_cache, r.boolean("use_cache"));
  CG_TRY(int64_t threads, r.integer("runner_threads"));
  o.runner_threads = static_cast<int>(threads);
  return o;
}

Json model_json(const ModelSettings& m) {
  Json out{{"url", m.url},
           {"key_file", m.key_file.string()},
           {"prices", m.prices.string()},
           {"relay_minutes", m.relay_minutes},
           {"effort", m.effort},
           {"prompt_tokens", m.prompt_tokens},
           {"reasks", m.reasks},
           {"tools", to_string(m.tools)},
           {"tool_calls", m.tool_calls},
           {"run_tool_calls", m.run_tool_calls},
           {"usd", m.usd},
           {"tokens", m.tokens}};
  if (m.temperature) out["temperature"] = *m.temperature;
  return out;
}

Result<ModelSettings> model_from(const Json& json) {
  ModelSettings m;
  ObjectReader r(json, "opened/model_settings");
  CG_TRY(m.url, r.string("url"));
  CG_TRY(std::string key_file, r.string("key_file"));
  m.key_file = key_file;
  CG_TRY(std::string prices, r.string("prices"));
  m.prices = prices;
  CG_TRY(m.relay_minutes, r.number("relay_minutes"));
  CG_TRY(m.effort, r.string("effort"));
  if (r.has("temperature")) {
    CG_TRY(m.temperature, r.number("temperature"));
  }
  CG_TRY(m.prompt_tokens, r.integer("prompt_tokens"));
  CG_TRY(int64_t reasks, r.integer("reasks"));
  m.reasks = static_cast<int>(std::clamp<int64_t>(reasks, 0, 10));
  CG_TRY(std::string tools, r.string_or("tools", to_string(ToolsMode::off)));  // older runs: none
  CG_TRY(m.tools, parse_tools(tools, r.place("tools")));
  CG_TRY(int64_t tool_calls, r.integer_or("tool_calls", m.tool_calls));
  m.tool_calls = static_cast<int>(std::clamp<int64_t>(tool_calls, 0, kMostToolCalls));
  CG_TRY(m.run_tool_calls, r.integer_or("run_tool_calls", m.run_tool_calls));
  CG_TRY(m.usd, r.number("usd"));
  CG_TRY(m.tokens, r.integer("tokens"));
  return m;
}

}  // namespace

const char* to_string(ToolsMode mode) {
  return codec::name_of(kToolsModes, mode);
}
Result<ToolsMode> parse_tools(const std::string& name, const std::string& where) {
  return codec::value_of(kToolsModes, name, "setting of tools", where);
}

Json opened_data(const OptimizeSettings& s) {
  Json out{{"file", s.file.string()},
           {"strategy", s.strategy},
           {"model", s.model},
           {"out", s.out.string()},
           {"evaluator", evaluator_json(s.evaluator)},
           {"search", search::to_json(s.search)},
           {"config", s.resolved_config}};
  if (!s.asked.empty()) out["asked"] = to_json(s.asked);
  if (!s.baselines) out["baselines"] = false;
  if (s.profile_best) out["profile_best"] = true;
  if (s.profile_slower) out["profile_slower"] = true;
  if (s.certify_minutes > 0) out["certify_minutes"] = s.certify_minutes;
  if (s.search.agents) out["model_settings"] = model_json(s.model_settings);
  return out;
}

Result<OptimizeSettings> settings_from(const Json& data) {
  OptimizeSettings s;
  ObjectReader r(data, "opened");
  CG_TRY(std::string file, r.string("file"));
  s.file = file;
  CG_TRY(s.strategy, r.string("strategy"));
  CG_TRY(s.model, r.string("model"));
  CG_TRY(std::string out, r.string("out"));
  s.out = out;
  CG_TRY(Json evaluator, r.object("evaluator"));
  CG_TRY(s.evaluator, evaluator_from(evaluator));
  CG_TRY(Json asked, r.object_or_null("asked"));
  if (!asked.is_null()) {
    CG_TRY(s.asked, asked_accuracy_from_json(asked));
  }
  CG_TRY(s.baselines, r.boolean_or("baselines", true));
  CG_TRY(s.profile_best, r.boolean_or("profile_best", false));
  CG_TRY(s.profile_slower, r.boolean_or("profile_slower", false));
  CG_TRY(s.certify_minutes, r.number_or("certify_minutes", 0));
  CG_TRY(Json search, r.object("search"));
  CG_TRY(s.search, search::strategy_settings_from_json(search));
  CG_TRY(s.resolved_config, r.object("config"));
  if (r.has("model_settings")) {
    CG_TRY(Json model, r.object("model_settings"));
    CG_TRY(s.model_settings, model_from(model));
  }
  return s;
}

Json task_data(const eval::OpenedTask& o) {
  Json out{{"task", to_json(o.task)},  {"admission", admission_json(o.admission)},
           {"floor_ns", o.floor_ns},   {"floor_bound_by", o.floor_bound_by},
           {"toolchain", o.toolchain}, {"torch", o.torch},
           {"device", o.device},       {"sandbox", to_json(o.sandbox)}};
  if (o.reachable_ns > 0) out["reachable_ns"] = o.reachable_ns;
  if (o.roofline_ns > 0) out["roofline_ns"] = o.roofline_ns;
  if (!o.driver.empty()) out["gpu"] = o.gpu, out["driver"] = o.driver;  // a real one
  if (!o.product.empty()) out["product"] = o.product;
  if (!o.counters.empty()) out["counters"] = o.counters;
  return out;
}

Result<eval::OpenedTask> task_from(const Json& data) {
  eval::OpenedTask o;
  ObjectReader r(data, "task");
  CG_TRY(Json task, r.object("task"));
  CG_TRY(o.task, task_from_json(task));
  CG_TRY(Json admission, r.object("admission"));
  CG_TRY(o.admission, admission_from(admission));
  CG_TRY(o.floor_ns, r.number("floor_ns"));
  CG_TRY(o.floor_bound_by, r.string("floor_bound_by"));
  CG_TRY(o.reachable_ns, r.number_or("reachable_ns", 0));
  CG_TRY(o.roofline_ns, r.number_or("roofline_ns", 0));
  CG_TRY(o.toolchain, r.string("toolchain"));
  CG_TRY(o.torch, r.string("torch"));
  CG_TRY(o.device, r.string("device"));
  CG_TRY(o.gpu, r.string_or("gpu", ""));
  CG_TRY(o.driver, r.string_or("driver", ""));
  CG_TRY(o.product, r.string_or("product", ""));
  CG_TRY(o.counters, r.string_or("counters", ""));
  CG_TRY(Json sandbox, r.object("sandbox"));
  CG_TRY(o.sandbox, sandbox_grade_from_json(sandbox));
  return o;
}

}  // namespace cutegen::engine
