// SPDX-License-Identifier: Apache-2.0
// Formats times, ratios and untrusted text for the terminal, tables and CSV files, and optional
// numbers for JSON.
//
// Contract: one_line() and csv_text() sanitize untrusted text. A missing number (nullopt) becomes
// "-" in a text, an empty cell in CSV, and null in JSON.
//
// Example: fmt::print("{} {}\n", one_line(name, 40), time_text(best_ns));
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace cutegen {

std::string one_line(const std::string& text, size_t limit);
std::string time_text(const std::optional<double>& ns);      // "12.1 us"; "-" without a time
std::string ratio_text(const std::optional<double>& ratio);  // "1.21x" or "-"
std::string csv_text(const std::string& text);               // in quotes
std::string csv_number(const std::optional<double>& value);  // empty if none
Json optional_json(const std::optional<double>& value);      // null if none
std::optional<double> geometric_mean(const std::vector<double>& values);

}  // namespace cutegen
