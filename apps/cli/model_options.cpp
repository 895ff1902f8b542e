// SPDX-License-Identifier: Apache-2.0
#include "cli/model_options.h"

#include <algorithm>
#include <thread>

#include "base/text.h"
#include "cli/settings.h"
#include "engine/propose/agent_proposer.h"
#include "engine/propose/proposer.h"
#include "toolchain/compile_memory.h"

namespace cutegen::cli {

void ModelOptions::add(CLI::App& command) {
  constexpr const char* kGroup = "Models";
  auto option = [&](const char* name, auto& value, const char* meaning) {
    options_.push_back(command.add_option(name, value, meaning)->group(kGroup));
    return options_.back();
  };
  auto flag = [&](const char* name, bool& value, const char* meaning) {
    options_.push_back(command.add_flag(name, value, meaning)->group(kGroup));
  };
  option("--dialect", dialect_,
         "dialect of the kernels: cute, cuda or cute-strict, which refuses inline\n"
         "matrix instructions and swizzles computed by hand (default cute; cuda if the\n"
         "task is a CUDA kernel)");
  option("--start", start_,
         "who writes the first program: scratch (the model) or recipe (default scratch)");
  option("--profiling", profiling_,
         "when the model sees profiles: delayed, adaptive, from-start or never (default adaptive)");
  option("--chains", agents_.chains,
         "with --strategy cutegen: lines of work, each with its own approach (default 2);\n"
         "then only the best line continues");
  option("--rounds", rounds_,
         "with --strategy cudaforge or astra: number of programs (default 10;\n"
         "astra as published 5)")
      ->check(CLI::PositiveNumber);
  flag("--published", agents_.published,
       "with --strategy cudaforge, stark or astra: use the algorithm as published");
  option("--epsilon", epsilon_,
         "with --strategy stark: share of steps from a random leaf (default 0.1, published 0.35)")
      ->check(CLI::Range(0.0, 1.0));
  option("--draw-seed", agents_.stark.seed,
         "with --strategy stark: seed of its random draws (default 1)");
  option("--without", without_,
         "with --strategy stark: turn off changes to the published form, by name")
      ->delimiter(',')
      ->check(CLI::IsMember(
          {"near-misses", "equal-programs", "bounds", "families", "credit", "drift", "starts"}));
  flag("--no-planner", no_planner_, "do not ask for a plan before the first program");
  flag("--no-profiler", no_profiler_,
       "with --strategy astra: do not ask a profiler; the planner reads the profile itself");
  flag("--no-judge", no_judge_, "do not ask for a diagnosis before a second repair");
  option("--tools", tools_,
         "tools for the model: auto (if it can call them), on, compile or off (default auto)")
      ->check(CLI::IsMember({"auto", "on", "compile", "off"}));
  option("--tool-calls", model_.tool_calls, "maximum number of tool calls per question (default 8)")
      ->check(CLI::Range(1, 64));
  option("--run-tool-calls", model_.run_tool_calls,
         "maximum number of tool calls per run (default 400)")
      ->check(CLI::NonNegativeNumber);
  option("--budget-usd", model_.usd, "maximum cost of the run in dollars (default: no limit)")
      ->check(CLI::NonNegativeNumber);
  option("--budget-tokens", model_.tokens,
         "maximum number of tokens of the run (default: no limit)")
      ->check(CLI::NonNegativeNumber);
  option("--model-url", model_.url, "base URL of the model's server (default: the provider's)");
  option("--model-key-file", key_file_,
         "file with the API key (default: the provider's environment variable)");
  option("--prices", prices_, "TOML file with prices that override the built-in ones");
  option("--relay-minutes", model_.relay_minutes,
         "with --model relay:DIR: minutes to wait for an answer (default: no limit)")
      ->check(CLI::NonNegativeNumber);
  option("--effort", model_.effort,
         "reasoning effort: low, medium, high, xhigh or max (default: the model's own)");
  option("--temperature", temperature_, "sampling temperature (default: the model's own)")
      ->check(CLI::Range(0.0, 2.0));
  option("--prompt-tokens", model_.prompt_tokens,
         "maximum size of one question in tokens (default 24000)")
      ->check(CLI::Range(int64_t{6000}, int64_t{400000}));
}

Result<void> ModelOptions::apply(engine::OptimizeSettings& settings) const {
  if (!engine::asks_model(settings)) {
    for (const CLI::Option* o : options_)
      if (o->count() > 0)
        return user_error("'" + o->get_name() + "' has an effect only if a model proposes",
                          o->get_name(), "name a model with --model, or omit the option");
    return {};
  }
  settings.search.agents = agents_;
  if (rounds_ > 0) settings.search.agents->rounds = rounds_;
  if (rounds_ > 0) settings.search.agents->astra_rounds = rounds_;
  search::StarkSettings& stark = settings.search.agents->stark;
  if (epsilon_ >= 0) stark.epsilon = epsilon_;
  auto has = [&](const char* change) {
    return std::ranges::find(without_, change) == without_.end();
  };
  stark.near_misses = has("near-misses");
  stark.equal_programs = has("equal-programs");
  stark.bounds = has("bounds");
  stark.families = has("families");
  stark.credit = has("credit");
  stark.drift = has("drift");
  if (!has("starts")) stark.starts = 1;
  settings.search.agents->planner = !no_planner_;
  settings.search.agents->judge = !no_judge_;
  settings.search.agents->profiler = !no_profiler_;
  settings.dialect_asked = !dialect_.empty();
  for (const std::string& name : dialects()) {
    CG_TRY(Dialect dialect, search::parse_dialect(name, "--dialect"));
    if (name == dialects().front()) settings.search.agents->dialect = dialect;
  }
  CG_TRY(settings.search.agents->start, search::parse_start(start_, "--start"));
  CG_TRY(settings.search.agents->profiling, search::parse_profiling(profiling_, "--profiling"));
  settings.model_settings = model_;
  CG_TRY(settings.model_settings.tools, engine::parse_tools(tools_, "--tools"));
  settings.model_settings.key_file = key_file_;
  settings.model_settings.prices = prices_;
  if (temperature_ >= 0) settings.model_settings.temperature = temperature_;
  return {};
}

std::vector<std::string> ModelOptions::dialects() const {
  if (dialect_.empty()) return {};
  return several_dialects_ ? split(dialect_, ',') : std::vector{dialect_};
}

Result<void> ModelOptions::apply_to_many(const Config& config, int evaluators,
                                         engine::OptimizeSettings& o) const {
  o.model = config.text("model");
  CG_CHECK(engine::check_model(o.model));
  CG_CHECK(apply(o));
  CG_TRY(o.rewrites, rewrites_of(config));
  CG_TRY(o.evaluator.device, DeviceName::parse(config.text("device")));
  o.evaluator.python = config.text("python");
  o.evaluator.require_sandbox = config.boolean("require_sandbox");
  CG_CHECK(toolchain::grant_compile_memory(config.text("compile_memory"), evaluators));
  const int cores = int(std::max(1U, std::thread::hardware_concurrency()));
  if (evaluators > 1) o.evaluator.runner_threads = std::max(1, cores / evaluators);
  o.evaluator.sharing = std::max(1, evaluators);
  o.search.budget.evaluations = config.integer("budget_evaluations");
  o.resolved_config = config.json();
  return {};
}

}  // namespace cutegen::cli
