// SPDX-License-Identifier: Apache-2.0
// Settings: the flags of a command that are settings, and their resolved values with sources.
//
// Contract: add() declares --device, --python, ... for the keys of base/config.h, with their
// meaning as help. resolve() gives flag > environment > ./cutegen.toml > the user's file >
// default. The object lives as long as the command (a static or a shared_ptr in its callback).
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

class Settings {
 public:
  void add(CLI::App& command, std::initializer_list<const char*> keys);
  [[nodiscard]] Result<Config> resolve() const;

 private:
  struct Flag {
    CLI::Option* option = nullptr;
    std::string value;
    bool is_switch = false;
  };
  std::map<std::string, Flag> flags_;  // by key; nodes stay where CLI11 writes to them
};

// --math-mode, --rtol, --atol, of commands that judge. resolve() and asked_accuracy() belong to it.
void add_accuracy(Settings& settings, CLI::App& command);
[[nodiscard]] Result<AskedAccuracy> asked_accuracy(const Config& config);

// --fail-under, of commands that end a run or a certificate.
void add_fail_under(CLI::App& command, double& wanted);

}  // namespace cutegen::cli
