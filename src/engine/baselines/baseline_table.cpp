// SPDX-License-Identifier: Apache-2.0
#include "engine/baselines/baseline_table.h"

#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "base/words.h"

namespace cutegen::engine {
namespace {

constexpr const char* kSchema = "cutegen.baseline_suite.v1";
constexpr BaselineStatus kStatuses[] = {BaselineStatus::measured, BaselineStatus::cached,
                                        BaselineStatus::error, BaselineStatus::unfinished,
                                        BaselineStatus::pending};

const BaselineTime* find(const BaselineRow& row, const std::string& kind) {
  for (const BaselineTime& t : row.record.times)
    if (t.kind == kind) return &t;
  return nullptr;
}

std::string truth_text(const BaselineRow& row) {
  if (!row.has_times()) return "-";
  return row.record.truth.why.empty() ? fmt::format("{:.2f} s", row.record.truth.seconds) : "no";
}

std::string best_text(const BaselineRow& row) {
  const BaselineTime* best = best_baseline(row.record.times, row.record.math_mode);
  return best ? best->kind : "-";
}

std::optional<double> headroom(const BaselineRow& row) {
  const BaselineTime* best = best_baseline(row.record.times, row.record.math_mode);
  if (!best || row.record.floor_ns <= 0) return std::nullopt;
  return best->time_ns / row.record.floor_ns;
}

void add_reasons(std::map<std::string, std::vector<std::string>>& reasons, const BaselineRow& row) {
  auto add = [&](const std::string& what) {
    reasons[one_line(what, 300)].push_back(row.task.name);
  };
  if (!row.reason.empty()) add(to_string(row.status) + std::string(": ") + row.reason);
  if (!row.has_times()) return;
  if (!row.record.admitted) add("not admitted: " + row.record.remark);
  if (!row.record.truth.why.empty()) add("no truth: " + row.record.truth.why);
  for (const BaselineTime& t : row.record.times)
    if (!t.known())
      add(t.kind + ": " + t.why);
    else if (!in_math_mode(t, row.record.math_mode))
      add(t.kind + " is not compared with programs: " +
          (t.accuracy.precision.empty() ? "another math mode" : accuracy_text(t.accuracy)));
}

}  // namespace

std::string baseline_header(const std::vector<std::string>& kinds) {
  std::string out = fmt::format("{:<44} {:<12} {:<10} {:>8} {:>8}", "task", "class", "status",
                                "admitted", "truth");
  for (const std::string& kind : kinds) out += fmt::format(" {:>11}", one_line(kind, 11));
  return out + fmt::format(" {:>10} {:<11} {:>8}\n", "floor", "best", "headroom");
}

std::string baseline_line(const BaselineRow& row, const std::vector<std::string>& kinds) {
  const bool described = !row.record.task_id.empty();
  std::string out =
      fmt::format("{:<44} {:<12} {:<10} {:>8} {:>8}", one_line(row.task.name, 44).substr(0, 44),
                  one_line(row.record.workload, 12).substr(0, 12), to_string(row.status),
                  !described            ? "-"
                  : row.record.admitted ? "yes"
                                        : "no",
                  truth_text(row));
  for (const std::string& kind : kinds) {
    const BaselineTime* t = find(row, kind);
    out += fmt::format(" {:>11}",
                       time_text(t && t->known() ? std::optional(t->time_ns) : std::nullopt));
  }
  out += fmt::format(" {:>10} {:<11} {:>8}",
                     time_text(described ? std::optional(row.record.floor_ns) : std::nullopt),
                     best_text(row), ratio_text(headroom(row)));
  return out + "\n";
}

std::string baseline_table(const BaselineReport& report, const std::vector<std::string>& kinds) {
  std::string out = baseline_header(kinds);
  std::map<std::string, std::vector<std::string>> reasons;
  std::map<BaselineStatus, int> counts;
  for (const BaselineRow& row : report.rows) {
    out += baseline_line(row, kinds);
    add_reasons(reasons, row);
    ++counts[row.status];
  }
  out += "\n";
  for (const auto& [reason, tasks] : reasons)
    out += fmt::format("{} ({})\n", reason, one_line(join(tasks, ", "), 300));
  std::vector<std::string> parts, controls;
  for (BaselineStatus status : kStatuses)
    if (counts[status] > 0)
      parts.push_back(fmt::format("{} {}", counts[status], to_string(status)));
  for (const ControlTime& c : report.controls)
    controls.push_back(c.name + " " + time_text(c.time_ns));
  out += fmt::format("{} tasks: {}; {:.0f} s on {} (driver {}), {}\n", report.rows.size(),
                     join(parts, ", "), report.seconds, report.gpu, report.driver, report.torch);
  out += "controls: " +
         (report.trouble.empty() ? join(controls, ", ") : one_line(report.trouble, 300)) + "\n";
  return out;
}

Json baseline_json(const BaselineReport& report) {
  Json tasks = Json::array(), counts = Json::object();
  for (BaselineStatus status : kStatuses) counts[to_string(status)] = 0;
  for (const BaselineRow& row : report.rows) {
    Json one{{"level", row.task.level}, {"number", row.task.number},
             {"name", row.task.name},   {"status", to_string(row.status)},
             {"reason", row.reason},    {"describe_s", row.describe_s}};
    one["record"] = row.record.task_id.empty() ? Json(nullptr) : to_json(row.record);
    tasks.push_back(std::move(one));
    Json& count = counts[to_string(row.status)];
    count = count.get<int>() + 1;
  }
  return {{"schema", kSchema},
          {"gpu", report.gpu},
          {"uuid", report.uuid},
          {"driver", report.driver},
          {"torch", report.torch},
          {"controls", write_json(report.controls)},
          {"trouble", report.trouble},
          {"tasks", std::move(tasks)},
          {"counts", std::move(counts)},
          {"seconds", report.seconds},
          {"interrupted", report.interrupted},
          {"exit_code", report.exit_code()}};
}

}  // namespace cutegen::engine
