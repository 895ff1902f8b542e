// SPDX-License-Identifier: Apache-2.0
#include "toolchain/cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "base/file.h"
#include "base/hash.h"

namespace cutegen::toolchain {
namespace {

namespace fs = std::filesystem;

class CacheTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(includes_);
    write_header("a.cuh", "int a;");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write_header(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_file(includes_ / name, text));
  }
  std::vector<Header> closure(Cache& cache, std::vector<std::string> names = {"a.cuh"}) {
    std::vector<Header> out;
    for (const auto& n : names)
      if (auto h = cache.headers().read((includes_ / n).string(), {includes_})) out.push_back(*h);
    return out;
  }
  std::vector<fs::path> files(const char* kind) {
    std::vector<fs::path> out;
    for (const auto& e : fs::recursive_directory_iterator(dir_ / kind))
      if (e.is_regular_file()) out.push_back(e.path());
    return out;
  }

  fs::path root_ = fs::temp_directory_path() / ("cutegen_cache_test_" + random_id());
  fs::path dir_ = root_ / "cache", includes_ = root_ / "include";
  std::string key_ = sha256("request"), build_ = sha256("build");
  int64_t much_ = 1 << 30;
};

TEST_F(CacheTest, FindsWhatWasStoredAlsoInAnotherProcess) {
  Cache cache(dir_, much_);
  EXPECT_FALSE(cache.find(key_));
  cache.store(key_, build_, closure(cache), Json{{"ptx", "text"}});
  Cache other(dir_, much_);
  for (Cache* c : {&cache, &other}) {
    auto hit = c->find(key_);
    ASSERT_TRUE(hit);
    EXPECT_EQ(hit->build_id, build_);
    EXPECT_EQ(hit->result["ptx"], "text");
  }
}

TEST_F(CacheTest, AChangedHeaderIsAMiss) {
  Cache cache(dir_, much_);
  cache.store(key_, build_, closure(cache), Json{{"n", 1}});
  write_header("a.cuh", "int A;");
  EXPECT_FALSE(cache.find(key_));
  fs::remove(includes_ / "a.cuh");
  EXPECT_FALSE(cache.find(key_));
}

TEST_F(CacheTest, AHeaderWithANewDateButTheSameContentIsAHit) {
  Cache cache(dir_, much_);
  cache.store(key_, build_, closure(cache), Json{{"n", 1}});
  fs::last_write_time(includes_ / "a.cuh",
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_TRUE(cache.find(key_));
  EXPECT_TRUE(Cache(dir_, much_).find(key_));
}

TEST_F(CacheTest, DamagedEntriesAreDroppedNotBelieved) {
  for (const char* kind : {"requests", "closures", "builds"}) {
    Cache cache(dir_, much_);
    cache.store(key_, build_, closure(cache), Json{{"n", 1}});
    auto all = files(kind);
    ASSERT_EQ(all.size(), 1u);
    std::string text = *read_file(all[0]);
    text.back() ^= 1;
    ASSERT_TRUE(write_file(all[0], text));
    Cache fresh(dir_, much_);
    EXPECT_FALSE(fresh.find(key_)) << kind;
    EXPECT_TRUE(files(kind).empty()) << kind;
    ASSERT_TRUE(write_file(all[0], ""));  // an empty file
    EXPECT_FALSE(fresh.find(key_)) << kind;
  }
}

TEST_F(CacheTest, TheOldestGoWhenItIsFull) {
  Cache cache(dir_, 100'000);
  auto headers = closure(cache);
  std::string big(20'000, 'x');
  auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 8; ++i) {
    std::string id = sha256("b" + std::to_string(i));
    cache.store(sha256(std::to_string(i)), id, headers, Json{{"ptx", big}});
    fs::path path = dir_ / "builds" / id.substr(0, 2) / id;
    if (fs::exists(path)) fs::last_write_time(path, now - std::chrono::hours(100 - i));
  }
  EXPECT_LE(files("builds").size(), 5u);
  EXPECT_FALSE(cache.find(sha256("0")));
  EXPECT_TRUE(cache.find(sha256("7")));
}

TEST_F(CacheTest, AFolderThatCannotBeWrittenOnlyMisses) {
  ASSERT_TRUE(write_file(root_ / "file", "in the way"));
  Cache cache(root_ / "file" / "cache", much_);
  cache.store(key_, build_, closure(cache), Json{{"n", 1}});
  EXPECT_FALSE(cache.find(key_));
}

TEST_F(CacheTest, ManyThreadsMayUseIt) {
  Cache cache(dir_, 200'000);
  auto headers = closure(cache);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        std::string id = sha256(std::to_string(t) + "/" + std::to_string(i % 5));
        cache.store(id, id, headers, Json{{"ptx", std::string(5000, 'x')}, {"id", id}});
        if (auto hit = cache.find(id)) {
          EXPECT_EQ(hit->result["id"], id);
        }
      }
    });
  for (auto& t : threads) t.join();
}

TEST_F(CacheTest, ClosureHashKnowsNamesAndContentsButNoFolders) {
  Cache cache(dir_, much_);
  std::string before = closure_hash(closure(cache));
  EXPECT_EQ(closure(cache)[0].name, "a.cuh");
  fs::rename(includes_, root_ / "moved");
  includes_ = root_ / "moved";
  EXPECT_EQ(closure_hash(closure(cache)), before);
  write_header("a.cuh", "int changed;");
  EXPECT_NE(closure_hash(closure(cache)), before);
}

}  // namespace
}  // namespace cutegen::toolchain
