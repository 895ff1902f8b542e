// SPDX-License-Identifier: Apache-2.0
// Words for lines, tables and CSV files: times, ratios, one line of foreign text; and JSON numbers
// that may be missing.
//
// Contract: one_line() and csv_text() sanitize foreign text. A missing number is "-" in words, an
// empty cell in CSV, and null in JSON.
//
// Example: fmt::print("{} {}\n", one_line(name, 40), time_text(best_ns));
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace cutegen {

[[nodiscard]] std::string one_line(const std::string& text, size_t limit);
[[nodiscard]] std::string time_text(const std::optional<double>& ns);      // "12.1 us" or "-"
[[nodiscard]] std::string ratio_text(const std::optional<double>& ratio);  // "1.21x" or "-"
[[nodiscard]] std::string csv_text(const std::string& text);               // in quotes
[[nodiscard]] std::string csv_number(const std::optional<double>& value);  // empty if none
[[nodiscard]] Json optional_json(const std::optional<double>& value);      // null if none
[[nodiscard]] Result<std::optional<double>> optional_number(ObjectReader& r,
                                                            const std::string& key);
[[nodiscard]] std::optional<double> geometric_mean(const std::vector<double>& values);

}  // namespace cutegen
