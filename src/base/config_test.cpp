// SPDX-License-Identifier: Apache-2.0
#include "base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace cutegen {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class ConfigTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() / ("cutegen_config_" + std::to_string(::getpid()));
    fs::remove_all(dir_);
    ASSERT_TRUE(private_dir(dir_));
    sources_.project_file = dir_ / "cutegen.toml";
    sources_.user_file = dir_ / "user.toml";
    sources_.environment.emplace();
  }
  void TearDown() override { fs::remove_all(dir_); }

  std::string error() const {
    auto c = Config::load(sources_);
    return c ? "no error" : c.error().text();
  }
  void project(const std::string& text) { ASSERT_TRUE(write_file(sources_.project_file, text)); }
  void user(const std::string& text) { ASSERT_TRUE(write_file(sources_.user_file, text)); }

  fs::path dir_;
  ConfigSources sources_;
};

TEST_F(ConfigTest, Defaults) {
  Config c = Config::load(sources_).value();
  EXPECT_EQ(c.text("device"), "sim:h200");
  EXPECT_EQ(c.setting("device").source, "default");
  EXPECT_EQ(c.integer("budget_evaluations"), 40);
  EXPECT_FALSE(c.boolean("require_sandbox"));
  for (const auto& s : c.settings()) EXPECT_FALSE(s.meaning.empty()) << s.key;
}

TEST_F(ConfigTest, EachSourceBeatsTheNext) {
  user("device = \"sim:a100\"\nmodel = \"user\"\n");
  EXPECT_EQ(Config::load(sources_).value().text("device"), "sim:a100");
  project("device = \"sim:h100\"\nrequire_sandbox = true\n");
  EXPECT_EQ(Config::load(sources_).value().text("device"), "sim:h100");
  (*sources_.environment)["CUTEGEN_DEVICE"] = "sim:env";
  EXPECT_EQ(Config::load(sources_).value().text("device"), "sim:env");
  sources_.flags["device"] = "sim:flag";
  Config c = Config::load(sources_).value();
  EXPECT_EQ(c.text("device"), "sim:flag");
  EXPECT_EQ(c.setting("device").source, "flag --device");
  EXPECT_EQ(c.setting("model").source, sources_.user_file.string());
  EXPECT_EQ(c.setting("require_sandbox").source, sources_.project_file.string());
  EXPECT_TRUE(c.boolean("require_sandbox"));
  EXPECT_EQ(c.json()["device"]["value"], "sim:flag");
  EXPECT_EQ(c.json()["strategy"]["source"], "default");
}

TEST_F(ConfigTest, RefusesUnknownKeysWithTheirPlace) {
  project("model = \"builtin\"\ndevise = \"x\"\n");
  EXPECT_THAT(error(),
              testing::AllOf(HasSubstr("cutegen.toml:2:1: error: unknown setting 'devise'"),
                             HasSubstr("did you mean 'device'?")));
  project("colour = 1\n");
  EXPECT_THAT(error(), HasSubstr("one of device, python"));
  project("");
  sources_.flags["budgit_evaluations"] = "1";
  EXPECT_THAT(error(), HasSubstr("--budgit-evaluations: error: unknown setting"));
}

TEST_F(ConfigTest, AccuracyIsUnsetOrChecked) {
  Config c = Config::load(sources_).value();
  EXPECT_EQ(c.text("math_mode"), "");
  EXPECT_FALSE(c.number("rtol"));
  project("math_mode = \"bf16\"\nrtol = 1e-3\natol = 0\n");
  c = Config::load(sources_).value();
  EXPECT_EQ(c.text("math_mode"), "bf16");
  EXPECT_EQ(c.number("rtol"), 1e-3);
  EXPECT_EQ(c.number("atol"), 0.0);
  project("rtol = \"much\"\n");
  EXPECT_THAT(error(), HasSubstr("rtol must be a number"));
  project("math_mode = \"pf16\"\n");
  EXPECT_THAT(error(), testing::AllOf(HasSubstr("math_mode 'pf16' is not known"),
                                      HasSubstr("did you mean")));
  project("rtol = nan\n");
  EXPECT_THAT(error(), HasSubstr("cutegen.toml:1:1: error: rtol = 'nan' is not a tolerance"));
  project("");
  for (const char* value : {"nan", "inf", "-1e-3", "1e999", "0.1x", "one"}) {
    sources_.flags["rtol"] = value;
    EXPECT_THAT(error(), testing::AllOf(HasSubstr("--rtol: error"), HasSubstr("finite number")))
        << value;
  }
  sources_.flags["rtol"] = "1e-3";
  EXPECT_EQ(Config::load(sources_).value().number("rtol"), 1e-3);
}

TEST_F(ConfigTest, RefusesWrongTypes) {
  project("budget_evaluations = \"many\"\n");
  EXPECT_THAT(error(), HasSubstr("budget_evaluations must be an integer"));
  project("budget_evaluations = -1\n");
  EXPECT_THAT(error(), HasSubstr("zero or more"));
  project("require_sandbox = 1\n");
  EXPECT_THAT(error(), HasSubstr("must be true or false"));
  project("device = 3\n");
  EXPECT_THAT(error(), HasSubstr("must be a string"));
  project("device = \n");
  EXPECT_THAT(error(), HasSubstr("not valid TOML"));
  project("");
  (*sources_.environment)["CUTEGEN_BUDGET_EVALUATIONS"] = "12x";
  EXPECT_THAT(error(), HasSubstr("CUTEGEN_BUDGET_EVALUATIONS: error:"));
  (*sources_.environment)["CUTEGEN_BUDGET_EVALUATIONS"] = "99999999999999999999";
  EXPECT_THAT(error(), HasSubstr("is not a count"));
  sources_.environment->clear();
  sources_.flags["require_sandbox"] = "maybe";
  EXPECT_THAT(error(), HasSubstr("neither true nor false"));
}

TEST_F(ConfigTest, RefusesUnreadableFiles) {
  ASSERT_TRUE(private_dir(sources_.project_file));
  EXPECT_THAT(error(), HasSubstr("is a folder"));
  fs::remove(sources_.project_file);
  project(std::string(100'000, '#'));
  EXPECT_THAT(error(), HasSubstr("limit"));
}

}  // namespace
}  // namespace cutegen
