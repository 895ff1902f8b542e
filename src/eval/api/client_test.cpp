// SPDX-License-Identifier: Apache-2.0
// Runs the client against a fake evaluator that does what a test wants: dies, answers wrongly, or
// never answers.
#include "eval/api/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "base/file.h"
#include "eval/api/expect_children.h"
#include "eval/api/protocol.h"

namespace cutegen::eval {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Words in the file `mode` choose its behaviour. It records requests and starts.
constexpr const char* kFake = R"(#!/usr/bin/env python3
import json, os, socket, sys, time
here = os.path.dirname(os.path.abspath(__file__))
mode = open(here + "/mode").read().split()
channel = socket.socket(fileno=3)

def note(name, value):
    with open(here + "/" + name, "a") as out:
        out.write(json.dumps(value) + "\n")

note("starts", {"cwd": os.getcwd(), "env": dict(os.environ), "pid": os.getpid()})
start = len(open(here + "/starts").readlines())

def receive(count):
    data = channel.recv(count, socket.MSG_WAITALL)
    if len(data) < count:
        sys.exit(0)
    return data

def send(body):
    data = json.dumps(body).encode()
    channel.sendall(len(data).to_bytes(4, "little") + data)

def reply(kind, **body):
    send({"schema": "cutegen.evaluator.v1", "type": kind, **body})

while True:
    request = json.loads(receive(int.from_bytes(receive(4), "little")))
    note("requests", request)
    kind = request["type"]
    if kind == "hello" and "dies_early" in mode:
        os._exit(9)
    elif kind == "hello":
        reply("hello", **({} if "silent" in mode else {"pid": 4711}))
    elif kind == "open_task":
        opened = json.load(open(here + "/opened.json"))
        if "changes" in mode and start > 1:
            opened["task"]["id"] = "another"
        reply("open_task", **({} if "no_task" in mode else {"opened": opened}))
    elif kind in ("close_task", "expect_children"):
        reply(kind)
    elif kind == "suite":
        reply("suite_news", news={"gpu": "h200", "driver": "580"})
        reply("progress", text="describing")
        for task in request["request"]["tasks"]:
            row = json.load(open(here + "/row.json"))
            reply("suite_news", news={"row": {**row, "number": task["number"], "status": "pending"}})
            reply("suite_news", news={"row": {**row, "number": task["number"]}})
            if f"dies{start}" in mode or "dies" in mode:
                os._exit(9)
        reply("suite")
    elif f"dies{start}" in mode or "dies" in mode:
        os._exit(9)
    elif "slow" in mode:
        time.sleep(60)
    elif "error" in mode:
        send({"error": {"kind": "user", "message": "not like this", "where": "a", "remedy": "b"}})
    elif "other" in mode:
        reply("open_task")
    elif "no_verdict" in mode:
        reply("evaluate")
    else:
        for text in ["compile", 7, "correctness 1/2"]:
            reply("progress", text=text)
        reply("progress")
        reply("evaluate", verdict=json.load(open(here + "/verdict.json")))
)";

class Client : public testing::Test {
 protected:
  Client() {
    std::string pattern = (fs::temp_directory_path() / "cutegen_client_XXXXXX").string();
    if (!::mkdtemp(pattern.data())) std::abort();
    folder = pattern;
    program.sources["kernel.cu"] = "extern \"C\" __global__ void f() {}";
    program.plan.sources = {"kernel.cu"};
    OpenedTask opened;
    opened.task.id = "0123";
    opened.task.name = "relu";
    opened.task.tensors = {
        {.name = "out", .role = TensorRole::output, .dtype = DType::f32, .shape = {4}}};
    opened.task.shapes = {{.name = "official"}};
    opened.task.shapes[0].tensors = {{"out", {4}}};
    opened.floor_ns = 12.5;
    Verdict verdict;
    verdict.status = Status::failed;
    verdict.program_id = "p";
    verdict.feedback.headline = "as it was sent";
    write("opened.json", dump_json(to_json(opened)));
    write("verdict.json", dump_json(to_json(verdict)));
    SuiteRow row{.status = BaselineStatus::measured, .describe_s = 1.5};
    row.record.name = "relu", row.record.controls = {{.name = "stream", .time_ns = 5}};
    write("row.json", dump_json(to_json(row)));
    write("cutegen-evaluator", kFake);
    ::chmod((folder / "cutegen-evaluator").c_str(), 0700);
    write("mode", "");
    if (const char* set = std::getenv("CUTEGEN_BIN")) before = set;
    ::setenv("CUTEGEN_BIN", folder.c_str(), 1);
  }
  ~Client() override {
    if (before.empty())
      ::unsetenv("CUTEGEN_BIN");
    else
      ::setenv("CUTEGEN_BIN", before.c_str(), 1);
    std::error_code error;
    fs::remove_all(folder, error);
  }
  void write(const char* name, const std::string& text) {
    ASSERT_TRUE(write_file(folder / name, text));
  }
  // Reads a file with one JSON value per line.
  std::vector<Json> noted(const char* name) {
    std::vector<Json> out;
    std::istringstream lines(read_file(folder / name).value_or(""));
    for (std::string line; std::getline(lines, line);) out.push_back(Json::parse(line));
    return out;
  }
  std::vector<std::string> requests() {
    std::vector<std::string> out;
    for (const Json& r : noted("requests")) out.push_back(r.at("type"));
    return out;
  }
  std::unique_ptr<EvaluatorClient> start(const char* mode, EvaluatorOptions options = {}) {
    write("mode", mode);
    auto client = EvaluatorClient::start(Context(), std::move(options));
    EXPECT_TRUE(client) << client.error().text();
    return client ? std::move(*client) : nullptr;
  }
  // Returns a client with its task open.
  std::unique_ptr<EvaluatorClient> opened(const char* mode, EvaluatorOptions options = {}) {
    auto client = start(mode, std::move(options));
    auto task = client->open_task(Context(), "relu.py");
    EXPECT_TRUE(task) << task.error().text();
    return client;
  }

  fs::path folder;
  std::string before;  // CUTEGEN_BIN before the test
  KernelProgram program;
};

TEST_F(Client, StartsTheEvaluatorWithItsOptions) {
  EvaluatorOptions options{.device = "sim:a100", .runner_threads = 3, .log_level = "error"};
  auto client = start("", options);
  EXPECT_EQ(client->pid(), 4711);
  ASSERT_EQ(noted("starts").size(), 1U);
  EXPECT_EQ(noted("starts")[0].at("cwd"), fs::current_path().string());
  Json hello = noted("requests").at(0);
  EXPECT_EQ(hello.at("schema"), protocol::kSchema);
  EXPECT_EQ(hello.at("options"), to_json(options));
}

TEST_F(Client, TheEvaluatorSeesOurVariablesAndNoSecrets) {
  ::setenv("CUTEGEN_PTXAS", "/opt/ptxas", 1);
  ::setenv("XDG_CACHE_HOME", "/var/cache/x", 1);
  for (const char* secret : {"CUTEGEN_API_KEY", "CUTEGEN_TOKEN", "XDG_SECRET", "CUTEGEN_PASSWORD",
                             "CUTEGEN_CREDENTIALS", "OTHER_VARIABLE"})
    ::setenv(secret, "s3cret", 1);
  auto client = start("");
  Json env = noted("starts").at(0).at("env");
  EXPECT_EQ(env.value("CUTEGEN_PTXAS", ""), "/opt/ptxas");
  EXPECT_EQ(env.value("XDG_CACHE_HOME", ""), "/var/cache/x");
  EXPECT_EQ(env.value("CUTEGEN_BIN", ""), folder.string());
  EXPECT_EQ(env.dump().find("s3cret"), std::string::npos);
  for (const char* name :
       {"CUTEGEN_PTXAS", "XDG_CACHE_HOME", "CUTEGEN_API_KEY", "CUTEGEN_TOKEN", "XDG_SECRET",
        "CUTEGEN_PASSWORD", "CUTEGEN_CREDENTIALS", "OTHER_VARIABLE"})
    ::unsetenv(name);
}

TEST_F(Client, OpensATaskAndGetsItsVerdicts) {
  auto client = start("");
  auto task = client->open_task(Context(), "relu.py");
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_EQ(task->task.id, "0123");
  EXPECT_EQ(task->floor_ns, 12.5);
  std::vector<std::string> progress;
  EvaluateRequest request{.program = program, .up_to = Rung::load, .profile = true};
  auto verdict = client->evaluate(Context(), request,
                                  [&](const std::string& text) { progress.push_back(text); });
  ASSERT_TRUE(verdict) << verdict.error().text();
  EXPECT_EQ(verdict->feedback.headline, "as it was sent");
  EXPECT_EQ(verdict->status, Status::failed);
  EXPECT_THAT(progress, ElementsAre("compile", "correctness 1/2"));
  EXPECT_TRUE(client->evaluate(Context(), request));  // without a reader of the progress
  EXPECT_THAT(requests(), ElementsAre("hello", "open_task", "evaluate", "evaluate"));
  EXPECT_EQ(noted("requests")[1].at("file"), fs::absolute("relu.py").string());
  EXPECT_EQ(noted("requests")[2].at("task_id"), "0123");
  EXPECT_EQ(noted("requests")[2].at("request"), to_json(request));
}

TEST_F(Client, AnEvaluatorThatDiedOnceIsStartedAgainWithItsTask) {
  auto client = opened("dies1");
  auto verdict = client->evaluate(Context(), {.program = program});
  ASSERT_TRUE(verdict) << verdict.error().text();
  EXPECT_EQ(verdict->feedback.headline, "as it was sent");
  EXPECT_EQ(noted("starts").size(), 2U);
  EXPECT_THAT(requests(),
              ElementsAre("hello", "open_task", "evaluate", "hello", "open_task", "evaluate"));
  EXPECT_TRUE(client->evaluate(Context(), {program}));
  EXPECT_EQ(noted("starts").size(), 2U);
}

TEST_F(Client, AFreshEvaluatorIsAskedForTheSameAccuracy) {
  auto client = start("dies1");
  AskedAccuracy asked;
  asked.math_mode = MathMode::bf16;
  asked.atol = 1e-6;
  asked.sources = {{"math_mode", "flag --math-mode"}, {"atol", "flag --atol"}};
  ASSERT_TRUE(client->open_task_as(Context(), "relu.py", asked));
  ASSERT_TRUE(client->evaluate(Context(), {program}));
  ASSERT_EQ(noted("requests").size(), 6U);
  for (size_t i : {1, 4}) EXPECT_EQ(noted("requests")[i].at("asked"), to_json(asked)) << i;
}

TEST_F(Client, AnEvaluatorThatDiedBetweenCallsOpensTheTaskAgain) {
  auto client = opened("");
  ASSERT_TRUE(client->evaluate(Context(), {program}));
  auto pid = noted("starts").at(0).at("pid").get<pid_t>();
  ::kill(pid, SIGKILL);
  for (int wait = 0; wait < 500 && ::kill(pid, 0) == 0; ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  auto verdict = client->evaluate(Context(), {.program = program});
  ASSERT_TRUE(verdict) << verdict.error().text();
  EXPECT_THAT(requests(),
              ElementsAre("hello", "open_task", "evaluate", "hello", "open_task", "evaluate"));
}

TEST_F(Client, AnEvaluationThatKillsItAlwaysIsAborted) {
  auto client = opened("dies", {.device = "sim:a100"});
  auto verdict = client->evaluate(Context(), {.program = program});
  ASSERT_TRUE(verdict) << verdict.error().text();
  EXPECT_EQ(verdict->status, Status::aborted);
  EXPECT_THAT(verdict->feedback.headline, HasSubstr("died 3 times"));
  EXPECT_EQ(verdict->program_id, program_id(program));
  EXPECT_EQ(verdict->task_id, "0123");
  EXPECT_EQ(verdict->device, "sim:a100");
  EXPECT_EQ(noted("starts").size(), 3U);
}

TEST_F(Client, ATaskThatChangedMeanwhileIsAnError) {
  auto client = opened("dies1 changes");
  auto verdict = client->evaluate(Context(), {.program = program});
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().kind, ErrorKind::user);
  EXPECT_THAT(verdict.error().message, HasSubstr("the task file changed"));
  EXPECT_EQ(verdict.error().where, fs::absolute("relu.py").string());
}

TEST_F(Client, ATaskIsNamedAndClosed) {
  auto client = opened("");
  ASSERT_TRUE(client->evaluate(Context(), {.program = program, .task = "0123"}));
  auto other = client->evaluate(Context(), {.program = program, .task = "4567"});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("no task is open"));
  expect_children(*client, Context(), {.parent = program, .count = 3, .task = "4567"});
  expect_children(*client, Context(), {.parent = program, .count = 3, .task = "0123"});
  client->close_task(Context(), "4567");
  client->close_task(Context(), "0123");
  EXPECT_FALSE(client->evaluate(Context(), {.program = program, .task = "0123"}));
  EXPECT_THAT(requests(),
              ElementsAre("hello", "open_task", "evaluate", "expect_children", "close_task"));
  EXPECT_EQ(noted("requests").at(3).at("count"), 3);
  EXPECT_EQ(noted("requests").at(4).at("task_id"), "0123");
  ASSERT_TRUE(client->open_task(Context(), "relu.py"));
  EXPECT_TRUE(client->evaluate(Context(), {program}));
}

TEST_F(Client, ErrorsOfTheEvaluatorArePassedOnAndItLives) {
  auto client = opened("error");
  for (int i = 0; i < 2; ++i) {
    auto verdict = client->evaluate(Context(), {.program = program});
    ASSERT_FALSE(verdict);
    EXPECT_EQ(verdict.error().kind, ErrorKind::user);
    EXPECT_EQ(verdict.error().message, "not like this");
  }
  EXPECT_EQ(noted("starts").size(), 1U);
  EXPECT_THAT(requests(), ElementsAre("hello", "open_task", "evaluate", "evaluate"));
}

TEST_F(Client, AnswersThatAreNoneAreTheWorldsErrors) {
  write("mode", "silent");
  auto client = EvaluatorClient::start(Context(), {});
  ASSERT_FALSE(client);
  EXPECT_THAT(client.error().message, HasSubstr("did not send its hello"));
  auto task = start("no_task")->open_task(Context(), "relu.py");
  ASSERT_FALSE(task);
  EXPECT_THAT(task.error().message, HasSubstr("has no task"));
  for (auto [mode, message] : {std::pair{"other", "answered another request"},
                               std::pair{"no_verdict", "has no verdict"}}) {
    auto verdict = opened(mode)->evaluate(Context(), {.program = program});
    ASSERT_FALSE(verdict) << mode;
    EXPECT_EQ(verdict.error().kind, ErrorKind::world) << mode;
    EXPECT_THAT(verdict.error().message, HasSubstr(message));
  }
}

TEST_F(Client, AnEvaluatorThatDiesAtTheStartIsAnError) {
  write("mode", "dies_early");
  auto client = EvaluatorClient::start(Context().with_timeout(std::chrono::seconds(30)), {});
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().kind, ErrorKind::world);
  EXPECT_EQ(client.error().message, "closed");
}

SuiteRequest suite_of_two() {
  SuiteRequest out;
  out.tasks = {{.number = 4, .name = "a", .file = "a.py"},
               {.number = 7, .name = "b", .file = "b.py"}};
  out.baselines = *baselines_named({"eager", "m:f"});
  out.known = {{.task_id = "0123", .gpu = "h200", .driver = "580", .torch = "torch 2.13"}};
  return out;
}

TEST_F(Client, NewsOfASuiteArriveBeforeItsEnd) {
  auto client = start("", {.suites = true});
  std::vector<std::string> seen;
  auto done = client->measure_suite(
      Context(), suite_of_two(),
      [&](const SuiteNews& n) {
        seen.push_back(n.row ? std::to_string(n.row->number) + to_string(n.row->status) : n.gpu);
        if (n.row) {
          EXPECT_EQ(n.row->record.controls.size(), 1U);
          EXPECT_EQ(n.row->describe_s, 1.5);
        }
      },
      [&](const std::string& text) { seen.push_back(text); });
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_THAT(seen,
              ElementsAre("h200", "describing", "4pending", "4measured", "7pending", "7measured"));
  EXPECT_EQ(noted("requests").at(0).at("options").at("suites"), true);
  EXPECT_EQ(noted("requests").at(1).at("request"), to_json(suite_of_two()));
}

TEST_F(Client, AFreshEvaluatorMeasuresTheTasksThatAreLeft) {
  auto client = start("dies1", {.suites = true});
  std::vector<int> ended;
  auto news = [&](const SuiteNews& n) {
    if (n.row && n.row->status != BaselineStatus::pending) ended.push_back(n.row->number);
  };
  ASSERT_TRUE(client->measure_suite(Context(), suite_of_two(), news));
  EXPECT_THAT(ended, ElementsAre(4, 7));
  EXPECT_THAT(requests(), ElementsAre("hello", "suite", "hello", "suite"));
  EXPECT_EQ(noted("requests").at(3).at("request").at("tasks").size(), 1U);
  SuiteRequest three = suite_of_two();
  three.tasks.push_back({.number = 8, .name = "c", .file = "c.py"});
  auto never = start("dies", {.suites = true})->measure_suite(Context(), three, {});
  ASSERT_FALSE(never);
  EXPECT_THAT(never.error().message, HasSubstr("died 3 times"));
}

TEST_F(Client, WhoStopsWaitingEndsTheEvaluator) {
  auto client = opened("slow");
  auto pid = noted("starts").at(0).at("pid").get<pid_t>();
  auto began = Clock::now();
  auto verdict = client->evaluate(Context().with_timeout(std::chrono::milliseconds(200)),
                                  {.program = program});
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().kind, ErrorKind::timeout);
  for (int wait = 0; wait < 500 && ::kill(pid, 0) == 0; ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_NE(::kill(pid, 0), 0);
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(20));
  write("mode", "");
  auto again =
      client->evaluate(Context(), {.program = program});  // a new process opens the task again
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(noted("starts").size(), 2U);
}

}  // namespace
}  // namespace cutegen::eval
