// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace cutegen {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() / ("cutegen_file_" + std::to_string(::getpid()));
    fs::remove_all(dir_);
    ASSERT_TRUE(private_dir(dir_));
  }
  void TearDown() override { fs::remove_all(dir_); }
  fs::path dir_;
};

TEST_F(FileTest, WritesAndReads) {
  std::string bytes("a\0b\n", 4);
  ASSERT_TRUE(write_file(dir_ / "f", bytes));
  EXPECT_EQ(read_file(dir_ / "f").value(), bytes);
  ASSERT_TRUE(write_file(dir_ / "f", ""));  // replaces the old content
  EXPECT_EQ(read_file(dir_ / "f").value(), "");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), fs::directory_iterator()), 1);
  EXPECT_EQ(fs::status(dir_ / "f").permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(FileTest, ReadErrors) {
  EXPECT_THAT(read_file(dir_ / "none").error().text(), HasSubstr("No such file"));
  EXPECT_THAT(read_file(dir_).error().text(), HasSubstr("is a folder"));
  EXPECT_THAT(read_file("/dev/zero").error().text(), HasSubstr("not a regular file"));
  ASSERT_EQ(::mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(read_file(dir_ / "pipe").error().text(), HasSubstr("not a regular file"));
  ASSERT_TRUE(write_file(dir_ / "f", "12345"));
  EXPECT_THAT(read_file(dir_ / "f", 4).error().text(), HasSubstr("the limit is 4"));
  EXPECT_EQ(read_file(dir_ / "f", 5).value(), "12345");
}

TEST_F(FileTest, WriteErrorsLeaveNothingBehind) {
  auto r = write_file(dir_ / "no" / "f", "x");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().kind, ErrorKind::world);
  fs::create_directory(dir_ / "d");
  EXPECT_FALSE(write_file(dir_ / "d", "x"));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), fs::directory_iterator()), 1);
}

TEST_F(FileTest, FoldersArePrivate) {
  ASSERT_TRUE(private_dir(dir_ / "a" / "b"));
  EXPECT_EQ(fs::status(dir_ / "a").permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(dir_ / "a" / "b").permissions(), fs::perms::owner_all);
  EXPECT_TRUE(private_dir(dir_ / "a" / "b"));
  EXPECT_FALSE(private_dir("/proc/none/x"));
}

TEST_F(FileTest, DescriptorsCloseOnce) {
  int raw = -1;
  {
    UniqueFd a(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    raw = a.get();
    UniqueFd b = std::move(a);
    EXPECT_FALSE(a);
    EXPECT_EQ(b.get(), raw);
    UniqueFd c;
    c = std::move(b);
    EXPECT_EQ(c.get(), raw);
  }
  EXPECT_EQ(::fcntl(raw, F_GETFD), -1);
  UniqueFd d(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  int released = d.release();
  EXPECT_FALSE(d);
  EXPECT_EQ(::close(released), 0);
}

TEST_F(FileTest, MemoryFilesAreShared) {
  UniqueFd fd = make_memfd("test", 4096).value();
  Mapping writer = Mapping::map(fd.get(), 4096, true).value();
  Mapping reader = Mapping::map(fd.get(), 4096, false).value();
  std::memcpy(writer.data(), "hello", 5);
  EXPECT_EQ(std::memcmp(reader.data(), "hello", 5), 0);
  EXPECT_NE(::ftruncate(fd.get(), 100), 0);  // sealed
  EXPECT_THAT(Mapping::map(fd.get(), 8192, false).error().text(), HasSubstr("smaller"));
  EXPECT_EQ(Mapping::map(fd.get(), 0, false).value().size(), 0U);
  Mapping moved = std::move(writer);
  EXPECT_EQ(moved.size(), 4096U);
  EXPECT_FALSE(Mapping::map(-1, 1, false));
}

// NVRTC grows its heap file by seeking and writing, and concurrent compilations share the
// descriptor.
TEST_F(FileTest, AForkedProcessGetsItsOwnOffset) {
  const std::string path = (dir_ / "heap").string();
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(fd);
  ASSERT_EQ(::unlink(path.c_str()), 0);
  ASSERT_EQ(::lseek(fd.get(), 10, SEEK_SET), 10);
  pid_t pid = ::fork();
  if (pid == 0) {
    unshare_offsets();
    bool kept = ::lseek(fd.get(), 0, SEEK_CUR) == 10;
    ::lseek(fd.get(), 1000, SEEK_SET);
    ::_exit(kept && ::write(fd.get(), "x", 1) == 1 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(::lseek(fd.get(), 0, SEEK_CUR), 10);    // the child's seek moved only its own offset
  EXPECT_EQ(::lseek(fd.get(), 0, SEEK_END), 1001);  // the file is the same
}

TEST_F(FileTest, FindsItsOwnFolders) {
  EXPECT_TRUE(fs::is_directory(program_dir()));
  EXPECT_THAT(sister_program("no-such-program").error().text(), HasSubstr("CUTEGEN_BIN"));
}

}  // namespace
}  // namespace cutegen
