// SPDX-License-Identifier: Apache-2.0
// Models: turns the name that a user gives (--model) into a ChatModel.
//
// Contract: parse_model refuses an unknown provider or a missing name, and lists the known ones.
// open_model also requires a key if the provider needs one, and a readable price file. Neither
// sends anything. Keys come from the provider's environment variable or `key_file`; they are never
// logged, recorded or shown. This module does not handle `builtin`. docs/models.md lists providers
// and settings.
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
Result<ModelSpec> parse_model(const std::string& text);

struct ModelConfig {
  std::string url;                    // base URL; empty: the provider's own
  std::filesystem::path key_file;     // holds only the key; empty: use the environment
  std::filesystem::path prices_file;  // the user's prices override the shipped ones
  // The most retries of a request without a usable answer.
  int retries = 5;
  // Wait before the first retry; doubles with each retry, at most 8 s.
  std::chrono::milliseconds first_wait{500};
  std::chrono::milliseconds longest_wait{120'000};  // give up if a server demands a longer wait
  std::chrono::milliseconds idle{300'000};          // longest time without a byte from the server
  std::chrono::minutes relay_wait{0};               // longest wait for an answer file; 0: no limit
  std::optional<std::map<std::string, std::string>> environment;  // default: the process's
  // Reads the recorded exchanges of a run, for replay:RUN.
  std::function<Result<std::vector<Exchange>>(const std::string& run)> recording;
};
Result<std::unique_ptr<ChatModel>> open_model(const std::string& text, const ModelConfig& config);

// For `doctor`: whether a provider has a key here. Never holds the key itself.
struct ProviderState {
  std::string provider, key_variable, url;
  bool key_present = false;
};
std::vector<ProviderState> provider_states();

}  // namespace cutegen::llm
