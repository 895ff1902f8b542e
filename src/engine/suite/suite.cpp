// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace cutegen::engine {
namespace fs = std::filesystem;
namespace {

constexpr int kMostNumber = 100'000;
constexpr int kMostLevel = 99;

std::optional<int> number_of(std::string_view text) {
  if (text.empty() || text.size() > 6) return std::nullopt;
  int value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

bool within(const std::vector<NumberRange>& ranges, int number) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const NumberRange& r) { return r.first <= number && number <= r.second; });
}

// Finds the folder that holds the levels: the given one, or KernelBench in a checkout.
Result<fs::path> levels_in(const fs::path& dir) {
  std::error_code error;
  if (!fs::is_directory(dir, error))
    return user_error("'" + sanitize(dir.string(), 200) + "' is not a folder", "--kernelbench",
                      "give a checkout of KernelBench, or a folder with level1, level2, ...");
  for (const fs::path& at : {dir, dir / "KernelBench"}) {
    for (int level = 1; level <= kMostLevel; ++level)
      if (fs::is_directory(at / fmt::format("level{}", level), error)) return at;
  }
  return user_error("'" + sanitize(dir.string(), 200) + "' contains no folder level1, level2, ...",
                    "--kernelbench",
                    "give a checkout of KernelBench, or a folder with this layout");
}

Result<std::vector<SuiteTask>> tasks_of(const fs::path& folder, int level) {
  std::vector<SuiteTask> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const fs::path& file = entry.path();
    if (file.extension() != ".py") continue;
    const std::string name = file.stem().string();
    const size_t end = name.find('_');
    auto number = number_of(std::string_view(name).substr(0, end));
    if (number) out.push_back({.level = level, .number = *number, .name = name, .file = file});
  }
  if (error) return world_error("cannot read '" + folder.string() + "': " + error.message());
  std::sort(out.begin(), out.end(), [](const SuiteTask& a, const SuiteTask& b) {
    return std::tie(a.number, a.name) < std::tie(b.number, b.name);
  });
  return out;
}

}  // namespace

std::string SuiteTask::key() const {
  return fmt::format("level{}_{}", level, name);
}

Result<std::vector<NumberRange>> parse_numbers(const std::string& text, const std::string& where) {
  std::vector<NumberRange> out;
  for (const std::string& raw : split(text, ',')) {
    const std::string part(trim(raw));
    const size_t dash = part.find('-');
    auto first = number_of(std::string_view(part).substr(0, dash));
    auto last =
        dash == std::string::npos ? first : number_of(std::string_view(part).substr(dash + 1));
    if (!first || !last || *first > *last || *last > kMostNumber)
      return user_error("'" + sanitize(part, 60) + "' is neither a number nor a range", where,
                        "give numbers and ranges such as 19-32,36");
    out.emplace_back(*first, *last);
  }
  return out;
}

Result<std::vector<SuiteTask>> find_suite(const fs::path& dir,
                                          const std::vector<NumberRange>& levels,
                                          const std::vector<NumberRange>& numbers) {
  CG_TRY(fs::path root, levels_in(dir));
  std::vector<SuiteTask> out;
  for (const auto& [first, last] : levels) {
    for (int level = first; level <= std::min(last, kMostLevel + 1); ++level) {
      const fs::path folder = root / fmt::format("level{}", level);
      std::error_code error;
      if (!fs::is_directory(folder, error))
        return user_error(
            fmt::format("there is no level {} in '{}'", level, sanitize(root.string(), 200)),
            "--levels", "give levels that exist there");
      CG_TRY(auto tasks, tasks_of(folder, level));
      for (SuiteTask& t : tasks)
        if (numbers.empty() || within(numbers, t.number)) out.push_back(std::move(t));
    }
  }
  if (out.empty())
    return user_error("--tasks selects no task of '" + sanitize(root.string(), 200) + "'",
                      "--tasks", "files are named NUMBER_name.py; omit --tasks for all");
  return out;
}

}  // namespace cutegen::engine
