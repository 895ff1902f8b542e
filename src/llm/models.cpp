// SPDX-License-Identifier: Apache-2.0
#include "llm/models.h"

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "llm/client.h"
#include "llm/relay.h"

namespace cutegen::llm {
namespace {

constexpr size_t kMaxName = 256;
constexpr size_t kMaxKey = 4096;
constexpr const char* kRelay = "relay";
constexpr const char* kReplay = "replay";

std::vector<std::string> known_providers() {
  std::vector<std::string> out;
  for (const Provider& p : providers()) out.emplace_back(p.name);
  out.insert(out.end(), {kRelay, kReplay});
  return out;
}

std::string variable(const ModelConfig& config, const char* name) {
  if (config.environment) {
    auto it = config.environment->find(name);
    return it == config.environment->end() ? "" : it->second;
  }
  const char* value = std::getenv(name);
  return value ? value : "";
}

// A key goes into a header, so it must be one line of printable characters.
Result<std::string> checked_key(std::string_view text, const std::string& where) {
  std::string_view key = trim(text);
  bool odd = std::any_of(key.begin(), key.end(), [](char c) { return c <= ' ' || c > '~'; });
  if (key.empty() || key.size() > kMaxKey || odd)
    return user_error("has no usable key", where, "it must be one line without blanks");
  return std::string(key);
}

Result<std::string> find_key(const Provider& provider, const ModelConfig& config) {
  if (!config.key_file.empty()) {
    CG_TRY(std::string text, read_file(config.key_file, kMaxKey));
    return checked_key(text, config.key_file.string());
  }
  std::string value = variable(config, provider.key_variable);
  if (!value.empty()) return checked_key(value, provider.key_variable);
  if (!provider.needs_key || !config.url.empty()) return std::string();
  return user_error(std::string("no key for ") + provider.name, {},
                    std::string("set ") + provider.key_variable +
                        ", or name a file that holds the key: --model-key-file");
}

Result<std::string> base_url(const Provider& provider, const ModelConfig& config) {
  std::string url = config.url.empty() ? provider.url : config.url;
  CG_CHECK(check_url(url));
  while (url.ends_with('/')) url.pop_back();
  return url;
}

Result<std::unique_ptr<ChatModel>> open_http(const std::string& text, const ModelSpec& spec,
                                             const ModelConfig& config) {
  HttpModelOptions options;
  options.name = text;
  options.provider = *find_provider(spec.provider);
  options.model = spec.name;
  options.config = config;
  CG_TRY(options.url, base_url(options.provider, config));
  CG_TRY(options.key, find_key(options.provider, config));
  if (!options.key.empty() && options.url.starts_with("http://") && !is_local_url(options.url))
    log_warning("the key for {} goes over an unencrypted connection (http://)", spec.provider);
  CG_TRY(Prices prices, Prices::load(config.prices_file));
  if (const PriceEntry* entry = prices.find(options.provider.priced_as, spec.name))
    options.price = *entry;
  options.is_free = options.provider.is_free && !options.price;
  return std::make_unique<HttpModel>(std::move(options));
}

Result<std::unique_ptr<ChatModel>> open_replay(const std::string& text, const ModelSpec& spec,
                                               const ModelConfig& config) {
  if (!config.recording) return unsupported_error("no recorded runs are available here", text);
  CG_TRY(auto exchanges, config.recording(spec.name));
  if (exchanges.empty())
    return user_error("run '" + spec.name + "' has no questions to a model", text,
                      "give a run that asked a model");
  return std::make_unique<ReplayModel>(text, std::move(exchanges));
}

}  // namespace

Result<ModelSpec> parse_model(const std::string& text) {
  size_t colon = text.find(':');
  std::string provider = text.substr(0, colon);
  std::string shown = sanitize(text, 80);
  std::vector<std::string> known = known_providers();
  if (std::find(known.begin(), known.end(), provider) == known.end()) {
    auto near = nearest(provider, known);
    return user_error("unknown model '" + shown + "'", "--model",
                      near ? "did you mean '" + *near + ":NAME'?"
                           : "write builtin, or PROVIDER:NAME with one of " + join(known, ", "));
  }
  std::string name = colon == std::string::npos ? "" : text.substr(colon + 1);
  const char* needs = provider == kRelay    ? "a folder: relay:DIR"
                      : provider == kReplay ? "a run: replay:RUN"
                                            : "the model's name: PROVIDER:NAME";
  bool odd =
      std::any_of(name.begin(), name.end(), [](char c) { return uint8_t(c) < ' ' || c == 127; });
  if (trim(name).empty() || odd || (name.size() > kMaxName && provider != kRelay))
    return user_error("the model '" + shown + "' has no usable name", "--model",
                      std::string("give ") + needs);
  return ModelSpec{.provider = provider, .name = name};
}

Result<std::unique_ptr<ChatModel>> open_model(const std::string& text, const ModelConfig& config) {
  CG_TRY(ModelSpec spec, parse_model(text));
  if (spec.provider == kRelay) {
    RelaySettings settings;
    settings.wait = config.relay_wait;
    CG_TRY(auto relay, RelayModel::open(text, spec.name, settings));
    return std::unique_ptr<ChatModel>(std::move(relay));
  }
  if (spec.provider == kReplay) return open_replay(text, spec, config);
  return open_http(text, spec, config);
}

std::vector<ProviderState> provider_states() {
  std::vector<ProviderState> out;
  for (const Provider& p : providers()) {
    const char* value = std::getenv(p.key_variable);
    out.push_back({.provider = p.name,
                   .key_variable = p.key_variable,
                   .url = p.url,
                   .key_present = value && *value});
  }
  return out;
}

}  // namespace cutegen::llm
