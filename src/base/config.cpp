// SPDX-License-Identifier: Apache-2.0
#include "base/config.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/file.h"
#include "base/text.h"

namespace cutegen {
namespace fs = std::filesystem;

namespace {

constexpr size_t kMaxFile = size_t{64} << 10;

enum class Type { text, integer, boolean, number, choice };  // number and choice may be unset: ""

struct Declared {
  const char* key;
  Type type;
  const char* fallback;
  const char* meaning;
  const char* choices = "";  // separated by spaces: "fp32 tf32"
};

constexpr Declared kDeclared[] = {
    {.key = "device",
     .type = Type::text,
     .fallback = "sim:h200",
     .meaning = "where programs run: sim:GPU (the simulator) or cuda:N (a GPU)"},
    {.key = "python",
     .type = Type::text,
     .fallback = "",
     .meaning =
         "Python interpreter that has torch; empty: the one in cutegen's .venv, else python3"},
    {.key = "model",
     .type = Type::text,
     .fallback = "builtin",
     .meaning = "kernel author: builtin (recipes), PROVIDER:NAME, relay:DIR, replay:RUN"},
    {.key = "strategy",
     .type = Type::text,
     .fallback = "cutegen",
     .meaning = "strategy: cutegen, cudaforge, stark, astra, astra-single or best-of-n"},
    {.key = "rewrites",
     .type = Type::text,
     .fallback = "none",
     .meaning = "algebraic rewrites for recipes: all, none or names (docs/recipes.md)"},
    {.key = "budget_evaluations",
     .type = Type::integer,
     .fallback = "40",
     .meaning = "maximum number of evaluations of a run"},
    {.key = "runs_dir",
     .type = Type::text,
     .fallback = "",
     .meaning = "folder for the journals of runs; empty: ~/.local/share/cutegen/runs"},
    {.key = "compile_memory",
     .type = Type::text,
     .fallback = "",
     .meaning =
         "memory to compile edits ahead, such as 4G; 0: off; empty: a quarter of RAM, at most "
         "8G"},
    {.key = "math_mode",
     .type = Type::choice,
     .fallback = "",
     .meaning = "how much a program may round: fp32, tf32, fp16 or bf16 (default: from the dtypes)",
     .choices = "fp32 tf32 fp16 bf16"},
    {.key = "rtol",
     .type = Type::number,
     .fallback = "",
     .meaning = "relative part (RTOL) of your own error bound: |y - truth| <= ATOL + RTOL |truth|"},
    {.key = "atol",
     .type = Type::number,
     .fallback = "",
     .meaning =
         "absolute part (ATOL) of your own error bound, which applies in addition to cutegen's"},
    {.key = "require_sandbox",
     .type = Type::boolean,
     .fallback = "false",
     .meaning = "refuse to run without the full sandbox"},
};

const Declared* find(const std::string& key) {
  for (const Declared& d : kDeclared)
    if (key == d.key) return &d;
  return nullptr;
}

tl::unexpected<Error> unknown(const std::string& key, const std::string& where) {
  std::vector<std::string> known;
  for (const Declared& d : kDeclared) known.emplace_back(d.key);
  auto near = nearest(key, known);
  return user_error(
      "unknown setting '" + key.substr(0, 64) + "'", where,
      near ? "did you mean '" + *near + "'?" : fmt::format("one of {}", fmt::join(known, ", ")));
}

std::optional<int64_t> as_integer(const std::string& text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<bool> as_boolean(const std::string& text) {
  if (text == "true" || text == "1" || text == "yes") return true;
  if (text == "false" || text == "0" || text == "no") return false;
  return std::nullopt;
}

std::optional<double> as_number(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

Result<std::string> checked_choice(const Declared& d, const std::string& value,
                                   const std::string& where) {
  const std::vector<std::string> known = split(d.choices, ' ');
  if (value.empty() || std::find(known.begin(), known.end(), value) != known.end()) return value;
  auto near = nearest(value, known);
  return user_error(
      fmt::format("{} '{}' is not known", d.key, value.substr(0, 64)), where,
      near ? "did you mean '" + *near + "'?" : fmt::format("one of {}", fmt::join(known, ", ")));
}

// Returns the value in its canonical form, or the reason why it is invalid.
Result<std::string> checked(const Declared& d, const std::string& value, const std::string& where) {
  if (d.type == Type::integer) {
    auto n = as_integer(value);
    if (!n || *n < 0)
      return user_error(fmt::format("{} = '{}' is not a count", d.key, value.substr(0, 64)), where,
                        "give a whole number, zero or more");
    return std::to_string(*n);
  }
  if (d.type == Type::boolean) {
    auto b = as_boolean(value);
    if (!b)
      return user_error(
          fmt::format("{} = '{}' is neither true nor false", d.key, value.substr(0, 64)), where,
          "give true or false");
    return std::string(*b ? "true" : "false");
  }
  if (d.type == Type::number && !value.empty()) {
    auto n = as_number(value);
    if (!n || !std::isfinite(*n) || *n < 0)
      return user_error(fmt::format("{} = '{}' is not a tolerance", d.key, value.substr(0, 64)),
                        where, "give a finite number, zero or more");
    return fmt::format("{}", *n);
  }
  if (d.type == Type::choice) return checked_choice(d, value, where);
  if (value.size() > 4096 || value.find('\0') != std::string::npos)
    return user_error(std::string(d.key) + " is too long or not text", where);
  return value;
}

std::string env_name(const std::string& key) {
  std::string out = "CUTEGEN_";
  for (char c : key) out += char(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return out;
}

std::map<std::string, std::string> process_environment() {
  std::map<std::string, std::string> out;
  for (const Declared& d : kDeclared)
    if (const char* value = std::getenv(env_name(d.key).c_str())) out[env_name(d.key)] = value;
  return out;
}

fs::path default_user_file() {
  if (const char* xdg = std::getenv("XDG_CONFIG_HOME"); xdg && *xdg)
    return fs::path(xdg) / "cutegen" / "config.toml";
  const char* home = std::getenv("HOME");
  return home && *home ? fs::path(home) / ".config" / "cutegen" / "config.toml" : fs::path();
}

// Returns the text of a TOML value if it has the declared type.
Result<std::string> toml_value(const Declared& d, const toml::node& node,
                               const std::string& where) {
  const char* wanted = "a string";
  if (d.type == Type::text || d.type == Type::choice) {
    if (auto s = node.value_exact<std::string>()) return checked(d, *s, where);
  } else if (d.type == Type::integer) {
    wanted = "an integer";
    if (auto i = node.value_exact<int64_t>()) return checked(d, std::to_string(*i), where);
  } else if (d.type == Type::number) {
    wanted = "a number";
    if (auto n = node.value<double>(); n && node.is_number())
      return checked(d, fmt::format("{}", *n), where);
  } else {
    wanted = "true or false";
    if (auto b = node.value_exact<bool>()) return std::string(*b ? "true" : "false");
  }
  return user_error(fmt::format("{} must be {}", d.key, wanted), where);
}

using Values = std::map<std::string, std::pair<std::string, std::string>>;  // value, source

Result<void> read_file_into(Values& values, const fs::path& path) {
  std::error_code error;
  if (path.empty() || !fs::exists(path, error)) return {};
  CG_TRY(std::string text, read_file(path, kMaxFile));
  toml::table table;
  try {
    table = toml::parse(text, path.string());
  } catch (const toml::parse_error& e) {
    return user_error(
        "not valid TOML: " + std::string(e.description()),
        fmt::format("{}:{}:{}", path.string(), e.source().begin.line, e.source().begin.column));
  }
  for (const auto& [key, node] : table) {
    std::string name(key.str());
    const auto& at = key.source().begin;
    std::string where = fmt::format("{}:{}:{}", path.string(), at.line, at.column);
    const Declared* d = find(name);
    if (!d) return unknown(name, where);
    CG_TRY(std::string value, toml_value(*d, node, where));
    values[name] = {std::move(value), path.string()};
  }
  return {};
}

Result<void> read_environment_into(Values& values,
                                   const std::map<std::string, std::string>& environment) {
  for (const Declared& d : kDeclared) {
    std::string name = env_name(d.key);
    auto it = environment.find(name);
    if (it == environment.end() || it->second.empty()) continue;
    CG_TRY(std::string value, checked(d, it->second, name));
    values[d.key] = {std::move(value), "environment " + name};
  }
  return {};
}

Result<void> read_flags_into(Values& values, const std::map<std::string, std::string>& flags) {
  for (const auto& [key, text] : flags) {
    std::string option = "--" + key;
    std::replace(option.begin(), option.end(), '_', '-');
    const Declared* d = find(key);
    if (!d) return unknown(key, option);
    CG_TRY(std::string value, checked(*d, text, option));
    values[key] = {std::move(value), "flag " + option};
  }
  return {};
}

}  // namespace

Result<Config> Config::load(const ConfigSources& sources) {
  Values values;  // a later source overrides an earlier one
  CG_CHECK(
      read_file_into(values, sources.user_file.empty() ? default_user_file() : sources.user_file));
  CG_CHECK(read_file_into(values, sources.project_file));
  CG_CHECK(read_environment_into(
      values, sources.environment ? *sources.environment : process_environment()));
  CG_CHECK(read_flags_into(values, sources.flags));
  Config config;
  for (const Declared& d : kDeclared) {
    auto it = values.find(d.key);
    if (it == values.end())
      config.settings_.push_back(
          {.key = d.key, .value = d.fallback, .source = "default", .meaning = d.meaning});
    else
      config.settings_.push_back({.key = d.key,
                                  .value = it->second.first,
                                  .source = it->second.second,
                                  .meaning = d.meaning});
  }
  return config;
}

const Config::Setting& Config::setting(const std::string& key) const {
  auto it = std::find_if(settings_.begin(), settings_.end(),
                         [&](const Setting& s) { return s.key == key; });
  CG_ASSERT(it != settings_.end());
  return *it;
}

int64_t Config::integer(const std::string& key) const {
  auto value = as_integer(text(key));
  CG_ASSERT(value.has_value());
  return *value;
}

std::optional<double> Config::number(const std::string& key) const {
  return as_number(text(key));
}

bool Config::boolean(const std::string& key) const {
  auto value = as_boolean(text(key));
  CG_ASSERT(value.has_value());
  return *value;
}

Json Config::json() const {
  Json out = Json::object();
  for (const Setting& s : settings_) out[s.key] = {{"value", s.value}, {"source", s.source}};
  return out;
}

}  // namespace cutegen
