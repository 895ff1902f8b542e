// SPDX-License-Identifier: Apache-2.0
// Config: the settings of the command line tool. Each setting records the source of its value.
//
// Contract: if several sources set a key, the first source in this order wins: flag, environment
// variable (CUTEGEN_DEVICE), ./cutegen.toml, the user's file (~/.config/cutegen/config.toml),
// default. For an unknown key, a wrong type or a value out of range, load() returns a user error
// that names the source. Config stores all values as text.
//
// Example:
//   CG_TRY(Config c, Config::load({.flags = {{"device", "sim:a100"}}}));
//   c.text("device"); c.setting("device").source;  // "sim:a100", "flag --device"
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace cutegen {

struct ConfigSources {
  std::map<std::string, std::string> flags = {};  // command-line values by the name of the setting
  std::optional<std::map<std::string, std::string>> environment = {};  // default: the process's
  std::filesystem::path project_file = "cutegen.toml";                 // need not exist
  // default: cutegen/config.toml in $XDG_CONFIG_HOME or ~/.config
  std::filesystem::path user_file = {};
};

class Config {
 public:
  struct Setting {
    std::string key, value, source, meaning;
    bool is_switch() const { return value == "true" || value == "false"; }
    bool is_default() const { return source == "default"; }
    bool is_flag() const { return source.starts_with("flag"); }
  };
  static Result<Config> load(const ConfigSources& sources);

  // `key` must name one of settings(), and the accessor must match the type of this setting.
  const Setting& setting(const std::string& key) const;
  const std::string& text(const std::string& key) const { return setting(key).value; }
  int64_t integer(const std::string& key) const;
  bool boolean(const std::string& key) const;
  // Returns nullopt if no source sets the number.
  std::optional<double> number(const std::string& key) const;
  const std::vector<Setting>& settings() const { return settings_; }
  // Returns {"device": {"value": ..., "source": ...}, ...}. The first event of a run's journal
  // contains the settings in this form.
  Json json() const;

 private:
  std::vector<Setting> settings_;
};

}  // namespace cutegen
