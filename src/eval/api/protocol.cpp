// SPDX-License-Identifier: Apache-2.0
#include "eval/api/protocol.h"

namespace cutegen::eval::protocol {
namespace {

constexpr size_t kMostBaselines = 16;
constexpr double kMostBuildSeconds = 3600;
constexpr int64_t kMostProcesses = 16;

}  // namespace

Json message(const std::string& type, const Json& body) {
  Json out{{"schema", kSchema}, {"type", type}};
  for (const auto& [key, value] : body.items()) out[key] = value;
  return out;
}

Result<std::string> type_of(const Json& message) {
  auto schema = message.find("schema"), type = message.find("type");
  if (schema == message.end() || *schema != kSchema)
    return world_error("the peer does not use the protocol cutegen.evaluator.v1",
                       "use programs of the same build");
  if (type == message.end() || !type->is_string()) return world_error("a message has no type");
  return type->get<std::string>();
}

Json to_json(const EvaluatorOptions& o) {
  return {{"device", o.device.text()},
          {"python", o.python},
          {"require_sandbox", o.require_sandbox},
          {"use_cache", o.use_cache},
          {"runner_threads", o.runner_threads},
          {"tasks", o.tasks},
          {"sharing", o.sharing},
          {"log_level", o.log_level}};
}

Result<EvaluatorOptions> options_from_json(const Json& json) {
  ObjectReader r(json, "options#");
  EvaluatorOptions o;
  CG_TRY(std::string device, r.string("device"));
  CG_TRY(o.device, DeviceName::parse(device));
  CG_TRY(o.python, r.string("python"));
  CG_TRY(o.require_sandbox, r.boolean("require_sandbox"));
  CG_TRY(o.use_cache, r.boolean("use_cache"));
  CG_TRY(int64_t threads, r.integer("runner_threads"));
  o.runner_threads = static_cast<int>(threads);
  CG_TRY(int64_t tasks, r.integer_or("tasks", 1));
  if (tasks < 1 || tasks > kMostTasks)
    return user_error("tasks is not from 1 to " + std::to_string(kMostTasks), r.place("tasks"));
  o.tasks = static_cast<int>(tasks);
  CG_TRY(int64_t sharing, r.integer_or("sharing", 1));
  if (sharing < 1 || sharing > kMostSharing)
    return user_error("sharing is not from 1 to " + std::to_string(kMostSharing),
                      r.place("sharing"));
  o.sharing = static_cast<int>(sharing);
  CG_TRY(o.log_level, r.string("log_level"));
  CG_CHECK(r.finish());
  return o;
}

Json to_json(const Admission& a) {
  return {{"admitted", a.admitted},
          {"lazy_answers_tried", a.lazy_answers_tried},
          {"passing", a.passing},
          {"families", a.families},
          {"remark", a.remark}};
}

Result<Admission> admission_from_json(const Json& json) {
  ObjectReader r(json, "admission#");
  Admission a;
  CG_TRY(a.admitted, r.boolean("admitted"));
  CG_TRY(int64_t tried, r.integer("lazy_answers_tried"));
  a.lazy_answers_tried = static_cast<int>(tried);
  CG_TRY(a.passing, r.strings("passing"));
  CG_TRY(a.families, r.strings("families"));
  CG_TRY(a.remark, r.string("remark"));
  CG_CHECK(r.finish());
  return a;
}

Json to_json(const OpenedTask& t) {
  Json out{{"task", cutegen::to_json(t.task)},
           {"admission", to_json(t.admission)},
           {"floor_ns", t.floor_ns},
           {"floor_bound_by", t.floor_bound_by},
           {"toolchain", t.toolchain},
           {"torch", t.torch},
           {"device", t.device}};
  if (t.reachable_ns > 0) out["reachable_ns"] = t.reachable_ns;
  if (t.roofline_ns > 0) out["roofline_ns"] = t.roofline_ns;
  if (!t.gpu.empty()) out["gpu"] = t.gpu;
  if (!t.driver.empty()) out["driver"] = t.driver;  // a real GPU's
  if (!t.product.empty()) out["product"] = t.product;
  if (!t.counters.empty()) out["counters"] = t.counters;
  out["sandbox"] = cutegen::to_json(t.sandbox);
  return out;
}

Result<OpenedTask> opened_task_from_json(const Json& json) {
  ObjectReader r(json, "task#");
  OpenedTask t;
  CG_TRY(Json task, r.object("task"));
  CG_TRY(t.task, task_from_json(task));
  CG_TRY(Json admission, r.object("admission"));
  CG_TRY(t.admission, admission_from_json(admission));
  CG_TRY(t.floor_ns, r.number("floor_ns"));
  CG_TRY(t.floor_bound_by, r.string("floor_bound_by"));
  CG_TRY(t.reachable_ns, r.number_or("reachable_ns", 0));
  CG_TRY(t.roofline_ns, r.number_or("roofline_ns", 0));
  CG_TRY(t.toolchain, r.string("toolchain"));
  CG_TRY(t.torch, r.string("torch"));
  CG_TRY(t.device, r.string("device"));
  CG_TRY(t.gpu, r.string_or("gpu", ""));
  CG_TRY(t.driver, r.string_or("driver", ""));
  CG_TRY(t.product, r.string_or("product", ""));
  CG_TRY(t.counters, r.string_or("counters", ""));
  CG_TRY(Json sandbox, r.object("sandbox"));
  CG_TRY(t.sandbox, sandbox_grade_from_json(sandbox));
  CG_CHECK(r.finish());
  return t;
}

Json to_json(const EvaluateRequest& q) {
  Json out{{"program", cutegen::to_json(q.program)},
           {"up_to", to_string(q.up_to)},
           {"profile", q.profile}};
  if (q.against) out["against"] = cutegen::to_json(*q.against);
  return out;
}

Result<EvaluateRequest> request_from_json(const Json& json) {
  ObjectReader r(json, "request#");
  EvaluateRequest q;
  CG_TRY(Json program, r.object("program"));
  CG_TRY(q.program, program_from_json(program));
  CG_TRY(std::string up_to, r.string("up_to"));
  CG_TRY(q.up_to, rung_from(up_to));
  CG_TRY(q.profile, r.boolean("profile"));
  if (r.has("against")) {
    CG_TRY(Json against, r.object("against"));
    CG_TRY(q.against, program_from_json(against));
  }
  CG_CHECK(r.finish());
  return q;
}

namespace {

Json wanted_json(const std::vector<torch::BaselineWanted>& wanted) {
  Json out = Json::array();
  for (const torch::BaselineWanted& b : wanted)
    out.push_back({{"kind", b.kind}, {"target", b.target}});
  return out;
}

Result<std::vector<torch::BaselineWanted>> wanted_from(ObjectReader& r) {
  CG_TRY(Json baselines, r.array("baselines"));
  if (baselines.size() > kMostBaselines)
    return user_error("too many baselines for one request", r.place("baselines"));
  std::vector<torch::BaselineWanted> out;
  for (const Json& one : baselines) {
    ObjectReader b(one, r.place("baselines"));
    torch::BaselineWanted wanted;
    CG_TRY(wanted.kind, b.string("kind"));
    CG_TRY(wanted.target, b.string("target"));
    CG_CHECK(b.finish());
    out.push_back(std::move(wanted));
  }
  return out;
}

}  // namespace

Json to_json(const CertifyRequest& q) {
  return {{"program", cutegen::to_json(q.program)},
          {"baselines", wanted_json(q.baselines)},
          {"processes", q.processes},
          {"precise", q.precise}};
}

Json to_json(const ForeignRequest& q) {
  return {{"name", q.answer.name},
          {"source", q.answer.source},
          {"up_to", to_string(q.up_to)},
          {"seconds", q.seconds}};
}

Result<ForeignRequest> foreign_request_from_json(const Json& json) {
  ObjectReader r(json, "foreign#");
  ForeignRequest q;
  CG_TRY(q.answer.name, r.string("name"));
  CG_TRY(q.answer.source, r.string("source"));
  CG_TRY(std::string up_to, r.string("up_to"));
  CG_TRY(q.up_to, rung_from(up_to));
  CG_TRY(q.seconds, r.number("seconds"));
  if (!(q.seconds > 0 && q.seconds <= kMostBuildSeconds))
    return user_error("seconds is not a time of at most an hour", r.place("seconds"));
  CG_CHECK(r.finish());
  return q;
}

Json to_json(const BaselinesRequest& q) {
  return {{"baselines", wanted_json(q.baselines)}, {"build_seconds", q.build_seconds}};
}

Result<BaselinesRequest> baselines_request_from_json(const Json& json) {
  ObjectReader r(json, "baselines#");
  BaselinesRequest q;
  CG_TRY(q.baselines, wanted_from(r));
  CG_TRY(q.build_seconds, r.number("build_seconds"));
  if (!(q.build_seconds > 0 && q.build_seconds <= kMostBuildSeconds))
    return user_error("build_seconds is not a time of at most an hour", r.place("build_seconds"));
  CG_CHECK(r.finish());
  return q;
}

Result<std::vector<BaselineTime>> baseline_times_from_json(const Json& reply) {
  ObjectReader r(reply, "baselines#");
  CG_TRY(Json times, r.array("times"));
  if (times.size() > kMostBaselines)
    return world_error("the evaluator reports other baselines than requested");
  std::vector<BaselineTime> out;
  for (const Json& one : times) {
    CG_TRY(BaselineTime time, baseline_time_from_json(one));
    out.push_back(std::move(time));
  }
  return out;
}

Result<CertifyRequest> certify_request_from_json(const Json& json) {
  ObjectReader r(json, "certify#");
  CertifyRequest q;
  CG_TRY(Json program, r.object("program"));
  CG_TRY(q.program, program_from_json(program));
  CG_TRY(q.baselines, wanted_from(r));
  CG_TRY(int64_t processes, r.integer("processes"));
  if (processes < 1 || processes > kMostProcesses)
    return user_error("processes is not from 1 to " + std::to_string(kMostProcesses),
                      r.place("processes"));
  q.processes = static_cast<int>(processes);
  CG_TRY(q.precise, r.number("precise"));
  if (!(q.precise > 0)) return user_error("precise is not above 0", r.place("precise"));
  CG_CHECK(r.finish());
  return q;
}

}  // namespace cutegen::eval::protocol
