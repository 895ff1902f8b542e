// SPDX-License-Identifier: Apache-2.0
#include "store/projection.h"

#include "core/event_type.h"
#include "core/verdict.h"

namespace cutegen::store {
namespace {

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

Names<RunState> enum_names(RunState) {
  static constexpr Name<RunState> names[] = {{RunState::running, "running"},
                                             {RunState::finished, "finished"},
                                             {RunState::interrupted, "interrupted"},
                                             {RunState::unreadable, "unreadable"}};
  return names;
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
    if (data.contains("verdict") && status_in(data["verdict"]) != Status::aborted)
      ++info.evaluations;
    info.times_ns[text_at(data, "candidate")] = verdict_time(data);
  } else if (event.type == EventType::accepted) {
    info.best_ns = info.times_ns[text_at(data, "candidate")];
  }
  if (event.type == EventType::imported) {  // comes after the end and does not change the state
    auto decision = from_name<Decision>(text_at(data, "decision"), "decision");
    if (decision && *decision == Decision::accepted) info.best_ns = verdict_time(data);
    return;
  }
  if (event.type == EventType::finished)
    info.state = RunState::finished;
  else if (event.type == EventType::interrupted)
    info.state = RunState::interrupted;
  else
    info.state = RunState::running;
}

void fields(Fields& v, RunInfo& info) {
  v.document("run");
  v.ignore_unknown();
  v("id", info.id);
  v("task_name", info.task_name);
  v("task_file", info.task_file);
  v("device", info.device);
  v("strategy", info.strategy);
  v("model", info.model);
  v("state", info.state);
  v("created", info.created);
  v("events", info.events);
  v("evaluations", info.evaluations);
  v("best_ns", info.best_ns, field::may_lack + field::or_null);
  v("floor_ns", info.floor_ns, field::may_lack + field::or_null);
}

}  // namespace cutegen::store
