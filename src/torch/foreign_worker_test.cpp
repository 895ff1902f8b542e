// SPDX-License-Identifier: Apache-2.0
// Tests the client of a third-party solution's process with processes that reply as they like.
#include "torch/foreign_worker.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "torch/testing/test_worker.h"

namespace cutegen::torch {
namespace {

using testing::HasSubstr;
using Kind = ForeignReply::Kind;

// A process with a correct greeting, which then replies to request `q` with `expression`.
constexpr const char* kStub = R"(
import json, os, socket, sys, time
channel = socket.socket(fileno=os.dup(3))
def receive():
    head = channel.recv(4)
    body = b""
    while len(body) < int.from_bytes(head, "little"):
        body += channel.recv(1 << 16)
    return json.loads(body)
def send(text):
    channel.sendall(len(text).to_bytes(4, "little") + text.encode())
q = receive()
send(json.dumps({{"version": "stub", "missing": "", "id": q["id"]}}))
while True:
    q = receive()
    send({})
)";

struct Stub {
  explicit Stub(const std::string& expression) : file("stub", fmt::format(kStub, expression)) {
    options.script = file.path();
    options.python = "/usr/bin/python3";
    options.load_limit = options.call_limit = std::chrono::milliseconds(400);
    test_options();
    task.file = "task.py";
  }
  ForeignReply load() {
    if (!worker) {
      auto opened = ForeignWorker::open(Context(), options);
      EXPECT_TRUE(opened) << opened.error().text();
      worker = std::move(*opened);
    }
    auto told = worker->load(Context(), task, {.name = "answer.py", .source = "text"});
    EXPECT_TRUE(told) << told.error().text();
    return *told;
  }
  TaskFile file;
  ForeignOptions options;
  Task task;
  std::unique_ptr<ForeignWorker> worker;
};

TEST(ForeignWorker, BelievesNoReplyThatItDidNotAskFor) {
  EXPECT_EQ(Stub("json.dumps({'id': q['id']})").load().kind, Kind::done);
  for (const char* reply :
       {"json.dumps({'id': 99})", "json.dumps({})", "json.dumps({'id': q['id'], 'ns': -1})",
        "json.dumps({'id': q['id'], 'ns': 1e300})", "json.dumps({'id': q['id'], 'ns': 'x'})",
        "json.dumps({'id': q['id'], 'failed': {}})", "'no json'", "'[1]'"}) {
    ForeignReply told = Stub(reply).load();
    EXPECT_EQ(told.kind, Kind::died) << reply;
    EXPECT_FALSE(told.what.empty());
  }
}

TEST(ForeignWorker, AnErrorOfItsOwnIsNoTroubleOfOurs) {
  for (const char* kind : {"cancelled", "timeout", "world", "internal"}) {
    Stub stub(
        fmt::format("json.dumps({{'error': {{'kind': '{}', 'message': 'm', 'where': '', "
                    "'remedy': ''}}}})",
                    kind));
    EXPECT_EQ(stub.load().kind, Kind::died);
  }
}

TEST(ForeignWorker, TellsHowItFailedInBoundedWords) {
  Stub stub(
      "json.dumps({'id': q['id'], 'failed': {'kind': 'rule', 'what': '\\x1b[31m' + 'w' * 9999, "
      "'where': 'a.py:3'}})");
  ForeignReply told = stub.load();
  EXPECT_EQ(told.kind, Kind::rule);
  EXPECT_EQ(told.where, "a.py:3");
  EXPECT_LT(told.what.size(), 500U);
  EXPECT_EQ(told.what.find('\x1b'), std::string::npos);
}

TEST(ForeignWorker, EndsWhatHangsAndStartsAnotherChild) {
  Stub stub("time.sleep(30)");
  ForeignReply told = stub.load();
  EXPECT_EQ(told.kind, Kind::hung);
  EXPECT_THAT(told.what, HasSubstr("still running after 400"));
  auto run = stub.worker->run(Context(), {});
  ASSERT_TRUE(run);
  EXPECT_EQ(run->kind, Kind::died);
  EXPECT_EQ(stub.load().kind, Kind::hung);  // a new child, which hangs, too
}

TEST(ForeignWorker, TellsHowItsProcessEnded) {
  ForeignReply told = Stub("print('last words', file=sys.stderr) or os._exit(7)").load();
  EXPECT_EQ(told.kind, Kind::died);
  EXPECT_THAT(told.what, HasSubstr("exit code 7"));
  EXPECT_THAT(told.said, HasSubstr("last words"));
}

TEST(ForeignWorker, AnInterpreterWithoutTorchIsTheWorldsError) {
  test_options();
  ForeignOptions options;
  options.python = "/bin/false";
  auto worker = ForeignWorker::open(Context(), options);
  ASSERT_FALSE(worker);
  EXPECT_EQ(worker.error().kind, ErrorKind::world);
  EXPECT_FALSE(worker.error().remedy.empty());
  options.python = "/no/such/python";
  worker = ForeignWorker::open(Context(), options);
  ASSERT_FALSE(worker);
  EXPECT_EQ(worker.error().kind, ErrorKind::user);
}

// values.py: seed_of(seed_of(seed, family, shape), "model").
TEST(ForeignWorker, KnowsTheSeedOfTheReference) {
  EXPECT_EQ(model_seed_of(18446744073709551615U, "outliers", "odd1"), 3945606801795098979U);
  EXPECT_EQ(model_seed_of(7, "made", "official"), 2013715573156735116U);
}

}  // namespace
}  // namespace cutegen::torch
