// SPDX-License-Identifier: Apache-2.0
#include "store/projection.h"

#include "core/codec.h"

namespace cutegen::store {
namespace {

constexpr codec::Names<RunState, 4> kStates{{{RunState::running, "running"},
                                             {RunState::finished, "finished"},
                                             {RunState::interrupted, "interrupted"},
                                             {RunState::unreadable, "unreadable"}}};

std::string text_at(const Json& data, const char* key) {
  auto it = data.find(key);
  return it != data.end() && it->is_string() ? it->get<std::string>() : std::string();
}

std::optional<double> number_at(const Json& data, const char* key) {
  auto it = data.find(key);
  if (it == data.end() || !it->is_number()) return std::nullopt;
  return it->get<double>();
}

std::optional<double> verdict_time(const Json& data) {
  auto verdict = data.find("verdict");
  if (verdict == data.end() || !verdict->is_object()) return std::nullopt;
  auto timing = verdict->find("timing");
  if (timing == verdict->end() || !timing->is_object()) return std::nullopt;
  return number_at(*timing, "time_ns");
}

void fold_opened(RunInfo& info, const Json& data) {
  auto run = data.find("run");
  if (run == data.end() || !run->is_object()) return;
  info.task_name = text_at(*run, "task_name");
  info.task_file = text_at(*run, "task_file");
  info.device = text_at(*run, "device");
  info.strategy = text_at(*run, "strategy");
  info.model = text_at(*run, "model");
  info.created = text_at(*run, "created");
}

}  // namespace

const char* to_string(RunState state) {
  return codec::name_of(kStates, state);
}

void fold_run_info(RunInfo& info, const Event& event) {
  const Json& data = event.data;
  ++info.events;
  if (!data.is_object()) return;
  if (event.type == EventType::opened) {
    fold_opened(info, data);
  } else if (event.type == EventType::task) {
    info.floor_ns = number_at(data, "floor_ns");
  } else if (event.type == EventType::evaluated) {
    // An aborted attempt is an infrastructure failure and does not count as an evaluation.
    if (data.contains("verdict") && text_at(data["verdict"], "status") != "aborted")
      ++info.evaluations;
    info.times_ns[text_at(data, "candidate")] = verdict_time(data);
  } else if (event.type == EventType::accepted) {
    info.best_ns = info.times_ns[text_at(data, "candidate")];
  }
  if (event.type == EventType::imported) {  // comes after the end, and the end state stays
    if (text_at(data, "decision") == "accepted") info.best_ns = verdict_time(data);
    return;
  }
  if (event.type == EventType::finished)
    info.state = RunState::finished;
  else if (event.type == EventType::interrupted)
    info.state = RunState::interrupted;
  else
    info.state = RunState::running;
}

Json to_json(const RunInfo& info) {
  auto optional = [](const std::optional<double>& v) { return v ? Json(*v) : Json(nullptr); };
  return Json{{"id", info.id},
              {"task_name", info.task_name},
              {"task_file", info.task_file},
              {"device", info.device},
              {"strategy", info.strategy},
              {"model", info.model},
              {"state", to_string(info.state)},
              {"created", info.created},
              {"events", info.events},
              {"evaluations", info.evaluations},
              {"best_ns", optional(info.best_ns)},
              {"floor_ns", optional(info.floor_ns)}};
}

Result<RunInfo> run_info_from_json(const Json& json) {
  RunInfo info;
  ObjectReader r(json, "run");
  CG_TRY(info.id, r.string("id"));
  CG_TRY(info.task_name, r.string("task_name"));
  CG_TRY(info.task_file, r.string("task_file"));
  CG_TRY(info.device, r.string("device"));
  CG_TRY(info.strategy, r.string("strategy"));
  CG_TRY(info.model, r.string("model"));
  CG_TRY(info.state, codec::enum_field(r, "state", kStates));
  CG_TRY(info.created, r.string("created"));
  CG_TRY(info.events, r.integer("events"));
  CG_TRY(info.evaluations, r.integer("evaluations"));
  info.best_ns = number_at(json, "best_ns");
  info.floor_ns = number_at(json, "floor_ns");
  return info;
}

}  // namespace cutegen::store
