// SPDX-License-Identifier: Apache-2.0
// Config: the settings of the command line tool. Each setting remembers where its value comes from.
//
// Contract: flag > environment (CUTEGEN_DEVICE) > ./cutegen.toml > the user's file
// (~/.config/cutegen/config.toml) > default. An unknown key, a wrong type or a value out of range
// is a user error that names the place. load() validates every value; Config keeps them as text.
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
  std::map<std::string, std::string> flags = {};                       // by key, such as "device"
  std::optional<std::map<std::string, std::string>> environment = {};  // default: the process's
  std::filesystem::path project_file = "cutegen.toml";                 // need not exist
  std::filesystem::path user_file = {};  // default: $XDG_CONFIG_HOME or ~/.config
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

  // `key` must be one of settings(), and the accessor must match its declared type.
  const Setting& setting(const std::string& key) const;
  const std::string& text(const std::string& key) const { return setting(key).value; }
  int64_t integer(const std::string& key) const;
  bool boolean(const std::string& key) const;
  // nullopt if no source sets the number.
  std::optional<double> number(const std::string& key) const;
  const std::vector<Setting>& settings() const { return settings_; }
  // {"device": {"value": ..., "source": ...}, ...}. The first event of a journal records it.
  Json json() const;

 private:
  std::vector<Setting> settings_;
};

}  // namespace cutegen
