// SPDX-License-Identifier: Apache-2.0
// Finds NVRTC and the tools on machines other than the one that built cutegen.
#include "toolchain/host_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/hash.h"
#include "toolchain/toolchain.h"

namespace cutegen::toolchain {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class HostPlaces : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("cutegen_host_" + random_id());
    fs::create_directories(root_ / "share/include/cutegen");
    file("share/headers/cutlass/cute/tensor.hpp");
    file("share/headers/cuda/cuda_fp16.h");
    file("env/bin/python3");
    fs::permissions(root_ / "env/bin/python3", fs::perms::owner_all);
    ::setenv("CUTEGEN_SHARE", (root_ / "share").c_str(), 1);
    ::setenv("CUTEGEN_BIN", CUTEGEN_BIN_DIR, 0);
    ::setenv("CUDA_HOME", (root_ / "toolkit").c_str(), 1);
  }
  void TearDown() override {
    ::setenv("CUTEGEN_SHARE", CUTEGEN_SOURCE_DIR, 1);
    ::unsetenv("CUDA_HOME");
    fs::remove_all(root_);
  }
  void file(const std::string& path, const std::string& text = "x") {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  // The headers of a wheel, with their release in CUDART_VERSION.
  fs::path headers(const std::string& folder, const std::string& version) {
    file(folder + "/cuda_fp16.h");
    file(folder + "/cuda_runtime_api.h", "#ifndef X\n#define CUDART_VERSION  " + version + "\n");
    return root_ / folder;
  }
  // An NVRTC from a wheel in the interpreter's environment.
  fs::path wheel(const std::string& package, const std::string& version) {
    const std::string lib = "env/lib/python3.12/site-packages/nvidia/" + package + "/lib/";
    file(lib + "libnvrtc-builtins.so." + version);
    file(lib + "libnvrtc.so." + version.substr(0, 2));
    return root_ / (lib + "libnvrtc.so." + version.substr(0, 2));
  }
  Result<ToolPaths> find(int most_cuda = 0) const {
    return find_tools({.python = (root_ / "env/bin/python3").string(), .most_cuda = most_cuda});
  }
  fs::path root_;
};

TEST_F(HostPlaces, TheInterpretersPackagesAreFound) {
  EXPECT_TRUE(toolchain::python_sites((root_ / "env/bin/python3").string()).empty());
  fs::path library = wheel("cu13", "13.0");
  file("toolkit/bin/ptxas");
  EXPECT_THAT(toolchain::python_sites((root_ / "env/bin/python3").string()),
              ElementsAre(root_ / "env/lib/python3.12/site-packages"));
  auto found = find();
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->nvrtc, library);
  EXPECT_EQ(found->ptxas, root_ / "toolkit/bin/ptxas");
  EXPECT_EQ(found->includes[2], root_ / "share/headers/cutlass");
}

TEST_F(HostPlaces, AnEnvironmentsLinkLeadsToItsInstallation) {
  fs::path library = wheel("cu13", "13.0");
  fs::create_directories(root_ / "venv/bin");
  fs::create_symlink(root_ / "env/bin/python3", root_ / "venv/bin/python");
  auto found = find_tools({.python = (root_ / "venv/bin/python").string()});
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->nvrtc, library);
}

TEST_F(HostPlaces, TheCompilerFitsTheDriver) {
  wheel("cu13", "13.0");
  EXPECT_TRUE(find(13000));
  if (!toolchain::nvrtcs({}, {"/usr/local/cuda"}).empty()) GTEST_SKIP() << "a toolkit is here";
  auto too_new = find(12040);
  ASSERT_FALSE(too_new);
  EXPECT_EQ(too_new.error().kind, ErrorKind::world);
  EXPECT_THAT(too_new.error().message, HasSubstr("at most 12.4, which the GPU's driver accepts"));
  EXPECT_THAT(too_new.error().message, HasSubstr("13.0 at"));
  EXPECT_THAT(too_new.error().remedy, HasSubstr("CUTEGEN_NVRTC"));
}

TEST_F(HostPlaces, TheHeadersAreOfTheCompilersRelease) {
  if (!toolchain::nvrtcs({}, {"/usr/local/cuda"}).empty()) GTEST_SKIP() << "a toolkit is here";
  fs::path old = wheel("cuda_nvrtc", "12.4");
  auto none = find();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::world);
  EXPECT_THAT(none.error().message, HasSubstr("12.4 at"));
  EXPECT_THAT(none.error().message, HasSubstr("without headers of its release"));
  EXPECT_THAT(none.error().remedy, HasSubstr("nvidia-cuda-runtime"));
  const std::string site = "env/lib/python3.12/site-packages/nvidia/";
  headers(site + "cu13/include", "13000");
  EXPECT_FALSE(find());
  fs::path twelve = headers(site + "cuda_runtime/include", "12040");
  auto found = find();
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->nvrtc, old);
  EXPECT_EQ(found->includes.back(), twelve);
  EXPECT_EQ(found->includes[2], root_ / "share/headers/cutlass");

  fs::path newer = wheel("cu13", "13.0");  // "cu13" sorts before "cuda_nvrtc"
  found = find();
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->nvrtc, newer);
  EXPECT_EQ(found->includes.back(), root_ / "share/headers/cuda");
  found = find(12040);
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->nvrtc, old);
  EXPECT_EQ(found->includes.back(), twelve);
}

TEST_F(HostPlaces, HeadersLieBesideACompilerThatIsNamed) {
  for (const char* place : {"else/nvidia/cuda_nvrtc/lib/", "cuda-12.4/lib64/"}) {
    file(std::string(place) + "libnvrtc-builtins.so.12.4");
    file(std::string(place) + "libnvrtc.so.12");
    ::setenv("CUTEGEN_NVRTC", (root_ / place / "libnvrtc.so.12").c_str(), 1);
    const bool wheel = place[0] == 'e';
    fs::path beside =
        headers(wheel ? "else/nvidia/cuda_runtime/include" : "cuda-12.4/include", "12040");
    auto found = find();
    ::unsetenv("CUTEGEN_NVRTC");
    ASSERT_TRUE(found) << found.error().text();
    EXPECT_EQ(found->includes.back(), beside);
  }
}

TEST_F(HostPlaces, ACompilerThatIsNamedGetsItsHeadersToo) {
  fs::path old = wheel("cuda_nvrtc", "12.4");
  ::setenv("CUTEGEN_NVRTC", old.c_str(), 1);
  ::setenv("CUDA_PATH", (root_ / "toolkit").c_str(), 1);
  auto none = find();
  fs::path twelve = headers("toolkit/include", "12080");
  auto found = find();
  ::unsetenv("CUTEGEN_NVRTC"), ::unsetenv("CUDA_PATH");
  if (toolchain::cuda_headers({}, {"/usr/local/cuda"}).empty()) {
    ASSERT_FALSE(none);
    EXPECT_THAT(none.error().message, HasSubstr("CUDA headers are missing for NVRTC 12.4"));
  }
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->includes.back(), twelve);
}

}  // namespace
}  // namespace cutegen::toolchain
