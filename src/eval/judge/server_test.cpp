// SPDX-License-Identifier: Apache-2.0
// Uses the evaluator as its client does: the real compiler, runner and torch worker behind a
// channel.
#include "eval/judge/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/file.h"
#include "eval/api/protocol.h"
#include "eval/judge/evaluator.h"

namespace cutegen::eval::server_test {  // its fixture has the name of a type in eval
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kTask = R"(
import torch
from torch import nn
rows = 4096
class Model(nn.Module):
    def forward(self, x):
        return RESULT
def get_inputs():
    return [torch.randn(rows, 1024)]
def get_init_inputs():
    return []
)";
constexpr const char* kKernel = R"(
extern "C" __global__ void f(const float* x, float* out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) out[i] = x[i] < 0 ? -x[i] : x[i];
}
)";

// Runs a server on a thread and holds the other end of its channel.
class Served {
 public:
  Served() {
    auto pair = wire::Channel::make_pair();
    EXPECT_TRUE(pair);
    channel = std::move(pair->first);
    thread_ = std::thread([this, theirs = std::move(pair->second)]() mutable {
      exit_code = serve_evaluator(std::move(theirs));
    });
  }
  ~Served() { close(); }
  void close() {
    channel.close();
    if (thread_.joinable()) thread_.join();
  }
  Result<void> send(const std::string& type, const Json& body) {
    Json message{{"schema", protocol::kSchema}, {"type", type}};
    for (const auto& [key, value] : body.items()) message[key] = value;
    return channel.send(Context(), message);
  }
  // Returns the reply. Keeps the progress texts that precede it.
  Result<Json> receive() {
    for (;;) {
      CG_TRY(wire::Frame frame, channel.receive(Context().with_timeout(std::chrono::minutes(2))));
      if (auto e = frame.body.find("error"); e != frame.body.end())
        return fail(wire::error_from_json(*e));
      if (frame.body.at("type") != "progress") return std::move(frame.body);
      progress.push_back(frame.body.at("text"));
    }
  }
  Result<Json> ask(const std::string& type, const Json& body) {
    CG_CHECK(send(type, body));
    return receive();
  }

  wire::Channel channel;
  std::vector<std::string> progress;
  int exit_code = -1;

 private:
  std::thread thread_;
};

Json options(const DeviceName& device = "sim:h200", int tasks = 1) {
  EvaluatorOptions o{.device = device, .runner_threads = 1, .tasks = tasks};
  return {{"options", to_json(o)}};
}

KernelProgram program() {
  KernelProgram p;
  p.sources["kernel.cu"] = kKernel;
  p.plan = *plan_from_json(Json::parse(R"json({"cutegen": 1, "dialect": "cuda",
      "arch": ["sm_80+"], "sources": ["kernel.cu"], "symbols": {"n": "size(x)"},
      "steps": [{"kernel": "f", "grid": ["ceil_div(n,256)", 1, 1], "block": [256, 1, 1],
                 "args": [{"tensor": "x"}, {"tensor": "out"}, {"i32": "n"}]}]})json"));
  return p;
}

TEST(Server, RefusesWhatItDoesNotKnow) {
  Served s;
  EXPECT_THAT(s.ask("open_task", {{"file", "x.py"}}).error().message,
              HasSubstr("the first request must be hello"));
  EXPECT_FALSE(s.channel.send(Context(), Json{{"schema", "other"}, {"type", "hello"}}) &&
               s.receive());
  auto device = s.ask("hello", options("sim:nothing"));
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().kind, ErrorKind::user);
  EXPECT_FALSE(s.ask("hello", {{"options", {{"device", 3}}}}));
  EvaluatorOptions suites{.device = "sim:h200", .suites = true};
  const Json suite{{"request", to_json(SuiteRequest{})}};
  EXPECT_THAT(s.ask("suite", suite).error().message, HasSubstr("with the option 'suites'"));
  ASSERT_TRUE(s.ask("hello", {{"options", to_json(suites)}}));
  EXPECT_THAT(s.ask("suite", suite).error().message, HasSubstr("baselines need a GPU"));
  EXPECT_THAT(s.ask("suite_news", {}).error().message, HasSubstr("request 'suite_news'"));
  EXPECT_FALSE(s.ask("open_task", {{"file", "x.py"}}));
  Json more = options();
  more["more"] = 1;
  EXPECT_TRUE(s.ask("hello", more));  // from a later version
  EXPECT_FALSE(s.ask("hello", options("sim:h200", 0)));
  EXPECT_FALSE(s.ask("hello", options("sim:h200", 65)));
  EXPECT_THAT(s.ask("sing", {}).error().message, HasSubstr("does not know the request 'sing'"));
  const Json eager{{"task_id", ""}, {"request", to_json(BaselinesRequest{})}};
  EXPECT_THAT(s.ask("baselines", eager).error().message, HasSubstr("need a GPU"));
  EXPECT_FALSE(s.ask("expect_children", {{"task_id", "x"}}));
  EXPECT_TRUE(
      s.ask("expect_children",
            {{"task_id", ""}, {"request", to_json(EvaluateRequest{program()})}, {"count", 3}}))
      << "a hint, which may come too late";
  EXPECT_FALSE(s.ask("open_task", {}));
  EXPECT_FALSE(s.ask("evaluate", {{"task_id", "x"}}));
  auto early = s.ask(
      "evaluate", {{"task_id", ""}, {"request", to_json(EvaluateRequest{.program = program()})}});
  ASSERT_FALSE(early);
  EXPECT_THAT(early.error().message, HasSubstr("no task is open"));
  s.close();
  EXPECT_EQ(s.exit_code, kExitOk);
}

// One server with the task abs(x) open, for all tests of this suite.
class Evaluation : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::setenv("CUTEGEN_SHARE", CUTEGEN_SOURCE_DIR, 1);
    std::string pattern = (fs::temp_directory_path() / "cutegen_server_XXXXXX").string();
    if (!::mkdtemp(pattern.data())) std::abort();
    folder_ = new fs::path(pattern);
    ::setenv("XDG_CACHE_HOME", pattern.c_str(), 1);
    server_ = new Served();
    auto hello = server_->ask("hello", options());
    ASSERT_TRUE(hello) << hello.error().text();
    EXPECT_EQ(hello->at("pid"), ::getpid());
    ASSERT_TRUE(server_->send("open_task", {{"file", task_file("torch.abs(x)")}}));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ASSERT_TRUE(server_->send("open_task", {{"file", "other.py"}}));
    auto refused = server_->receive();  // at once, although torch takes seconds to start
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("the evaluator is busy"));
    auto opened = server_->receive();
    ASSERT_TRUE(opened) << opened.error().text();
    opened_ = new OpenedTask(*read_json<OpenedTask>(opened->at("opened")));
  }
  static void TearDownTestSuite() {
    delete server_;
    delete opened_;
    ::unsetenv("XDG_CACHE_HOME");
    fs::remove_all(*folder_);
    delete folder_;
  }
  static std::string task_file(const std::string& result) {
    std::string text = kTask;
    text.replace(text.find("RESULT"), 6, result);
    fs::path file = *folder_ / ("t" + std::to_string(std::hash<std::string>()(result)) + ".py");
    EXPECT_TRUE(write_file(file, text));
    return file.string();
  }
  static Result<Json> ask_verdict(const std::string& task, Rung up_to = Rung::timing) {
    server_->progress.clear();
    return server_->ask(
        "evaluate", {{"task_id", task},
                     {"request", to_json(EvaluateRequest{.program = program(), .up_to = up_to})}});
  }
  static Verdict verdict(const std::string& task, Rung up_to = Rung::timing) {
    auto reply = ask_verdict(task, up_to);
    EXPECT_TRUE(reply) << reply.error().text();
    return reply ? *read_json<Verdict>(reply->at("verdict")) : Verdict{};
  }
  void SetUp() override { ASSERT_TRUE(opened_); }

  inline static fs::path* folder_ = nullptr;
  inline static Served* server_ = nullptr;
  inline static OpenedTask* opened_ = nullptr;
};

TEST_F(Evaluation, OpeningTellsTheTaskAndWhatItRunsOn) {
  EXPECT_EQ(opened_->task.tensors.size(), 2U);
  EXPECT_EQ(opened_->task.official().tensors.at("x"), (Shape{4096, 1024}));
  EXPECT_EQ(opened_->device, "sim:h200");
  EXPECT_NEAR(opened_->floor_ns, 4096 * 1024 * 4 / 4.8e12 * 1e9, 1) << "the L2 holds the output";
  EXPECT_NEAR(opened_->reachable_ns, 2 * 4096 * 1024 * 4 / 4.8e12 / 0.92 * 1e9 + 2000, 1);
  EXPECT_NEAR(opened_->roofline_ns, 2 * 4096 * 1024 * 4 / 4.8e12 * 1e9, 1);
  EXPECT_EQ(opened_->floor_bound_by, RooflineBound::memory);
  EXPECT_THAT(opened_->toolchain, HasSubstr("NVRTC"));
  EXPECT_THAT(opened_->torch, HasSubstr("torch"));
  EXPECT_THAT(opened_->sandbox.label,
              testing::AnyOf(Protection::full, Protection::partial, Protection::none));
  EXPECT_FALSE(opened_->sandbox.held.empty());
}

TEST_F(Evaluation, LazyAnswersAreJudgedOnEveryFamily) {
  const Admission& a = opened_->admission;
  EXPECT_TRUE(a.admitted) << a.remark;
  EXPECT_GE(a.lazy_answers_tried, 12);
  EXPECT_THAT(a.families,
              ElementsAre("made", "signed", "heavy", "outliers", "special", "extremes"));
}

TEST_F(Evaluation, AnHonestProgramIsCorrectOnEveryShapeAndFamily) {
  for (int round = 0; round < 2; ++round) {  // the second round uses new sets
    Verdict v = verdict(opened_->task.id);
    EXPECT_EQ(v.status, Status::correct) << v.feedback.headline;
    EXPECT_EQ(v.task_id, opened_->task.id);
    EXPECT_EQ(v.math_mode, "fp32");
    EXPECT_EQ(v.sets_judged, 26);  // three shapes and four long ones, not the large official one
    ASSERT_TRUE(v.timing);
    EXPECT_EQ(v.timing->origin, Origin::modelled);
    EXPECT_GE(v.timing->time_ns, opened_->floor_ns);
    EXPECT_THAT(v.marks, IsEmpty());
    EXPECT_THAT(server_->progress, Contains("correctness 26/26"));
    ASSERT_TRUE(v.audit);
    EXPECT_EQ(v.audit->kernels.size(), 1U);
  }
}

TEST_F(Evaluation, OnlyTheOpenTaskIsJudged) {
  auto other = ask_verdict("another");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("another task is open"));
}

TEST_F(Evaluation, ATaskThatALazyAnswerSolvesIsMarked) {
  auto reply = server_->ask("open_task", {{"file", task_file("x * 2")}});
  ASSERT_TRUE(reply) << reply.error().text();
  auto opened = *read_json<OpenedTask>(reply->at("opened"));
  EXPECT_FALSE(opened.admission.admitted);
  EXPECT_THAT(opened.admission.remark, HasSubstr("a linear map of x"));
  Verdict v = verdict(opened.task.id, Rung::compile);
  EXPECT_THAT(v.marks, Contains(HasSubstr("task not admitted")));
  EXPECT_FALSE(ask_verdict(opened_->task.id));  // no longer open
  auto broken = server_->ask("open_task", {{"file", (*folder_ / "none.py").string()}});
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().kind, ErrorKind::user);
}

TEST_F(Evaluation, TheAskedAccuracyMakesAnotherTask) {
  const std::string file = task_file("torch.abs(x)");
  Json asked{{"math_mode", {{"value", "tf32"}, {"source", "flag --math-mode"}}},
             {"rtol", {{"value", 1e-3}, {"source", "flag --rtol"}}}};
  auto reply = server_->ask("open_task", {{"file", file}, {"asked", asked}});
  ASSERT_TRUE(reply) << reply.error().text();
  auto opened = *read_json<OpenedTask>(reply->at("opened"));
  EXPECT_NE(opened.task.id, opened_->task.id);
  EXPECT_EQ(opened.task.rtol, 1e-3);
  Verdict v = verdict(opened.task.id, Rung::compile);
  EXPECT_EQ(v.math_mode, "tf32 (asked for)");
  asked["math_mode"]["value"] = "bf17";
  auto wrong = server_->ask("open_task", {{"file", file}, {"asked", asked}});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("bf17"));
  asked = {{"atol", {{"value", 0}, {"source", "flag --atol"}}}};
  auto none = server_->ask("open_task", {{"file", file}, {"asked", asked}});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().where, "flag --atol");
}

// The last test of the suite, because it starts another evaluator.
TEST_F(Evaluation, SeveralTasksStayOpenOnRequest) {
  ASSERT_TRUE(server_->ask("hello", options("sim:h200", 2)));
  auto open = [](const std::string& result) {
    auto reply = server_->ask("open_task", {{"file", task_file(result)}});
    EXPECT_TRUE(reply) << reply.error().text();
    return *read_json<OpenedTask>(reply->at("opened"));
  };
  const OpenedTask abs = open("torch.abs(x)"), twice = open("x * 2");
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(verdict(abs.task.id).status, Status::correct);
    EXPECT_EQ(verdict(twice.task.id).status, Status::failed);
  }
  EXPECT_EQ(verdict("").task_id, twice.task.id) << "the task used last";
  const OpenedTask again = open("torch.abs(x)");
  EXPECT_EQ(again.task.id, abs.task.id);
  EXPECT_EQ(again.admission.families, abs.admission.families);
  const OpenedTask third = open("x + 3");  // replaces the least recently used task
  EXPECT_FALSE(ask_verdict(twice.task.id, Rung::compile));
  EXPECT_EQ(verdict(abs.task.id).status, Status::correct);
  ASSERT_TRUE(server_->ask("close_task", {{"task_id", abs.task.id}}));
  EXPECT_FALSE(ask_verdict(abs.task.id, Rung::compile));
  EXPECT_EQ(verdict(third.task.id).status, Status::failed);
}

}  // namespace
}  // namespace cutegen::eval::server_test
