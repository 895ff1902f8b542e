// SPDX-License-Identifier: Apache-2.0
// Settings: the flags of a command that are settings, and their resolved values with sources.
//
// Contract: add() declares --device, --python, ... for keys of base/config.h, with their meaning as
// help. resolve() applies flag > environment > ./cutegen.toml > the user's file > default. The
// object must live as long as the command (a static, or a shared_ptr in the callback).
//
// Example:
//   auto settings = std::make_shared<Settings>(); settings->add(*command, {"device", "python"});
//   ... CG_TRY(Config config, settings->resolve()); config.text("device");
#pragma once

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <map>
#include <string>

#include "base/config.h"
#include "core/asked_accuracy.h"

namespace cutegen::cli {

inline constexpr const char* kAuto = "auto";  // the value of a flag that lets cutegen decide

class Settings {
 public:
  void add(CLI::App& command, std::initializer_list<const char*> keys);
  Result<Config> resolve() const;

 private:
  struct Flag {
    CLI::Option* option = nullptr;
    std::string value;
    bool is_switch = false;
  };
  std::map<std::string, Flag> flags_;  // by key; a map, because CLI11 holds pointers to its nodes
};

// For commands that judge: --math-mode, --rtol, --atol. asked_accuracy() reads them after
// resolve().
void add_accuracy(Settings& settings, CLI::App& command);
Result<AskedAccuracy> asked_accuracy(const Config& config);

// For commands whose recipes may use algebra: the setting `rewrites`, or an error for an unknown
// name.
Result<std::string> rewrites_of(const Config& config);

// For commands that end a run or a certificate: --fail-under.
void add_fail_under(CLI::App& command, double& wanted);

}  // namespace cutegen::cli
