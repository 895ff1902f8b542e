// SPDX-License-Identifier: Apache-2.0
#include "eval/profile/counters_outlook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "eval/testing/fake_ncu.h"

namespace cutegen::eval {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

fs::path settings_with(const char* value) {
  const fs::path file = fs::temp_directory_path() / ("cutegen-params-" + std::to_string(getpid()));
  EXPECT_TRUE(write_file(file, std::string("EnableMSI: 1\nRmProfilingAdminOnly: ") + value + "\n"));
  return file;
}

TEST(CountersOutlook, NamesTheToolOrWhyThereIsNone) {
  with_fakes("works", [] {
    EXPECT_EQ(counters_outlook({}, false, "/no/such/settings"), "ncu 2025.3.1.0");
    EXPECT_THAT(counters_outlook({}, true, "/no/such/settings"),
                StartsWith("none: --require-sandbox"));
    ::setenv("CUTEGEN_NCU", "/no/such/ncu", 1);
    EXPECT_THAT(
        counters_outlook({}, false, "/no/such/settings"),
        HasSubstr("CUTEGEN_NCU is not a program: /no/such/ncu; profiles use the simulator's"));
  });
}

TEST(CountersOutlook, TheDriversSettingDecides) {
  with_fakes("works", [] {
    const fs::path open = settings_with("0");
    EXPECT_EQ(counters_outlook({}, false, open), "ncu 2025.3.1.0");
    const fs::path closed = settings_with("1");
    const std::string told = counters_outlook({}, false, closed);
    EXPECT_THAT(told, HasSubstr(::geteuid() == 0 ? "as root" : "only the administrator"));
    fs::remove(closed);
  });
}

}  // namespace
}  // namespace cutegen::eval
