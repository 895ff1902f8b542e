// SPDX-License-Identifier: Apache-2.0
#include "cli/settings.h"

#include <algorithm>

#include "recipes/algebra/rewrites.h"

namespace cutegen::cli {
namespace {

// The default settings, without flags, environment variables and files.
const Config& defaults() {
  static const Config config = [] {
    const char* no_file = "/dev/null/none";
    auto loaded = Config::load({.environment = std::map<std::string, std::string>{},
                                .project_file = no_file,
                                .user_file = no_file});
    CG_ASSERT(loaded.has_value());
    return std::move(*loaded);
  }();
  return config;
}

std::string flag_name(std::string key) {
  // Short names for the settings that people type most.
  static const std::map<std::string, std::string> shorter{{"runs_dir", "--runs,"},
                                                          {"budget_evaluations", "--evaluations,"}};
  const auto known = shorter.find(key);
  const std::string brief = known == shorter.end() ? "" : known->second;
  std::replace(key.begin(), key.end(), '_', '-');
  return brief + "--" + key;
}

}  // namespace

void Settings::add(CLI::App& command, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const Config::Setting& setting = defaults().setting(key);
    Flag& flag = flags_[key];
    flag.is_switch = setting.is_switch();
    bool has_default = !flag.is_switch && !setting.value.empty();
    flag.option = flag.is_switch ? command.add_flag(flag_name(key))
                                 : command.add_option(flag_name(key), flag.value);
    flag.option->description(setting.meaning +
                             (has_default ? " (default " + setting.value + ")" : ""));
  }
}

Result<Config> Settings::resolve() const {
  ConfigSources sources;
  for (const auto& [key, flag] : flags_)
    if (flag.option->count() > 0) sources.flags[key] = flag.is_switch ? "true" : flag.value;
  return Config::load(sources);
}

void add_accuracy(Settings& settings, CLI::App& command) {
  settings.add(command, {"math_mode", "rtol", "atol"});
}

Result<AskedAccuracy> asked_accuracy(const Config& config) {
  AskedAccuracy asked;
  if (!config.text("math_mode").empty()) {
    CG_TRY(asked.math_mode, math_mode_from(config.text("math_mode")));
  }
  asked.rtol = config.number("rtol"), asked.atol = config.number("atol");
  for (const char* key : {"math_mode", "rtol", "atol"})
    if (!config.text(key).empty()) asked.sources[key] = config.setting(key).source;
  return asked;
}

Result<std::string> rewrites_of(const Config& config) {
  const std::string names = config.text("rewrites");
  CG_CHECK(recipes::parse_rewrites(names, "rewrites (" + config.setting("rewrites").source + ")"));
  return names.empty() ? std::string(recipes::kNoRewrites) : names;
}

void add_fail_under(CLI::App& command, double& wanted) {
  command
      .add_option(
          "--fail-under", wanted,
          "exit with code 7 if the best program's speedup is below this number. On a GPU:\n"
          "the speedup over the fastest baseline in the task's math mode, with a cold L2; the\n"
          "lower end of its confidence interval counts. On a simulator: the speedup over the\n"
          "first correct program")
      ->check(CLI::NonNegativeNumber);
}

}  // namespace cutegen::cli
