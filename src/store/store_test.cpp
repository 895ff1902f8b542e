// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/file.h"
#include "base/hash.h"
#include "store/events.h"
#include "store/local_disk.h"
#include "store/long_texts.h"
#include "store/run_lock.h"

namespace cutegen::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class StoreTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() / ("cutegen-store-" + random_id().substr(0, 12));
  }
  void TearDown() override { fs::remove_all(dir_); }
  std::unique_ptr<Store> open() {
    auto store = Store::open(dir_);
    EXPECT_TRUE(store) << store.error().text();
    return std::move(*store);
  }
  std::unique_ptr<RunJournal> new_run(Store& store, const std::string& name = "relu") {
    RunInfo info;
    info.task_name = name;
    info.device = "sim:h200";
    auto run = store.create(info);
    EXPECT_TRUE(run) << run.error().text();
    EXPECT_TRUE((*run)->append(EventType::opened, Json::object()));
    return std::move(*run);
  }
  SQLite::Database raw() { return {(dir_ / "cutegen.db").string(), SQLite::OPEN_READWRITE}; }
  fs::path dir_;
};

Json verdict(const char* status, double time_ns) {
  return {{"candidate", "c1"},
          {"verdict", {{"status", status}, {"timing", {{"time_ns", time_ns}}}}}};
}

TEST_F(StoreTest, EventsComeBackInOrderWithDenseNumbers) {
  auto store = open();
  auto run = new_run(*store);
  ASSERT_TRUE(run->append(EventType::task, {{"floor_ns", 10.5}}));
  auto event = run->append(EventType::finished, {{"reason", "plateau"}, {"best", ""}});
  ASSERT_TRUE(event);
  EXPECT_EQ(event->seq, 3);
  auto events = store->read(run->id());
  ASSERT_TRUE(events) << events.error().text();
  ASSERT_EQ(events->size(), 3u);
  EXPECT_EQ((*events)[0].data["run"]["task_name"], "relu");
  EXPECT_EQ((*events)[1].type, EventType::task);
  EXPECT_EQ((*events)[1].data["floor_ns"], 10.5);
  EXPECT_EQ((*events)[2].version, 1);
}

TEST_F(StoreTest, AnEventIsThereForAnotherProcessAsSoonAsAppendReturns) {
  auto store = open();
  auto run = new_run(*store);
  pid_t child = ::fork();
  if (child == 0) {
    auto other = Store::open(dir_);
    auto events = other ? (*other)->read(run->id()) : Result<std::vector<Event>>{};
    ::_exit(events && events->size() == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(StoreTest, TheListIsFoldedFromTheEvents) {
  auto store = open();
  auto run = new_run(*store);
  for (auto& [type, data] :
       std::vector<std::pair<EventType, Json>>{{EventType::task, {{"floor_ns", 8.0}}},
                                               {EventType::evaluated, verdict("correct", 20.0)},
                                               {EventType::accepted, {{"candidate", "c1"}}},
                                               {EventType::evaluated, verdict("correct", 30.0)},
                                               {EventType::rejected, {{"candidate", "c2"}}},
                                               {EventType::evaluated, verdict("aborted", 0.0)}})
    ASSERT_TRUE(run->append(type, data));
  auto list = store->list();
  ASSERT_TRUE(list);
  ASSERT_EQ(list->size(), 1u);
  const RunInfo& info = list->front();
  EXPECT_EQ(info.state, RunState::running);
  EXPECT_EQ(info.evaluations, 2);  // the aborted one does not count
  EXPECT_EQ(info.best_ns, 20.0);
  EXPECT_EQ(info.floor_ns, 8.0);
  EXPECT_EQ(info.events, 7);
  run.reset();  // the writer disappears without an event
  EXPECT_EQ(store->list()->front().state, RunState::interrupted);
}

TEST_F(StoreTest, AnOldProjectionIsRebuiltFromTheEvents) {
  std::string id;
  {
    auto store = open();
    auto run = new_run(*store, "softmax");
    ASSERT_TRUE(run->append(EventType::finished, {{"reason", "plateau"}}));
    id = run->id();
  }
  {
    auto sql = raw();
    sql.exec("UPDATE runs SET json = '{}'");
    sql.exec("UPDATE projections SET version = 0");
  }
  auto list = open()->list();
  ASSERT_TRUE(list);
  EXPECT_EQ(list->front().id, id);
  EXPECT_EQ(list->front().task_name, "softmax");
  EXPECT_EQ(list->front().state, RunState::finished);
}

TEST_F(StoreTest, LongTextsAreKeptOnceAsBlobs) {
  auto store = open();
  auto run = new_run(*store);
  std::string source(100000, 'x');
  Json data{{"a", source}, {"b", {source, "short"}}, {"mark", {{"$blob", "not a hash"}}}};
  ASSERT_TRUE(run->append(EventType::answered, data));
  EXPECT_EQ(store->read(run->id())->at(1).data, data);
  auto sql = raw();
  EXPECT_EQ(sql.execAndGet("SELECT count(*) FROM blobs").getInt(), 1);
  EXPECT_LT(sql.execAndGet("SELECT length(json) FROM events WHERE seq = 2").getInt(), 1000);
}

TEST_F(StoreTest, ADamagedBlobIsFound) {
  auto store = open();
  auto hash = store->put_blob("some text");
  ASSERT_TRUE(hash);
  EXPECT_EQ(store->get_blob(*hash).value(), "some text");
  raw().exec("UPDATE blobs SET bytes = 'other text'");
  auto broken = store->get_blob(*hash);
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message, HasSubstr("damaged"));
  EXPECT_FALSE(store->get_blob(sha256("nothing")));
}

TEST_F(StoreTest, OneWriterARunAndTheLockDiesWithIt) {
  auto store = open();
  auto run = new_run(*store);
  auto second = open()->resume(run->id());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::user);
  EXPECT_THAT(second.error().message, HasSubstr("process " + std::to_string(::getpid())));
  std::string id = run->id();
  run.reset();
  auto again = store->resume(id);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ((*again)->append(EventType::finished, Json::object())->seq, 2);
}

TEST_F(StoreTest, TheLockOfAKilledProcessIsFree) {
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  pid_t child = ::fork();
  if (child == 0) {
    auto store = Store::open(dir_);
    auto run = (*store)->create({});
    (void)(*run)->append(EventType::opened, Json::object());
    (void)!::write(ready[1], "x", 1);
    ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  auto store = open();
  EXPECT_FALSE(store->resume("last"));
  EXPECT_EQ(store->list()->front().state, RunState::running);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(store->list()->front().state, RunState::interrupted);
  EXPECT_TRUE(store->resume("last"));
  ::close(ready[0]), ::close(ready[1]);
}

TEST_F(StoreTest, RunsAreFoundByBeginningLettersAndLast) {
  auto store = open();
  EXPECT_THAT(store->resolve("last").error().message, HasSubstr("no run"));
  std::string first = new_run(*store)->id(), second = new_run(*store)->id();
  EXPECT_EQ(store->resolve("last").value(), second);
  EXPECT_EQ(store->resolve(first).value(), first);
  EXPECT_EQ(store->resolve(first.substr(9)).value(), first);
  auto both = store->resolve(first.substr(0, 8));
  ASSERT_FALSE(both);
  EXPECT_THAT(both.error().message, HasSubstr("ambiguous"));
  EXPECT_THAT(both.error().message, HasSubstr(second));
  EXPECT_THAT(store->resolve("nothing").error().remedy, HasSubstr("cutegen runs"));
  EXPECT_FALSE(store->resolve(""));
}

TEST_F(StoreTest, FoldersAndFilesArePrivate) {
  auto store = open();
  auto run = new_run(*store);
  struct stat info{};
  ASSERT_EQ(::stat(dir_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  for (const char* name : {"cutegen.db", "cutegen.db-wal", "cutegen.db-shm"}) {
    ASSERT_EQ(::stat((dir_ / name).c_str(), &info), 0) << name;
    EXPECT_EQ(info.st_mode & 0777, 0600u) << name;
  }
}

TEST_F(StoreTest, ManyMayMakeTheDatabaseAtOnce) {
  for (int round = 0; round < 20; ++round) {
    fs::path dir = dir_ / std::to_string(round);
    std::vector<std::string> errors(8);
    {
      std::vector<std::jthread> openers;
      for (std::string& error : errors)
        openers.emplace_back([&dir, &error] {
          auto store = Store::open(dir);
          if (!store) error = store.error().text();
        });
    }
    for (const std::string& error : errors) EXPECT_EQ(error, "") << round;
  }
}

TEST_F(StoreTest, ForeignAndBrokenFilesAreRefusedUntouched) {
  ASSERT_TRUE(private_dir(dir_));
  ASSERT_TRUE(write_file(dir_ / "cutegen.db", "this is a text file and no database at all"));
  auto text = Store::open(dir_);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind, ErrorKind::user);
  EXPECT_THAT(text.error().message, HasSubstr("not an SQLite database"));

  fs::remove(dir_ / "cutegen.db");
  SQLite::Database(dir_ / "cutegen.db", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
      .exec("CREATE TABLE other(x)");
  auto other = Store::open(dir_);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("another program"));
  EXPECT_EQ(raw().execAndGet("SELECT count(*) FROM sqlite_master").getInt(), 1);
}

TEST_F(StoreTest, ADamagedDatabaseIsAnErrorWithARemedy) {
  {
    auto store = open();
    auto run = new_run(*store);
    for (int i = 0; i < 50; ++i)
      ASSERT_TRUE(run->append(EventType::asked, {{"role", std::string(2000, 'r')}}));
    run.reset();
    raw().execAndGet("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  {
    UniqueFd fd(::open((dir_ / "cutegen.db").c_str(), O_WRONLY));
    std::string noise(60000, '\x7f');
    ASSERT_EQ(::pwrite(fd.get(), noise.data(), noise.size(), 8192), 60000);
  }
  auto store = Store::open(dir_);
  auto events = store ? (*store)->read("last") : fail(store.error());
  ASSERT_FALSE(events);
  EXPECT_THAT(events.error().message, HasSubstr("damaged"));
  EXPECT_FALSE(events.error().remedy.empty());
}

TEST_F(StoreTest, AFileInPlaceOfTheFolderAndANewerFormatAreRefused) {
  ASSERT_TRUE(write_file(dir_, "x"));
  EXPECT_THAT(Store::open(dir_).error().message, HasSubstr("not a folder"));
  fs::remove(dir_);
  open();
  raw().exec("PRAGMA user_version = 7");
  auto newer = Store::open(dir_);
  ASSERT_FALSE(newer);
  EXPECT_THAT(newer.error().message, HasSubstr("format 7"));
}

TEST_F(StoreTest, EventsOfANewerVersionAreRefusedByName) {
  auto store = open();
  auto run = new_run(*store);
  raw().exec("UPDATE events SET version = 9");
  auto events = store->read("last");
  ASSERT_FALSE(events);
  EXPECT_THAT(events.error().message, HasSubstr("'opened' event of version 9"));
  raw().exec("UPDATE events SET version = 1, type = 'dreamt'");
  EXPECT_THAT(store->read("last").error().message, HasSubstr("unknown type 'dreamt'"));
}

TEST(Upcast, OldEventsAreBroughtUpStepByStep) {
  Upcasts steps;
  steps[{EventType::asked, -1}] = [](Json data) { return data["a"] = 1, data; };
  steps[{EventType::asked, 0}] = [](Json data) { return data["b"] = data["a"], data; };
  auto event =
      upcast({.seq = 3, .type = EventType::asked, .version = -1, .data = Json::object()}, steps);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->version, 1);
  EXPECT_EQ(event->data, (Json{{"a", 1}, {"b", 1}}));
  EXPECT_FALSE(upcast({3, EventType::asked, -2, Json::object()}, steps));
}

TEST(LocalDisk, NetworkFileSystemsAreKnownByTheirNumbers) {
  EXPECT_EQ(network_file_system(0x6969), "NFS");
  EXPECT_EQ(network_file_system(0xFFFFFFFFFF534D42ul), "CIFS");  // sign-extended by the kernel
  EXPECT_EQ(network_file_system(0xEF53), std::nullopt);          // ext4
  EXPECT_TRUE(require_local_disk("/proc"));
  EXPECT_FALSE(require_local_disk("/no/such/folder"));
}

TEST(RunIds, AreRecognised) {
  EXPECT_TRUE(is_run_id(new_run_id()));
  EXPECT_FALSE(is_run_id("../../../etc/pa"));
  EXPECT_FALSE(is_run_id("20261121-k3v9q"));
}

}  // namespace
}  // namespace cutegen::store
