// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/compare_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "engine/suite/row_text.h"

namespace cutegen::engine {

void fields(Fields& v, ModelCost& c) {
  v.ignore_unknown();
  v("calls", c.calls);
  v("input_tokens", c.input);
  v("cached_tokens", c.cached);
  v("output_tokens", c.output);
  v("usd", c.usd);
  v("unpriced", c.unpriced);
  v("elapsed_ms", c.elapsed_ms);
}

void fields(Fields& v, CompareCell& c) {
  v.ignore_unknown();
  v("task", c.task);
  v("file", c.file);
  v("task_hash", c.task_hash);
  v("strategy", c.strategy);
  v("repeat", c.repeat);
  run_row_fields(v, c);
  v("models", c.models);
  v("curve_ns", c.curve, field::or_null);
}

namespace {

constexpr const char* kCompareSchema = "cutegen.compare.v1";

// Lists each name once, in the order of the cells.
template <class Get>
std::vector<std::string> names(const std::vector<CompareCell>& cells, Get get) {
  std::vector<std::string> out;
  for (const CompareCell& c : cells)
    if (std::find(out.begin(), out.end(), get(c)) == out.end()) out.push_back(get(c));
  return out;
}

std::vector<std::string> strategies_of(const std::vector<CompareCell>& cells) {
  return names(cells, [](auto& c) { return c.strategy; });
}

std::vector<std::string> tasks_of(const std::vector<CompareCell>& cells) {
  return names(cells, [](auto& c) { return c.task; });
}

// Best time / floor of a cell after `evaluations` evaluations, or at its end if none is given.
std::optional<double> ratio_after(const CompareCell& cell, std::optional<int64_t> evaluations) {
  if (!evaluations) return cell.status == RowStatus::correct ? cell.floor_ratio() : std::nullopt;
  if (cell.curve.empty() || !cell.floor_ns || *cell.floor_ns <= 0) return std::nullopt;
  const size_t at = std::min(size_t(*evaluations), cell.curve.size());
  const std::optional<double> ns = at > 0 ? cell.curve[at - 1] : std::nullopt;
  return ns ? std::optional(*ns / *cell.floor_ns) : std::nullopt;
}

// A strategy's ratios on one task, from the repeats that have a ratio.
std::vector<double> task_ratios(const std::vector<CompareCell>& cells, const std::string& task,
                                const std::string& strategy, std::optional<int64_t> evaluations) {
  std::vector<double> ratios;
  for (const CompareCell& c : cells)
    if (c.task == task && c.strategy == strategy)
      if (auto ratio = ratio_after(c, evaluations)) ratios.push_back(*ratio);
  return ratios;
}

std::optional<double> task_ratio(const std::vector<CompareCell>& cells, const std::string& task,
                                 const std::string& strategy, std::optional<int64_t> evaluations) {
  return geometric_mean(task_ratios(cells, task, strategy, evaluations));
}

// The mean over the given tasks; empty if one of them has no time yet.
std::optional<double> mean_ratio(const std::vector<CompareCell>& cells,
                                 const std::vector<std::string>& tasks, const std::string& strategy,
                                 std::optional<int64_t> evaluations) {
  std::vector<double> ratios;
  for (const std::string& task : tasks) {
    auto ratio = task_ratio(cells, task, strategy, evaluations);
    if (!ratio) return std::nullopt;
    ratios.push_back(*ratio);
  }
  return geometric_mean(ratios);
}

void add(ModelCost& sum, const ModelCost& more) {
  sum.calls += more.calls;
  sum.input += more.input;
  sum.cached += more.cached;
  sum.output += more.output;
  sum.usd += more.usd;
  sum.unpriced = sum.unpriced || more.unpriced;
  sum.elapsed_ms += more.elapsed_ms;
}

Json interval_json(const std::optional<RatioInterval>& interval) {
  return interval ? Json::array({interval->low, interval->high}) : Json();
}

std::string interval_text(const std::optional<RatioInterval>& interval) {
  return interval ? fmt::format("{:.2f}-{:.2f}x", interval->low, interval->high) : "-";
}

std::string usd_text(const ModelCost& cost) {
  return fmt::format("${:.4f}{}", cost.usd, cost.unpriced ? "+?" : "");
}

Json summary_json(const StrategySummary& s) {
  return {{"strategy", s.strategy},
          {"runs", s.cells},
          {"correct", s.correct},
          {"tasks", s.tasks},
          {"solved", s.solved},
          {"floor_ratio_geomean", optional_json(s.floor_ratio)},
          {"evaluations", s.evaluations},
          {"floor_ratio_interval", interval_json(s.floor_ratio_interval)},
          {"seconds", s.seconds},
          {"models", to_json(s.models)}};
}

std::string summary_text(const std::vector<CompareCell>& cells) {
  const size_t common = common_tasks(cells).size();
  size_t wide = 12;
  for (const std::string& name : strategies_of(cells)) wide = std::max(wide, name.size());
  std::string out =
      fmt::format("\n{:<{}} {:>7} {:>7} {:>12} {:>12} {:>6} {:>6} {:>10} {:>9} {:>11} {:>8}\n",
                  "strategy", wide, "correct", "solved", "time / floor", "95%", "evals", "calls",
                  "input", "output", "dollars", "minutes");
  for (const StrategySummary& s : summaries(cells))
    out += fmt::format(
        "{:<{}} {:>7} {:>7} {:>12} {:>12} {:>6} {:>6} {:>10} {:>9} {:>11} {:>8.1f}\n", s.strategy,
        wide, fmt::format("{}/{}", s.correct, s.cells), fmt::format("{}/{}", s.solved, s.tasks),
        ratio_text(s.floor_ratio), interval_text(s.floor_ratio_interval), s.evaluations,
        s.models.calls, s.models.input, s.models.output, usd_text(s.models), s.seconds / 60);
  return out +
         fmt::format(
             "correct: runs with a correct program. solved: tasks with a correct program in "
             "at least one repeat.\n"
             "time / floor: geometric mean over the {} {} that every strategy solved. 95%: the "
             "confidence interval of this mean over the repeats.\n",
             common, common == 1 ? "task" : "tasks");
}

}  // namespace

std::vector<std::string> common_tasks(const std::vector<CompareCell>& cells) {
  std::vector<std::string> out;
  const auto strategies = strategies_of(cells);
  for (const std::string& task : tasks_of(cells))
    if (std::all_of(strategies.begin(), strategies.end(), [&](const std::string& s) {
          return task_ratio(cells, task, s, std::nullopt).has_value();
        }))
      out.push_back(task);
  return out;
}

std::vector<StrategySummary> summaries(const std::vector<CompareCell>& cells) {
  const auto common = common_tasks(cells);
  std::vector<StrategySummary> out;
  for (const std::string& strategy : strategies_of(cells)) {
    StrategySummary s;
    s.strategy = strategy;
    std::map<std::string, bool> solved;
    for (const CompareCell& c : cells) {
      if (c.strategy != strategy) continue;
      ++s.cells;
      s.correct += c.status == RowStatus::correct;
      solved[c.task] = solved[c.task] || c.status == RowStatus::correct;
      s.evaluations += c.evaluations;
      add(s.models, c.models);
      s.seconds += c.seconds;
    }
    s.tasks = int64_t(solved.size());
    s.solved = std::count_if(solved.begin(), solved.end(), [](auto& t) { return t.second; });
    s.floor_ratio = mean_ratio(cells, common, strategy, std::nullopt);
    std::vector<std::vector<double>> ratios;
    ratios.reserve(common.size());
    for (const std::string& task : common)
      ratios.push_back(task_ratios(cells, task, strategy, std::nullopt));
    s.floor_ratio_interval = repeat_interval(ratios);
    out.push_back(std::move(s));
  }
  return out;
}

std::vector<CurvePoint> curve_of(const std::vector<CompareCell>& cells,
                                 const std::string& strategy) {
  const auto common = common_tasks(cells);
  size_t longest = 0;
  for (const CompareCell& c : cells) longest = std::max(longest, c.curve.size());
  std::vector<CurvePoint> out;
  for (int64_t k = 1; k <= int64_t(longest); ++k) {
    CurvePoint point{
        .evaluations = k, .correct = 0, .floor_ratio = mean_ratio(cells, common, strategy, k)};
    for (const CompareCell& c : cells)
      point.correct += c.strategy == strategy && ratio_after(c, k).has_value();
    out.push_back(point);
  }
  return out;
}

std::string cell_header() {
  return fmt::format(
      "{:<28} {:<12} {:>6} {:<11} {:>10} {:>8} {:>5} {:>5} {:>9} {:>8} {:>11} {:>7}  {}\n", "task",
      "strategy", "repeat", "status", "best", "vs floor", "evals", "calls", "input", "output",
      "dollars", "minutes", "stopped");
}

std::string cell_line(const CompareCell& c) {
  return fmt::format(
      "{:<28} {:<12} {:>6} {:<11} {:>10} {:>8} {:>5} {:>5} {:>9} {:>8} {:>11} {:>7.1f}  {}\n",
      one_line(c.task, 28).substr(0, 28), c.strategy, c.repeat, to_string(c.status),
      time_text(c.best_ns), ratio_text(c.floor_ratio()), c.evaluations, c.models.calls,
      c.models.input, c.models.output, usd_text(c.models), c.seconds / 60, one_line(c.reason, 120));
}

std::string compare_table(const Comparison& comparison) {
  std::string out = cell_header();
  bool modelled = false;
  for (const CompareCell& c : comparison.cells) {
    out += cell_line(c);
    modelled = modelled || c.modelled();
  }
  out += summary_text(comparison.cells);
  if (modelled)
    out += "A simulator modelled the times; nothing was measured and no baseline was timed.\n";
  return out;
}

std::string compare_csv(const std::vector<CompareCell>& cells) {
  std::string out =
      "task,strategy,repeat,class,status,first_ns,best_ns,time_origin,floor_ns,floor_ratio,"
      "evaluations,calls,input_tokens,cached_tokens,output_tokens,usd,seconds,run,reason\n";
  for (const CompareCell& c : cells)
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                       csv_text(c.task), c.strategy, c.repeat, csv_text(c.workload),
                       to_string(c.status), csv_number(c.first_ns), csv_number(c.best_ns),
                       c.time_origin, csv_number(c.floor_ns), csv_number(c.floor_ratio()),
                       c.evaluations, c.models.calls, c.models.input, c.models.cached,
                       c.models.output, c.models.usd, c.seconds, c.run, csv_text(c.reason));
  return out;
}

std::string curves_csv(const std::vector<CompareCell>& cells) {
  std::string out = "task,strategy,repeat,evaluations,best_ns,floor_ratio\n";
  for (const CompareCell& c : cells)
    for (size_t k = 1; k <= c.curve.size(); ++k)
      out += fmt::format("{},{},{},{},{},{}\n", csv_text(c.task), c.strategy, c.repeat, k,
                         csv_number(c.curve[k - 1]), csv_number(ratio_after(c, int64_t(k))));
  return out;
}

Json compare_settings_json(const CompareSettings& s) {
  const OptimizeSettings& o = s.optimize;
  Json out{{"device", o.evaluator.device.text()},
           {"model", o.model},
           {"search", to_json(o.search)},
           {"minutes", s.minutes},
           {"budget_usd", o.model_settings.usd},
           {"budget_tokens", o.model_settings.tokens},
           {"prompt_tokens", o.model_settings.prompt_tokens},
           {"tools", to_string(o.model_settings.tools)},
           {"effort", o.model_settings.effort},
           {"temperature", optional_json(o.model_settings.temperature)},
           {"seed", s.seed}};
  if (!o.asked.empty()) out["asked"] = to_json(o.asked);
  if (o.dialect_asked) out["dialect_asked"] = true;
  return out;
}

Json compare_json(const CompareSettings& settings, const Comparison& comparison) {
  Json summary = Json::array(), curves = Json::object();
  for (const StrategySummary& s : summaries(comparison.cells)) {
    summary.push_back(summary_json(s));
    Json& curve = curves[s.strategy] = Json::array();
    for (const CurvePoint& p : curve_of(comparison.cells, s.strategy))
      curve.push_back({{"evaluations", p.evaluations},
                       {"correct", p.correct},
                       {"floor_ratio_geomean", optional_json(p.floor_ratio)}});
  }
  return {{"schema", kCompareSchema},
          {"settings", compare_settings_json(settings)},
          {"began", comparison.began},
          {"out", settings.out.string()},
          {"cells", write_json(comparison.cells)},
          {"summary", std::move(summary)},
          {"common_tasks", common_tasks(comparison.cells)},
          {"curves", std::move(curves)},
          {"interrupted", comparison.interrupted},
          {"exit_code", comparison.exit_code()}};
}

Result<Comparison> comparison_from(const Json& document) {
  ObjectReader r(document, "compare.json#");
  CG_TRY(std::string schema, r.string("schema"));
  if (schema != kCompareSchema)
    return user_error(
        "the comparison was written by another version (" + sanitize(schema, 60) + ")",
        "compare.json", "choose another --out");
  Comparison out;
  CG_TRY(out.began, r.string("began"));
  CG_TRY(Json cells, r.array("cells"));
  CG_TRY(out.cells, read_json<std::vector<CompareCell>>(cells, r.place("cells")));
  return out;
}

}  // namespace cutegen::engine
