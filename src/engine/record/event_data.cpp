// SPDX-License-Identifier: Apache-2.0
#include "engine/record/event_data.h"

#include "eval/api/protocol.h"

namespace cutegen::engine {
namespace {

constexpr int64_t kMostToolCalls = 64;  // for one question

// The evaluator options that a journal keeps.
void evaluator_form(Fields& v, eval::EvaluatorOptions& o) {
  v.ignore_unknown();
  v.by_name("device", o.device, DeviceName::parse);
  v("python", o.python);
  v("require_sandbox", o.require_sandbox);
  v("use_cache", o.use_cache);
  v("runner_threads", o.runner_threads);
}

void admission_form(Fields& v, eval::Admission& a) {
  v.ignore_unknown();
  fields(v, a);
}

// The first versions wrote "dram" for the memory bound.
Result<RooflineBound> bound_from(const std::string& name) {
  return from_name<RooflineBound>(name == gpu_unit::dram ? "memory" : name, "floor_bound_by");
}

// Journals have their own order of fields and name a simulated GPU only in `device`.
void task_form(Fields& v, eval::OpenedTask& o) {
  v.document("task");
  v.ignore_unknown();
  v("task", o.task);
  v.as("admission", o.admission, admission_form);
  v("floor_ns", o.floor_ns);
  v.by_name("floor_bound_by", o.floor_bound_by, bound_from);
  v("toolchain", o.toolchain);
  v("torch", o.torch);
  v("device", o.device);
  v("sandbox", o.sandbox);
  v("reachable_ns", o.reachable_ns, field::if_set);
  v("roofline_ns", o.roofline_ns, field::if_set);
  v("gpu", o.gpu, field::written_if(!o.driver.empty()));
  v("driver", o.driver, field::if_set);
  v("product", o.product, field::if_set);
  v("counters", o.counters, field::if_set);
  v("start", o.start);
}

}  // namespace

Names<ToolsMode> enum_names(ToolsMode) {
  static constexpr Name<ToolsMode> names[] = {{ToolsMode::off, "off"},
                                              {ToolsMode::on, "on"},
                                              {ToolsMode::compile, "compile"},
                                              {ToolsMode::automatic, "auto"}};
  return names;
}

Result<ToolsMode> parse_tools(const std::string& name, const std::string& where) {
  return from_name<ToolsMode>(name, "setting of tools", where);
}

void fields(Fields& v, ModelSettings& m) {
  v.ignore_unknown();
  v("url", m.url);
  v("key_file", m.key_file);
  v("prices", m.prices);
  v("relay_minutes", m.relay_minutes);
  v("effort", m.effort);
  v("prompt_tokens", m.prompt_tokens);
  v("reasks", m.reasks, field::clamped(0, 10));
  v("tools", m.tools, field::may_lack);  // older runs had no tools
  v("tool_calls", m.tool_calls, field::may_lack + field::clamped(0, kMostToolCalls));
  v("run_tool_calls", m.run_tool_calls, field::may_lack);
  v("usd", m.usd);
  v("tokens", m.tokens);
  v("temperature", m.temperature);
}

void fields(Fields& v, OptimizeSettings& s) {
  v.document("opened");
  v.ignore_unknown();
  v("file", s.file);
  v.by_name("strategy", s.strategy, search::strategy_from);
  v("model", s.model);
  v("out", s.out);
  v.as("evaluator", s.evaluator, evaluator_form);
  v("search", s.search);
  v("config", s.resolved_config, field::object);
  v("asked", s.asked, field::if_set);
  v("rewrites", s.rewrites, field::written_if(s.rewrites != OptimizeSettings().rewrites));
  v("baselines", s.baselines, field::written_if(!s.baselines));
  v("profile_best", s.profile_best, field::if_set);
  v("profile_slower", s.profile_slower, field::if_set);
  v("certify_minutes", s.certify_minutes, field::if_set);
  v("model_settings", s.model_settings, field::written_if(s.search.agents.has_value()));
}

Json task_data(const eval::OpenedTask& opened) {
  return to_json_as(opened, task_form);
}

Result<eval::OpenedTask> task_from(const Json& data) {
  return read_json_as<eval::OpenedTask>(data, task_form);
}

}  // namespace cutegen::engine
