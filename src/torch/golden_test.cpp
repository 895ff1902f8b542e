// SPDX-License-Identifier: Apache-2.0
// Golden files pin the descriptions of the shipped tasks byte for byte: tensors, graph, work,
// class, shapes. CUTEGEN_UPDATE_GOLDEN=1 rewrites the files.
#include <gtest/gtest.h>

#include <cstdlib>

#include "torch/testing/test_worker.h"

namespace cutegen::torch {
namespace {

class Description : public testing::TestWithParam<std::string> {};

TEST_P(Description, IsAsBefore) {
  auto task = test_worker().describe(Context(), shipped(GetParam() + ".py"), {});
  ASSERT_TRUE(task) << task.error().text();
  Json json = to_json(*task);
  for (const char* key : {"id", "file", "source"}) json.erase(key);  // depend on the file
  std::string text = dump_json(json, 1) + "\n";
  std::filesystem::path path = std::filesystem::path(CUTEGEN_SOURCE_DIR) / "tests" / "golden" /
                               "torch" / (GetParam() + ".json");
  if (std::getenv("CUTEGEN_UPDATE_GOLDEN")) {
    ASSERT_TRUE(write_file(path, text));
  }
  auto golden = read_file(path);
  ASSERT_TRUE(golden) << golden.error().text();
  EXPECT_EQ(*golden, text);
}

INSTANTIATE_TEST_SUITE_P(Torch, Description,
                         testing::Values("relu", "gelu_bias", "softmax", "rmsnorm", "sum_middle",
                                         "mean_scale"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace cutegen::torch
