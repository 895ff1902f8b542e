// SPDX-License-Identifier: Apache-2.0
#include "core/kernel_side.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/hash.h"
#include "core/plan.h"

namespace cutegen {
namespace {

using testing::HasSubstr;

constexpr const char* kGood = R"toml(reference = "norm_reference.py"
[[shapes]]
name = "wide"

[kernel]
name = "norm"
args = ["x", "out", { i32 = "n" }]
grid = "rows"
block = [32, 4]

[kernel.symbols]
rows = "dim(x,0)"
n = "rows * 2"
)toml";

// A folder with norm.cu, norm_reference.py and norm.toml.
class KernelSideTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("cutegen-side-" + random_id());
    ASSERT_TRUE(private_dir(folder_));
    ASSERT_TRUE(write_file(folder_ / "norm.cu", "__global__ void norm() {}\n"));
    ASSERT_TRUE(write_file(folder_ / "norm_reference.py", "import torch\n"));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<KernelSide> read(const std::string& side) {
    EXPECT_TRUE(write_file(folder_ / "norm.toml", side));
    return read_kernel_side(folder_ / "norm.cu");
  }
  std::string error(const std::string& from, const std::string& to) {
    std::string side = kGood;
    side.replace(side.find(from), from.size(), to);
    auto read_back = read(side);
    return read_back ? "no error" : read_back.error().text();
  }

  std::filesystem::path folder_;
};

TEST_F(KernelSideTest, GivesThePlanOfOneLaunch) {
  auto side = read(kGood);
  ASSERT_TRUE(side) << side.error().text();
  EXPECT_EQ(side->reference, folder_ / "norm_reference.py");
  EXPECT_EQ(side->kernel(), "norm");
  auto plan = plan_from_json(side->plan);
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->dialect, Dialect::cuda);
  EXPECT_EQ(plan->sources, std::vector<std::string>{"norm.cu"});
  // Symbols keep the order of the file, because later ones use earlier ones.
  EXPECT_EQ(plan->symbols[0].first, "rows");
  EXPECT_EQ(plan->symbols[1].first, "n");
  const Step& step = plan->steps.at(0);
  EXPECT_EQ(step.grid[0].text(), "rows");
  EXPECT_EQ(step.grid[1].text(), "1");
  EXPECT_EQ(step.block[1].text(), "4");
  EXPECT_EQ(step.args[1].name, "out");
  EXPECT_EQ(step.args[2].kind, ArgSpec::Kind::i32);
}

TEST_F(KernelSideTest, ErrorsNameALineAndARemedy) {
  EXPECT_THAT(error("grid =", "gird ="), HasSubstr("norm.toml:8:8: error: unknown key 'gird'"));
  EXPECT_THAT(error("grid =", "grids ="), HasSubstr("did you mean 'grid'?"));
  EXPECT_THAT(error("block = [32, 4]", ""),
              HasSubstr("norm.toml:5:1: error: [kernel] has no 'block'"));
  EXPECT_THAT(read("reference = \"norm_reference.py\"").error().text(),
              HasSubstr("norm.toml: error: the side file has no table [kernel]"));
  EXPECT_THAT(error("grid =", "grid"), HasSubstr("norm.toml:8:"));
  EXPECT_THAT(error("grid =", "grid"), HasSubstr("the side file does not parse"));
  EXPECT_THAT(error("[\"x\", \"out\", { i32 = \"n\" }]", "\"x\""),
              HasSubstr("'args' is not a list"));
  EXPECT_THAT(error("\"rows\"", "1979-05-27"), HasSubstr("a launch cannot contain a date"));
}

TEST_F(KernelSideTest, ALauncherReplacesTheLaunch) {
  auto side = read(R"toml(reference = "norm_reference.py"
[kernel]
launcher = "launch_norm"
args = ["x", { i32 = "rows" }]
block = 128
symbols = { rows = "dim(x,0)" }
)toml");
  ASSERT_TRUE(side) << side.error().text();
  EXPECT_EQ(side->launcher, "launch_norm");
  EXPECT_EQ(side->launcher_args.dump(), R"([{"tensor":"x"},{"i32":"rows"}])");
  const Json& step = side->plan["steps"][0];
  EXPECT_EQ(step.dump(), R"({"block":[128,1,1]})");
  EXPECT_FALSE(side->plan.contains("launcher"));
  EXPECT_EQ(side->place("/steps/0/args/1"), side->file.string() + ":4:14");
  // The launcher's lines have priority.
  side->source_places["/steps/0/grid"] = "norm.cu:9:3";
  EXPECT_EQ(side->place("/steps/0/grid/1"), "norm.cu:9:3");
  EXPECT_TRUE(read("reference = \"norm_reference.py\"\n[kernel]\nlauncher = \"f\"\n"));
  EXPECT_THAT(error("name = \"norm\"", "launcher = \"\""),
              HasSubstr("norm.toml:6:12: error: 'launcher' is not the name of a function"));
}

TEST_F(KernelSideTest, ATaskNeedsAReference) {
  EXPECT_THAT(error("reference = \"norm_reference.py\"", ""),
              HasSubstr("norm.toml: error: the kernel has no reference: truth, inputs and "
                        "tolerances come from a PyTorch module, not from the kernel (add "
                        "reference = \"FILE.py\", a PyTorch module with Model and get_inputs)"));
  EXPECT_THAT(error("norm_reference.py", "other.py"),
              HasSubstr("norm.toml:1:13: error: there is no"));
  EXPECT_THAT(error("\"norm_reference.py\"", "7"),
              HasSubstr("'reference' is not the path of a file"));
  ASSERT_TRUE(write_file(folder_ / "norm.py", "import torch\n"));
  EXPECT_EQ(error("reference = \"norm_reference.py\"", ""), "no error");  // NAME.py is the default
}

TEST_F(KernelSideTest, FilesMustExist) {
  EXPECT_THAT(read_kernel_side(folder_ / "norm.cu").error().text(),
              HasSubstr("a kernel needs a side file norm.toml"));
  EXPECT_THAT(read_kernel_side(folder_ / "none.cu").error().text(),
              HasSubstr("none.cu: error: the file does not exist"));
}

TEST_F(KernelSideTest, PlacesOfThePlanBecomeLines) {
  auto side = read(kGood);
  ASSERT_TRUE(side);
  auto where = [&](const std::string& pointer) {
    return side
        ->placed({.kind = ErrorKind::user, .message = "wrong", .where = "plan.json#" + pointer})
        .where;
  };
  const std::string file = side->file.string();
  EXPECT_EQ(where("/steps/0/grid/1"), file + ":8:8");
  EXPECT_EQ(where("/steps/0/args/2/i32"), file + ":7:29");
  EXPECT_EQ(where("/steps/0/args/1/tensor"), file + ":7:14");
  EXPECT_EQ(where("/symbols/n"), file + ":13:5");
  EXPECT_EQ(where("/steps/0/when"), file + ":5:1");
  EXPECT_EQ(where("/sources/0"), file + ":5:1");
  EXPECT_EQ(side->placed({ErrorKind::user, "wrong", "a.cu:1:2"}).where, "a.cu:1:2");
}

}  // namespace
}  // namespace cutegen
