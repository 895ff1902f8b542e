// SPDX-License-Identifier: Apache-2.0
// Models: from the name that a user gives (--model) to a ChatModel.
//
// Contract: parse_model refuses unknown providers and missing names with what it knows; open_model
// also wants a key where the provider needs one, and a readable price file. Nothing is sent yet.
// Keys come from the provider's environment variable or `key_file`; they are never logged, recorded
// or shown. `builtin` is no model of this module. docs/models.md lists providers and settings.
//
// Example: CG_TRY(auto model, open_model("openai:NAME", {.url = "http://localhost:8000/v1"}));
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "llm/chat.h"
#include "llm/replay.h"

namespace cutegen::llm {

struct ModelSpec {
  std::string provider;  // "openai", "anthropic", "relay", "replay", ...
  std::string name;      // the provider's name of the model, a folder, a run
};
[[nodiscard]] Result<ModelSpec> parse_model(const std::string& text);

struct ModelConfig {
  std::string url;                                  // base URL; empty: the provider's own
  std::filesystem::path key_file;                   // holds the key alone; empty: the environment
  std::filesystem::path prices_file;                // the user's prices, over those that ship
  int retries = 5;                                  // of a request that was refused or not answered
  std::chrono::milliseconds first_wait{500};        // before the first retry; doubles, at most 8 s
  std::chrono::milliseconds longest_wait{120'000};  // a server that wants more is given up
  std::chrono::milliseconds idle{300'000};          // without a byte from the server
  std::chrono::minutes relay_wait{0};               // for an answer file; 0: for ever
  std::optional<std::map<std::string, std::string>> environment;  // default: the process's
  // The recorded exchanges of a run, for replay:RUN.
  std::function<Result<std::vector<Exchange>>(const std::string& run)> recording;
};
[[nodiscard]] Result<std::unique_ptr<ChatModel>> open_model(const std::string& text,
                                                            const ModelConfig& config);

// For `doctor`: which providers have a key here, never the key.
struct ProviderState {
  std::string provider, key_variable, url;
  bool key_present = false;
};
[[nodiscard]] std::vector<ProviderState> provider_states();

}  // namespace cutegen::llm
