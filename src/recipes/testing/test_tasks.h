// SPDX-License-Identifier: Apache-2.0
// Tasks for the tests of the recipes: small traced modules, which the files
// tests/golden/recipes/NAME.json contain.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "core/task.h"

namespace cutegen::recipes {

inline std::filesystem::path golden_folder() {
  return std::filesystem::path(CUTEGEN_SOURCE_DIR) / "tests/golden/recipes";
}

inline Task golden_task(const std::string& name) {
  auto text = read_file(golden_folder() / (name + ".json"));
  if (!text) throw std::runtime_error(text.error().text());
  auto json = parse_json(*text, name);
  if (!json) throw std::runtime_error(json.error().text());
  auto task = read_json<Task>(*json);
  if (!task) throw std::runtime_error(task.error().text());
  return *task;
}

}  // namespace cutegen::recipes
