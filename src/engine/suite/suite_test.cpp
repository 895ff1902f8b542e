// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/suite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "engine/testing/toy_world.h"

namespace cutegen::engine {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class SuiteTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = toy::scratch_path("suite");
    for (const char* file : {"level1/19_ReLU.py", "level1/2_Matmul.py", "level1/notes.txt",
                             "level1/readme.py", "level2/1_Conv.py"})
      put(file);
  }
  void TearDown() override { fs::remove_all(dir_); }
  void put(const std::string& name) {
    fs::create_directories((dir_ / name).parent_path());
    ASSERT_TRUE(write_file(dir_ / name, "# a task\n"));
  }
  std::vector<std::string> keys(const fs::path& dir, std::vector<NumberRange> levels,
                                std::vector<NumberRange> numbers = {}) {
    auto tasks = find_suite(dir, levels, numbers);
    if (!tasks) return {tasks.error().text()};
    std::vector<std::string> out;
    for (const SuiteTask& t : *tasks) out.push_back(t.key());
    return out;
  }
  fs::path dir_;
};

using Keys = std::vector<std::string>;

TEST_F(SuiteTest, ListsByNumberAndLeavesOtherFilesOut) {
  EXPECT_EQ(keys(dir_, {{1, 1}}), (Keys{"level1_2_Matmul", "level1_19_ReLU"}));
  EXPECT_EQ(keys(dir_, {{1, 2}}), (Keys{"level1_2_Matmul", "level1_19_ReLU", "level2_1_Conv"}));
  EXPECT_EQ(keys(dir_, {{1, 2}}, {{1, 2}}), (Keys{"level1_2_Matmul", "level2_1_Conv"}));
}

TEST_F(SuiteTest, FindsTheFolderInACheckout) {
  put("checkout/KernelBench/level1/7_X.py");
  EXPECT_EQ(keys(dir_ / "checkout", {{1, 1}}), Keys{"level1_7_X"});
}

TEST_F(SuiteTest, SaysWhatIsNotThere) {
  EXPECT_THAT(keys(dir_, {{3, 3}})[0], HasSubstr("there is no level 3"));
  EXPECT_THAT(keys(dir_, {{1, 90000}})[0], HasSubstr("there is no level 3"));
  EXPECT_THAT(keys(dir_, {{1, 1}}, {{50, 60}})[0], HasSubstr("no task"));
  EXPECT_THAT(keys(dir_ / "level1" / "19_ReLU.py", {{1, 1}})[0], HasSubstr("is not a folder"));
  EXPECT_THAT(keys(dir_ / "level1", {{1, 1}})[0], HasSubstr("contains no folder level1"));
}

TEST(SuiteNumbers, RangesAndMistakes) {
  EXPECT_EQ(parse_numbers("19-32,36", "--tasks").value(),
            (std::vector<NumberRange>{{19, 32}, {36, 36}}));
  EXPECT_EQ(parse_numbers(" 1 ", "--tasks").value(), (std::vector<NumberRange>{{1, 1}}));
  for (const char* bad : {"", "x", "3-", "-3", "9-2", "1,,2", "1234567", "999999"})
    EXPECT_THAT(parse_numbers(bad, "--tasks").error().text(), HasSubstr("--tasks")) << bad;
}

}  // namespace
}  // namespace cutegen::engine
