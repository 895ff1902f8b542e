// SPDX-License-Identifier: Apache-2.0
// Compares generated numbers byte for byte with golden files. CUTEGEN_UPDATE_GOLDEN=1 rewrites
// them.
#include "exporter/exporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "exporter/templates.h"
#include "exporter/testing/test_source.h"

namespace cutegen::exporter {
namespace {
namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(CUTEGEN_SOURCE_DIR) + "/tests/golden/exporter/" + name;
  if (std::getenv("CUTEGEN_UPDATE_GOLDEN")) {
    ASSERT_TRUE(write_file(path, text));
    return;
  }
  EXPECT_EQ(text, read_file(path).value_or("")) << path;
}

ExportFiles files_of(const ExportSource& source, ExportKind kind) {
  auto files = export_files(source, kind);
  EXPECT_TRUE(files) << files.error().text();
  return files ? std::move(*files) : ExportFiles();
}

std::string lines_from(const std::string& text, const std::string& from, const std::string& to) {
  const size_t begin = text.find(from);
  return begin == std::string::npos ? "" : text.substr(begin, text.find(to, begin) - begin);
}

TEST(Exporter, LaunchesHaveEveryNumberOfThePlan) {
  ExportSource source = test_source().value();
  expect_golden("launches.json", dump_json(launches_json(source).value(), 2) + "\n");
}

TEST(Exporter, TablesOfCppSayTheSame) {
  ExportFiles files = files_of(test_source().value(), ExportKind::cpp);
  expect_golden("norm.h", files.at("norm.h"));
  expect_golden("norm.tables", lines_from(files.at("norm.cpp"), "constexpr Gpu", "struct Driver"));
  for (const char* name : {"main.cpp", "CMakeLists.txt", "load.py", "bench.py", "test_norm.py"})
    EXPECT_THAT(files.at(name), Not(HasSubstr("@FILE@"))) << name;
}

TEST(Exporter, ThePageNamesTheLimits) {
  ExportSource source = test_source().value();
  source.left_out = {"shape large: 'K' is odd"};
  Verdict v;
  v.status = Status::correct;
  v.device = "cuda:0", v.gpu = "NVIDIA H200", v.driver = "580.1", v.sets_judged = 12;
  v.build_ids = {"another"};
  v.timing =
      Timing{.origin = Origin::measured, .shape = "official", .time_ns = 1e5, .floor_ns = 5e4};
  v.skipped = {"profile: not asked for"};
  source.verdict = v;
  Certificate c;
  c.gpu = v.gpu, c.driver = "580.1", c.torch = "torch 2.13.0", c.processes = 2;
  c.modes = {{.mode = TimeMode::cold,
              .time_ns = 1e5,
              .low_ns = 9e4,
              .high_ns = 1.1e5,
              .against = {{.against = "eager",
                           .program_id = "",
                           .speedup = 2.5,
                           .low = 2.4,
                           .high = 2.6,
                           .other_ns = 2.5e5,
                           .pairs = 20,
                           .stopped = "precise"}}}};
  source.certificate = c;
  expect_golden("README.md", readme(source, ExportKind::torch));
  EXPECT_NE(readme(source, ExportKind::kernelbench), readme(source, ExportKind::cpp));
}

TEST(Exporter, EachKindHasItsFiles) {
  ExportSource source = test_source().value();
  ExportFiles torch = files_of(source, ExportKind::torch);
  for (const char* name : {"__init__.py", "runtime.py", "reference.py", "launches.json", "load.py",
                           "images/norm.sm_90a.cubin", "images/norm.sm_90a.ptx", "program/norm.cu",
                           "program/plan.json", "test_norm.py", "bench.py", "README.md"})
    EXPECT_TRUE(torch.count(name)) << name;
  EXPECT_FALSE(torch.count("verdict.json"));
  EXPECT_EQ(torch.at("reference.py"), source.task.source);
  ExportFiles one = files_of(source, ExportKind::kernelbench);
  EXPECT_FALSE(one.count("runtime.py"));
  EXPECT_THAT(one.at("model_new.py"), HasSubstr("class ModelNew(_reference.Model)"));
  EXPECT_THAT(one.at("model_new.py"), HasSubstr(base64(source.modules[0].cubin)));
  EXPECT_THAT(one.at("model_new.py"), Not(HasSubstr("from .")));
}

TEST(Exporter, WithoutMachineCodeThePtxIsUsed) {
  ExportSource source = test_source().value();
  source.modules[0].cubin.clear();
  EXPECT_FALSE(files_of(source, ExportKind::torch).count("images/norm.sm_90a.cubin"));
  EXPECT_THAT(files_of(source, ExportKind::kernelbench).at("model_new.py"),
              HasSubstr(base64(source.modules[0].ptx)));
  EXPECT_THAT(files_of(source, ExportKind::cpp).at("norm.cpp"), HasSubstr("norm.sm_90a.ptx"));
}

TEST(Exporter, TextsOfPythonSurvive) {
  EXPECT_EQ(python_text("a\\b"), "\"\"\"a\\\\b\"\"\"");
  EXPECT_EQ(python_text("\"\"\"x\""), "\"\"\"\\\"\\\"\\\"x\\\"\"\"\"");
  EXPECT_EQ(python_text("a\r\n"), "\"\"\"a\\r\n\"\"\"");
  EXPECT_EQ(base64("M"), "TQ==");
  EXPECT_EQ(base64("Ma"), "TWE=");
  EXPECT_EQ(base64("Man"), "TWFu");
  EXPECT_EQ(base64(""), "");
}

TEST(Exporter, WhatIsFilledInIsNotSearchedAgain) {
  EXPECT_THAT(filled("package.py", {{"NAME", "@GPU@"}, {"GPU", "g"}, {"PACKAGE", "p"}}),
              HasSubstr("kernels for g"));
  const std::string text = filled("package.py", {{"NAME", "@NAME@"}});
  EXPECT_THAT(text, HasSubstr("@NAME@: the module"));
}

TEST(Exporter, NamesBecomePlain) {
  EXPECT_EQ(plain_name("softmax"), "softmax");
  EXPECT_EQ(plain_name("40_LayerNorm"), "n40_layernorm");
  EXPECT_EQ(plain_name("a b/../c"), "a_b____c");
  EXPECT_EQ(plain_name(""), "n");
}

TEST(Exporter, WhatNoExportCanDoIsNamed) {
  Task task = test_task();
  EXPECT_TRUE(check_exportable(task));
  task.tensors.pop_back();
  auto refused = check_exportable(task);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::unsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("returns no tensor"));
  task = test_task();
  task.tensors.erase(task.tensors.begin());
  EXPECT_FALSE(check_exportable(task));
}

TEST(Exporter, ATensorMapInIm2colModeKeepsItsCornersAndSteps) {
  ExportSource source = test_source().value();
  // rank, dims, strides; version, rank, box, modes, bits, swizzle; lower, upper, steps
  const std::vector<int64_t> words{3, 8, 20, 2, 1, 8, 160, 1, 3, 8,  64, 1, 1,
                                   1, 0, 1,  2, 0, 0, 32,  0, 4, -1, -1, 1};
  for (auto& step : source.shapes[0].plan.steps) {
    auto* launch = std::get_if<Launch>(&step);
    if (!launch) continue;
    launch->args[0].bytes.resize(words.size() * 8);
    std::memcpy(launch->args[0].bytes.data(), words.data(), words.size() * 8);
  }
  const auto json = launches_json(source);
  ASSERT_TRUE(json) << json.error().text();
  const std::string text = json->dump();
  EXPECT_THAT(text, HasSubstr(R"("im2col":{"lower":[-1],"upper":[-1],"steps":[1,1,1]})"));
}

TEST(Exporter, MutatedTensorsAreWrittenWhereTheyLie) {
  ExportSource source = test_source().value();
  source.task.tensors[0].mutated = true;
  source.task.returns = {"x", "out"};
  ASSERT_TRUE(check_exportable(source.task));
  Json launches = launches_json(source).value();
  EXPECT_EQ(launches["mutated"], Json::array({"x"}));
  EXPECT_EQ(launches["returns"], Json::array({"x", "out"}));
  EXPECT_FALSE(launches_json(test_source().value())->contains("mutated"));
  ExportFiles files = export_files(source, ExportKind::cpp).value();
  EXPECT_THAT(files.at("norm.h"), HasSubstr("\n  float* x; /* mutated input"));
  EXPECT_THAT(files.at("norm.h"), HasSubstr("const float* fc_weight;"));
  EXPECT_THAT(files.at("main.cpp"), HasSubstr("{\"x\", 'f', 16777216, true, true}"));
  EXPECT_THAT(files.at("README.md"), HasSubstr("write mutated tensors in place"));
  source.task.tensors.pop_back();
  EXPECT_TRUE(check_exportable(source.task));  // the task returns nothing
}

TEST(Exporter, KindsAreNamed) {
  EXPECT_EQ(export_kind_from("torch").value(), ExportKind::torch);
  for (auto kind : {ExportKind::torch, ExportKind::kernelbench, ExportKind::cpp})
    EXPECT_EQ(export_kind_from(to_string(kind)).value(), kind);
  auto wrong = export_kind_from("jax");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().remedy, HasSubstr("kernelbench"));
}

class ExportFolder : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/cutegen-export-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  const ExportFiles files_{{"launches.json", R"({"schema":"cutegen.launches.v1"})"}, {"a/b", "1"}};
  fs::path root_;
};

TEST_F(ExportFolder, IsMadeWhole) {
  ASSERT_TRUE(write_export(root_ / "out", files_, false));
  EXPECT_EQ(read_file(root_ / "out/a/b").value(), "1");
  EXPECT_FALSE(fs::exists(root_ / ".out.new"));
}

TEST_F(ExportFolder, AnExportIsReplacedOnlyByForce) {
  ASSERT_TRUE(write_export(root_ / "out", files_, false));
  auto refused = write_export(root_ / "out", files_, false);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().remedy, HasSubstr("--force"));
  ExportFiles other = files_;
  other.erase("a/b");
  ASSERT_TRUE(write_export(root_ / "out/", other, true));
  EXPECT_FALSE(fs::exists(root_ / "out/a"));
}

TEST_F(ExportFolder, WhatIsNoExportIsNeverReplaced) {
  fs::create_directories(root_ / "mine");
  ASSERT_TRUE(write_file(root_ / "mine/thesis.tex", "x"));
  auto refused = write_export(root_ / "mine", files_, true);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("contains no export"));
  EXPECT_EQ(read_file(root_ / "mine/thesis.tex").value(), "x");
  ASSERT_TRUE(write_file(root_ / "file", "x"));
  EXPECT_FALSE(write_export(root_ / "file", files_, true));
  fs::create_directories(root_ / "empty");
  EXPECT_TRUE(write_export(root_ / "empty", files_, false));
}

TEST_F(ExportFolder, AMissingParentIsNamed) {
  auto refused = write_export(root_ / "no/out", files_, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::user);
  EXPECT_THAT(refused.error().message, HasSubstr("no'"));
}

}  // namespace
}  // namespace cutegen::exporter
