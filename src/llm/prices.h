// SPDX-License-Identifier: Apache-2.0
// Prices: reads token prices and parameter restrictions of models from price files.
//
// Contract: entries of the user's price file override entries of models/prices.toml. If no entry
// matches a model, its price is unknown; cutegen does not guess prices. An entry of a price file
// matches a model with the same name, also if the model's name has a date or "-latest" appended.
// PriceEntry::cost() returns the cost of actual usage, and PriceEntry::most() returns the highest
// possible cost of a call.
//
// Example: CG_TRY(Prices p, Prices::load("my.toml")); if (auto* e = p.find("openai", "gpt-5")) ...
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "llm/chat.h"
#include "llm/providers.h"

namespace cutegen::llm {

struct Rates {  // dollars per million tokens
  double input = 0, cached = 0, cache_write = 0, output = 0;
};

struct PriceEntry {
  std::string provider, id, as_of;
  Rates rates, long_rates;
  // If the input has more tokens than long_from_tokens, long_rates apply. The value 0 disables
  // long_rates.
  int64_t long_from_tokens = 0;
  bool temperature = true;  // whether the model accepts the parameter `temperature`
  Thinking thinking = Thinking::unknown;
  std::optional<int64_t> max_output_tokens;

  double cost(const Usage& usage) const;
  double most(int64_t input_tokens, int64_t output_tokens) const;
};

class Prices {
 public:
  static Result<Prices> load(const std::filesystem::path& users_file);
  static Result<std::vector<PriceEntry>> parse(const std::string& text, const std::string& name);
  const PriceEntry* find(const std::string& provider, const std::string& model) const;

 private:
  std::vector<PriceEntry> entries_;  // the user's entries come first
};

}  // namespace cutegen::llm
