// SPDX-License-Identifier: Apache-2.0
// Models: creates a ChatModel from the name that the user gives (--model).
//
// Contract: if the provider is unknown or the name is missing, parse_model() returns an error that
// lists the known providers. The function open_model() also fails if the provider needs a key that
// is not set, or if the price file is unreadable. Neither function sends a request. Neither accepts
// the model `builtin`, which is not a language model. Keys come from the provider's environment
// variable or from `key_file`, and cutegen never logs, records or shows them. See docs/models.md
// for providers and settings.
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
  std::string name;      // the provider's name of the model; a folder for relay, a run for replay
};
Result<ModelSpec> parse_model(const std::string& text);

struct ModelConfig {
  std::string url;                 // base URL; if empty, the provider's default URL
  std::filesystem::path key_file;  // contains only the key; if empty, the environment has the key
  std::filesystem::path prices_file;  // the user's prices, which override the shipped ones
  // The largest number of retries of a request after temporary failures.
  int retries = 5;
  // The wait before the first retry of a request. The wait doubles with each retry, up to 8 s.
  std::chrono::milliseconds first_wait{500};
  // If a server demands a wait longer than longest_wait before a retry, chat() fails.
  std::chrono::milliseconds longest_wait{120'000};
  std::chrono::milliseconds idle{300'000};  // longest time without a byte from the server
  std::chrono::minutes relay_wait{0};       // longest wait for an answer file; 0 means no limit
  // The environment variables that may contain keys; if empty, the process's environment.
  std::optional<std::map<std::string, std::string>> environment;
  // For replay:RUN: reads the requests and replies that the run recorded.
  std::function<Result<std::vector<Exchange>>(const std::string& run)> recording;
};
Result<std::unique_ptr<ChatModel>> open_model(const std::string& text, const ModelConfig& config);

// Tells `cutegen doctor` whether the environment has a key for a provider, without the key itself.
struct ProviderState {
  std::string provider, key_variable, url;
  bool key_present = false;
};
std::vector<ProviderState> provider_states();

}  // namespace cutegen::llm
