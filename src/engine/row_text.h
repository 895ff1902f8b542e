// SPDX-License-Identifier: Apache-2.0
// Rows of runs (engine/batch.h) as JSON and as words, for the tables of `bench` and `compare`.
//
// Contract: foreign text is sanitized to one line. What read_run_row reads is what run_row_json
// wrote; `models` and `curve` apart, which belong to `compare`.
//
// Example: Json json = run_row_json(row); ObjectReader r(json, "x.json"); read_run_row(r, row);
#pragma once

#include "engine/batch.h"

namespace cutegen {

inline constexpr const char* kRowStatuses[] = {"correct",  "no_recipe",   "failed",
                                               "rejected", "unsupported", "aborted",
                                               "error",    "interrupted", "pending"};

[[nodiscard]] std::string one_line(const std::string& text, size_t limit);
[[nodiscard]] std::string time_text(const std::optional<double>& ns);      // "12.1 us" or "-"
[[nodiscard]] std::string ratio_text(const std::optional<double>& ratio);  // "1.21x" or "-"
[[nodiscard]] std::string csv_text(const std::string& text);               // in quotes
[[nodiscard]] std::string csv_number(const std::optional<double>& value);  // empty if none
[[nodiscard]] Json optional_json(const std::optional<double>& value);      // null if none
[[nodiscard]] Result<std::optional<double>> optional_number(ObjectReader& r,
                                                            const std::string& key);
[[nodiscard]] std::optional<double> geometric_mean(const std::vector<double>& values);

[[nodiscard]] Json run_row_json(const RunRow& row);
[[nodiscard]] Result<void> read_run_row(ObjectReader& r, RunRow& row);

}  // namespace cutegen
