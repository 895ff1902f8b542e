// SPDX-License-Identifier: Apache-2.0
#include "base/words.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "base/units.h"

namespace cutegen {

std::string one_line(const std::string& text, size_t limit) {
  std::string out = sanitize(text, limit);
  for (char& c : out)
    if (c == '\n' || c == '\t') c = ' ';
  return out;
}

std::string time_text(const std::optional<double>& ns) {
  return ns ? human_ns(*ns) : "-";
}

std::string ratio_text(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:.2f}x", *ratio) : "-";
}

std::string csv_text(const std::string& text) {
  return "\"" + replace_all(one_line(text, 1000), "\"", "\"\"") + "\"";
}

std::string csv_number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::optional<double> geometric_mean(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  double logs = 0;
  for (double value : values) logs += std::log(value);
  return std::exp(logs / double(values.size()));
}

}  // namespace cutegen
