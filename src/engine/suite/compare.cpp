// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "engine/propose/agent_proposer.h"
#include "engine/suite/compare_table.h"
#include "store/run_lock.h"

namespace cutegen::engine {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostCells = 10'000;
constexpr const char* kClimb = "climb";

struct TaskFile {
  std::string name, hash;
  fs::path file;
};

// Names tasks after their files. Adds a number if files in different folders have the same name.
Result<std::vector<TaskFile>> name_tasks(const std::vector<fs::path>& files) {
  if (files.empty())
    return user_error("no task file given", "cutegen compare",
                      "name one or more: cutegen compare FILE");
  std::vector<TaskFile> out;
  std::set<fs::path> seen;
  std::set<std::string> names;
  for (const fs::path& given : files) {
    TaskFile task;
    task.file = fs::absolute(given).lexically_normal();
    if (!seen.insert(task.file).second)
      return user_error("a task is given twice", given.string(), "give it once");
    CG_TRY(std::string text, read_file(task.file));
    task.hash = sha256(text);
    const std::string stem = task.file.stem().string();
    task.name = stem;
    for (int number = 2; !names.insert(task.name).second; ++number)
      task.name = fmt::format("{}_{}", stem, number);
    out.push_back(std::move(task));
  }
  return out;
}

// Empty for `climb`, which is the strategy cutegen over the recipes, without a model.
std::optional<search::StrategyKind> strategy_of(const std::string& name) {
  auto kind = from_name<search::StrategyKind>(name.substr(0, name.find(':')), "strategy");
  return kind ? std::optional(*kind) : std::nullopt;
}

// The dialect in "cutegen:cuda"; empty if the name has none.
std::optional<Dialect> dialect_of(const std::string& name) {
  const size_t colon = name.find(':');
  return colon == std::string::npos ? std::nullopt : parse_dialect(name.substr(colon + 1));
}

// The settings of one cell.
OptimizeSettings settings_for(const OptimizeSettings& given, const std::string& name) {
  OptimizeSettings out = given;
  const auto strategy = strategy_of(name);
  out.strategy = strategy.value_or(search::StrategyKind::cutegen);
  if (const auto dialect = dialect_of(name); dialect && out.search.agents) {
    out.search.agents->dialect = *dialect;
    out.dialect_asked = true;
  }
  if (strategy) return out;
  out.model = "builtin";
  out.search.agents.reset();
  return out;
}

Result<void> check_settings(const CompareSettings& s) {
  if (s.strategies.empty()) return user_error("no strategy given", "--strategies");
  if (s.repeats < 1) return user_error("--repeats must be at least 1", "--repeats");
  for (const std::string& name : s.strategies) {
    if (strategy_of(name) && !asks_model(s.optimize))
      return user_error("the strategy '" + name + "' needs a model", "--strategies",
                        "name a model with --model, or compare only climb");
    OptimizeSettings cell = settings_for(s.optimize, name);
    CG_CHECK(search::make_strategy(cell.strategy, cell.search));
  }
  return {};
}

class Compare final : private BatchObserver {
 public:
  Compare(const CompareSettings& settings, CompareObserver& observer)
      : settings_(settings), observer_(observer) {}

  Result<Comparison> run(const Parts& parts, const Context& ctx, store::Store& store,
                         const std::vector<fs::path>& files) {
    CG_CHECK(check_settings(settings_));
    CG_TRY(auto tasks, name_tasks(files));
    if (tasks.size() * settings_.strategies.size() * size_t(settings_.repeats) > kMostCells)
      return user_error(fmt::format("more than {} runs", kMostCells), "--repeats",
                        "compare in several parts");
    CG_CHECK(private_dir(settings_.out / "programs"));
    CG_CHECK(plan(tasks));
    CG_CHECK(save());
    CG_CHECK(run_batch(
        parts, ctx, store,
        {.jobs = settings_.jobs, .evaluators = settings_.evaluators, .trace = settings_.trace},
        items_, *this));
    result_.interrupted = ctx.stopped();
    CG_CHECK(save());
    return std::move(result_);
  }

 private:
  fs::path state_file() const { return settings_.out / "compare.json"; }

  Result<void> plan(const std::vector<TaskFile>& tasks) {
    CG_TRY(Comparison before, load());
    result_.began = before.began.empty() ? store::utc_now() : before.began;
    for (const TaskFile& task : tasks)
      for (const std::string& strategy : settings_.strategies)
        for (int repeat = 1; repeat <= settings_.repeats; ++repeat) {
          CompareCell cell;
          cell.task = task.name;
          cell.file = task.file;
          cell.task_hash = task.hash;
          cell.strategy = strategy;
          cell.repeat = repeat;
          bool known = false;
          for (CompareCell& old : before.cells)
            if (old.key() == cell.key() && old.task_hash == task.hash && old.file == task.file) {
              static_cast<RunRow&>(cell) = std::move(old);
              known = true;
            }
          result_.cells.push_back(std::move(cell));
          known_.push_back(known);
        }
    CG_CHECK(check_complete(before));
    for (size_t cell : order())
      if (is_to_do(result_.cells[cell])) {
        cells_.push_back(cell);
        items_.push_back(item_of(result_.cells[cell], known_[cell]));
      }
    return {};
  }

  // A repeated call must contain every cell of the earlier call.
  Result<void> check_complete(const Comparison& before) const {
    for (const CompareCell& old : before.cells)
      if (std::none_of(result_.cells.begin(), result_.cells.end(),
                       [&](const CompareCell& c) { return c.key() == old.key(); }))
        return user_error("the comparison in '" + settings_.out.string() + "' also has " +
                              sanitize(old.key(), 200),
                          "--out", "give the same tasks, or choose another --out");
    return {};
  }

  // Also true for a cell whose environment failed (an unreachable model): its run continues.
  static bool is_to_do(const CompareCell& cell) {
    return !cell.ended() ||
           (cell.status == RowStatus::error && cell.error_code == kExitEnvironment);
  }

  // The cells in rounds, one per repeat, shuffled within each round.
  std::vector<size_t> order() const {
    std::mt19937_64 random(uint64_t(settings_.seed));
    std::vector<size_t> out;
    for (int repeat = 1; repeat <= settings_.repeats; ++repeat) {
      std::vector<size_t> round;
      for (size_t i = 0; i < result_.cells.size(); ++i)
        if (result_.cells[i].repeat == repeat) round.push_back(i);
      for (size_t left = round.size(); left > 1; --left)
        std::swap(round[left - 1], round[random() % left]);
      out.insert(out.end(), round.begin(), round.end());
    }
    return out;
  }

  BatchItem item_of(const CompareCell& cell, bool goes_on) const {
    BatchItem item{.settings = settings_for(settings_.optimize, cell.strategy),
                   .minutes = settings_.minutes,
                   .goes_on = goes_on,
                   .since = result_.began};
    item.settings.file = cell.file;
    if (auto& agents = item.settings.search.agents)  // each repeat uses its own seed
      agents->stark.seed += uint64_t(cell.repeat - 1);
    item.settings.out = fs::absolute(settings_.out) / "programs" / cell.task /
                        fmt::format("{}-{}", cell.strategy, cell.repeat);
    return item;
  }

  // Loads what an earlier call left in the out folder; empty if there was none.
  Result<Comparison> load() const {
    std::error_code error;
    if (!fs::exists(state_file(), error)) return Comparison{};
    CG_TRY(std::string text, read_file(state_file(), kMostState));
    CG_TRY(Json document, parse_json(text, state_file().string(), kMostState));
    CG_TRY(Comparison before, comparison_from(document));
    const Json wanted = compare_settings_json(settings_);
    const Json recorded = document.value("settings", Json());
    if (canonical_json(recorded) == canonical_json(wanted)) return before;
    return user_error("the comparison in '" + settings_.out.string() +
                          "' has different settings: " + sanitize(dump_json(recorded), 300),
                      "--out", "give the same settings, or choose another --out");
  }

  Result<void> on_end(size_t item, RunRow row) override {
    CompareCell& cell = result_.cells[cells_[item]];
    static_cast<RunRow&>(cell) = std::move(row);
    CG_CHECK(save());
    const auto ended = std::count_if(result_.cells.begin(), result_.cells.end(),
                                     [](auto& c) { return c.ended(); });
    observer_.on_cell(cell, size_t(ended), result_.cells.size());
    return {};
  }

  void on_progress(size_t item, const std::string& line) override {
    observer_.on_progress(result_.cells[cells_[item]], line);
  }

  Result<void> save() {
    CG_CHECK(write_file(state_file(), dump_json(compare_json(settings_, result_), 1) + "\n"));
    CG_CHECK(write_file(settings_.out / "compare.csv", compare_csv(result_.cells)));
    return write_file(settings_.out / "curves.csv", curves_csv(result_.cells));
  }

  const CompareSettings& settings_;
  CompareObserver& observer_;
  Comparison result_;
  // For each cell: whether an earlier call has finished it for the same task.
  std::vector<bool> known_;
  std::vector<BatchItem> items_;
  std::vector<size_t> cells_;  // cell of each item
};

}  // namespace

std::vector<std::string> comparable_strategies() {
  std::vector<std::string> out;
  for (const auto& [kind, name] : enum_names(search::StrategyKind{})) out.emplace_back(name);
  out.emplace_back(kClimb);
  return out;
}

Result<std::vector<std::string>> parse_strategies(const std::string& text) {
  const std::vector<std::string> known = comparable_strategies();
  std::vector<std::string> out;
  for (const std::string& raw : split(text, ',')) {
    const std::string name(trim(raw));
    const size_t colon = std::min(name.find(':'), name.size());
    if (std::find(known.begin(), known.end(), name.substr(0, colon)) == known.end())
      return user_error("unknown strategy '" + sanitize(name, 60) + "'", "--strategies",
                        "some of " + join(known, ", "));
    if (colon < name.size()) {
      CG_TRY([[maybe_unused]] Dialect dialect,
             search::parse_dialect(name.substr(colon + 1), "--strategies"));
      if (!strategy_of(name))
        return user_error("the strategy '" + name.substr(0, colon) +
                              "' asks no model, so it has "
                              "no dialect",
                          "--strategies", "omit the dialect");
    }
    if (std::find(out.begin(), out.end(), name) != out.end())
      return user_error("the strategy '" + name + "' is given twice", "--strategies",
                        "give it once; --repeats runs it several times");
    out.push_back(name);
  }
  return out;
}

Result<std::vector<std::string>> with_dialects(const std::vector<std::string>& strategies,
                                               const std::vector<std::string>& dialects) {
  if (dialects.size() < 2) return strategies;
  std::vector<std::string> out;
  for (const std::string& strategy : strategies) {
    if (strategy.find(':') != std::string::npos)
      return user_error("the dialect of '" + sanitize(strategy, 60) + "' is given twice",
                        "--dialect", "name dialects in --strategies or in --dialect");
    if (!strategy_of(strategy)) out.push_back(strategy);
    for (const std::string& dialect : dialects)
      if (strategy_of(strategy)) out.push_back(strategy + ":" + dialect);
  }
  return out;
}

std::string CompareCell::key() const {
  return fmt::format("{}/{}-{}", task, strategy, repeat);
}

int Comparison::exit_code() const {
  if (interrupted) return kExitInterrupted;
  std::vector<const RunRow*> all;
  all.reserve(cells.size());
  for (const CompareCell& cell : cells) all.push_back(&cell);
  return engine::exit_code(all);
}

Result<Comparison> run_compare(const Parts& parts, const Context& ctx, store::Store& store,
                               const CompareSettings& settings, const std::vector<fs::path>& files,
                               CompareObserver& observer) {
  return Compare(settings, observer).run(parts, ctx, store, files);
}

}  // namespace cutegen::engine
