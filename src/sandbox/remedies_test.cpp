// SPDX-License-Identifier: Apache-2.0
#include "sandbox/remedies.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace cutegen::sandbox {
namespace {

namespace fs = std::filesystem;

class Remedies : public testing::Test {
 protected:
  void TearDown() override { fs::remove_all(dir_); }
  void put(const std::string& name, int value) {
    fs::create_directories((dir_ / name).parent_path());
    std::ofstream(dir_ / name) << value << "\n";
  }
  std::string told() const { return allow_user_namespaces(dir_); }
  fs::path dir_ = fs::temp_directory_path() / ("cutegen-remedies-" + std::to_string(::getpid()));
};

TEST_F(Remedies, TheSettingThatForbidsNamespacesIsTheOneToChange) {
  put("user/max_user_namespaces", 0);
  put("kernel/apparmor_restrict_unprivileged_userns", 1);
  EXPECT_EQ(told().find("sudo sysctl -w user.max_user_namespaces=10000;"), 0u);
  put("user/max_user_namespaces", 5000);
  put("kernel/unprivileged_userns_clone", 0);
  EXPECT_EQ(told().find("sudo sysctl -w kernel.unprivileged_userns_clone=1;"), 0u);
  put("kernel/unprivileged_userns_clone", 1);
  EXPECT_EQ(told().find("sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0;"), 0u);
  EXPECT_NE(told().find("/etc/sysctl.d/60-cutegen.conf"), std::string::npos);
}

TEST_F(Remedies, WhereTheKernelAllowsThemSomethingAroundForbidsThem) {
  EXPECT_NE(told().find("bubblewrap"), std::string::npos);
  put("kernel/apparmor_restrict_unprivileged_userns", 0);
  EXPECT_NE(told().find("docker run"), std::string::npos);
}

}  // namespace
}  // namespace cutegen::sandbox
