// SPDX-License-Identifier: Apache-2.0
#include "llm/prices.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"

namespace cutegen {
const std::map<std::string, std::string>& price_files();  // embedded by CMake
}

namespace cutegen::llm {
namespace {

constexpr size_t kMaxFile = size_t{1} << 20;
constexpr double kMaxRate = 1e6;  // dollars per million tokens; more is a mistake
constexpr double kPerMillion = 1e-6;

// Reads the fields of one [[model]] and refuses unknown ones.
class EntryReader {
 public:
  EntryReader(const toml::table& table, std::string where)
      : table_(table), where_(std::move(where)) {}

  Result<std::string> text(const char* key, bool needed) {
    seen_.emplace_back(key);
    const toml::node* node = table_.get(key);
    if (!node && !needed) return std::string();
    auto value = node ? node->value_exact<std::string>() : std::nullopt;
    if (!value || (needed && value->empty()))
      return user_error(std::string(key) + " must be a string", where_);
    return *value;
  }

  Result<std::optional<double>> rate(const std::string& key) {
    seen_.push_back(key);
    const toml::node* node = table_.get(key);
    if (!node) return std::nullopt;
    auto value = node->value<double>();
    if (!value || !(*value >= 0 && *value <= kMaxRate))
      return user_error(key + " must be dollars per million tokens, zero or more", where_);
    return value;
  }

  Result<std::optional<int64_t>> count(const char* key) {
    seen_.emplace_back(key);
    const toml::node* node = table_.get(key);
    if (!node) return std::nullopt;
    auto value = node->value_exact<int64_t>();
    if (!value || *value <= 0)
      return user_error(std::string(key) + " must be a number of tokens", where_);
    return value;
  }

  Result<bool> flag(const char* key, bool fallback) {
    seen_.emplace_back(key);
    const toml::node* node = table_.get(key);
    if (!node) return fallback;
    auto value = node->value_exact<bool>();
    if (!value) return user_error(std::string(key) + " must be true or false", where_);
    return *value;
  }

  Result<void> finish() {
    for (const auto& [key, node] : table_)
      if (std::find(seen_.begin(), seen_.end(), key.str()) == seen_.end())
        return user_error("unknown field '" + sanitize(key.str(), 64) + "'", where_,
                          "one of " + join(seen_, ", "));
    return {};
  }

  // Input and output are required. A missing cache rate equals the input rate.
  Result<std::optional<Rates>> rates(const std::string& prefix) {
    CG_TRY(auto input, rate(prefix + "input"));
    CG_TRY(auto cached, rate(prefix + "cached"));
    CG_TRY(auto cache_write, rate(prefix + "cache_write"));
    CG_TRY(auto output, rate(prefix + "output"));
    if (!input && !output && !cached && !cache_write) return std::nullopt;
    if (!input || !output)
      return user_error(prefix + "input and " + prefix + "output are needed", where_);
    return Rates{.input = *input,
                 .cached = cached.value_or(*input),
                 .cache_write = cache_write.value_or(*input),
                 .output = *output};
  }

  const std::string& where() const { return where_; }

 private:
  const toml::table& table_;
  std::string where_;
  std::vector<std::string> seen_;
};

Result<Thinking> thinking_of(const std::string& text, const std::string& where) {
  if (text.empty()) return Thinking::unknown;
  if (text == "adaptive") return Thinking::adaptive;
  if (text == "budget") return Thinking::budget;
  return user_error("thinking must be \"adaptive\" or \"budget\"", where);
}

Result<PriceEntry> read_entry(EntryReader reader, const std::string& as_of) {
  PriceEntry entry;
  entry.as_of = as_of;
  CG_TRY(entry.provider, reader.text("provider", true));
  CG_TRY(entry.id, reader.text("id", true));
  CG_TRY(auto rates, reader.rates(""));
  if (!rates) return user_error("input and output are needed", reader.where());
  entry.rates = *rates;
  CG_TRY(auto long_from, reader.count("long_from_tokens"));
  CG_TRY(auto long_rates, reader.rates("long_"));
  if (long_from.has_value() != long_rates.has_value())
    return user_error("long_from_tokens and the long_ prices must be given together",
                      reader.where());
  entry.long_from_tokens = long_from.value_or(0);
  entry.long_rates = long_rates.value_or(*rates);
  CG_TRY(entry.temperature, reader.flag("temperature", true));
  CG_TRY(std::string thinking, reader.text("thinking", false));
  CG_TRY(entry.thinking, thinking_of(thinking, reader.where()));
  CG_TRY(entry.max_output_tokens, reader.count("max_output_tokens"));
  CG_CHECK(reader.finish());
  return entry;
}

// Whether `rest` is a version: "-20251001", "-2025-08-07", "@20251001" or "-latest".
bool is_version(std::string_view rest) {
  if (rest == "-latest") return true;
  if (rest.size() < 9 || (rest[0] != '-' && rest[0] != '@')) return false;
  size_t digits = 0;
  for (char c : rest.substr(1)) {
    if (c >= '0' && c <= '9')
      ++digits;
    else if (c != '-')
      return false;
  }
  return digits == 8;
}

bool fits(const PriceEntry& entry, const std::string& provider, const std::string& model) {
  if (entry.provider != provider || !model.starts_with(entry.id)) return false;
  return model.size() == entry.id.size() ||
         is_version(std::string_view(model).substr(entry.id.size()));
}

double priced(const Rates& rates, const Usage& u) {
  return kPerMillion *
         (double(u.input) * rates.input + double(u.cached) * rates.cached +
          double(u.cache_written) * rates.cache_write + double(u.output) * rates.output);
}

}  // namespace

double PriceEntry::cost(const Usage& usage) const {
  bool is_long = long_from_tokens > 0 && usage.all_input() > long_from_tokens;
  return priced(is_long ? long_rates : rates, usage);
}

double PriceEntry::most(int64_t input_tokens, int64_t output_tokens) const {
  bool is_long = long_from_tokens > 0 && input_tokens > long_from_tokens;
  const Rates& r = is_long ? long_rates : rates;
  double input = std::max({r.input, r.cached, r.cache_write});
  return kPerMillion * (double(input_tokens) * input + double(output_tokens) * r.output);
}

Result<std::vector<PriceEntry>> Prices::parse(const std::string& text, const std::string& name) {
  toml::table file;
  try {
    file = toml::parse(text, name);
  } catch (const toml::parse_error& e) {
    return user_error(
        "not valid TOML: " + std::string(e.description()),
        fmt::format("{}:{}:{}", name, e.source().begin.line, e.source().begin.column));
  }
  auto as_of = file["as_of"].value_exact<std::string>();
  if (!as_of)
    return user_error("no as_of", name, "give the date of the prices: as_of = \"2026-11-21\"");
  std::vector<PriceEntry> out;
  const toml::array* models = file["model"].as_array();
  for (size_t i = 0; models && i < models->size(); ++i) {
    std::string where = fmt::format("{}: model {}", name, i + 1);
    const toml::table* table = models->get(i)->as_table();
    if (!table) return user_error("must be a table", where, "write [[model]]");
    CG_TRY(PriceEntry entry, read_entry({*table, where}, *as_of));
    out.push_back(std::move(entry));
  }
  if (out.empty()) return user_error("no [[model]] in it", name);
  return out;
}

Result<Prices> Prices::load(const std::filesystem::path& users_file) {
  Prices prices;
  if (!users_file.empty()) {
    CG_TRY(std::string text, read_file(users_file, kMaxFile));
    CG_TRY(prices.entries_, parse(text, users_file.string()));
  }
  for (const auto& [path, text] : price_files()) {
    CG_TRY(auto entries, parse(text, path));
    prices.entries_.insert(prices.entries_.end(), entries.begin(), entries.end());
  }
  return prices;
}

const PriceEntry* Prices::find(const std::string& provider, const std::string& model) const {
  auto it = std::find_if(entries_.begin(), entries_.end(),
                         [&](const PriceEntry& e) { return fits(e, provider, model); });
  return it == entries_.end() ? nullptr : &*it;
}

}  // namespace cutegen::llm
