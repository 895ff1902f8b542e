// SPDX-License-Identifier: Apache-2.0
#include "eval/api/protocol.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"

namespace cutegen::eval::protocol {
namespace {

OpenedTask opened() {
  OpenedTask t;
  t.task.id = "0123";
  t.task.name = "relu";
  t.task.file = "relu.py";
  t.task.tensors = {{.name = "x", .role = TensorRole::input, .dtype = DType::f32, .shape = {4}},
                    {.name = "out", .role = TensorRole::output, .dtype = DType::f32, .shape = {4}}};
  t.task.shapes = {{.name = "official"}};
  t.task.shapes[0].tensors = {{"x", {4}}, {"out", {4}}};
  t.admission = {.admitted = true,
                 .lazy_answers_tried = 14,
                 .passing = {"a copy of x passes on 'made'"},
                 .families = {"made", "signed"},
                 .remark = "caught"};
  t.floor_ns = 437.5;
  t.floor_bound_by = RooflineBound::memory;
  t.reachable_ns = 477.5, t.roofline_ns = 440;
  t.toolchain = "NVRTC 13.0.88";
  t.torch = "torch 2.13.0";
  t.device = "sim:h200";
  t.sandbox = {.label = Protection::full, .held = {{"network", true}}};
  return t;
}

EvaluateRequest request() {
  EvaluateRequest q;
  q.program.sources["kernel.cu"] = "extern \"C\" __global__ void f() {}";
  q.program.plan.sources = {"kernel.cu"};
  Step step;
  step.id = step.kernel = "f";
  q.program.plan.steps = {step};
  q.up_to = Rung::correctness;
  q.profile = true;
  return q;
}

Json all_messages() {
  EvaluatorOptions options{.device = "sim:a100",
                           .runner_threads = 2,
                           .sharing = 3,
                           .read_cute_ahead = false,
                           .programs = "0123",
                           .log_level = "info"};
  Json evaluate = message(MessageType::evaluate, OnTask<EvaluateRequest>{request()});
  EXPECT_EQ(evaluate.at("task_id"), "");
  evaluate.erase("task_id");
  return Json::array({message(MessageType::hello, Hello{options}),
                      message(MessageType::open_task, OpenTaskReply{opened()}), evaluate,
                      message(MessageType::progress, ProgressText{"correctness 3/9"})});
}

TEST(Protocol, CountsOfOptionsAreBounded) {
  for (const char* count : {"tasks", "sharing"})
    for (int bad : {0, -1, 65}) {
      Json options = to_json(EvaluatorOptions{});
      options[count] = bad;
      auto read = read_json<EvaluatorOptions>(options);
      ASSERT_FALSE(read) << count << " " << bad;
      EXPECT_NE(read.error().text().find(count), std::string::npos);
    }
}

// CUTEGEN_UPDATE_GOLDEN=1 rewrites the file.
TEST(Protocol, MessagesAreThoseOfTheGoldenFile) {
  std::string path = std::string(CUTEGEN_SOURCE_DIR) + "/tests/golden/eval/protocol.json";
  std::string now = dump_json(all_messages(), 1) + "\n";
  if (std::getenv("CUTEGEN_UPDATE_GOLDEN")) {
    ASSERT_TRUE(write_file(path, now));
  }
  auto golden = read_file(path);
  ASSERT_TRUE(golden) << golden.error().text();
  EXPECT_EQ(now, *golden);
}

TEST(Protocol, RoundTrips) {
  Json task = to_json(opened()), query = to_json(request());
  auto t = read_json<OpenedTask>(task);
  ASSERT_TRUE(t) << t.error().text();
  EXPECT_EQ(to_json(*t), task);
  auto q = read_json<EvaluateRequest>(query);
  ASSERT_TRUE(q) << q.error().text();
  EXPECT_EQ(to_json(*q), query);
  CertifyRequest certify{.program = request().program,
                         .baselines = {{.kind = BaselineKind::callable, .target = "m:f"}}};
  Json asked = to_json(certify);
  EXPECT_EQ(to_json(*read_json<CertifyRequest>(asked)), asked);
  Json foreign = to_json(ForeignRequest{
      .answer = {.name = "a.py", .source = "text"}, .up_to = Rung::load, .seconds = 7});
  EXPECT_EQ(to_json(*read_json<ForeignRequest>(foreign)), foreign);
  BaselinesRequest baselines{.baselines = {{.kind = BaselineKind::eager},
                                           {.kind = BaselineKind::callable, .target = "m:f"}}};
  Json wanted = to_json(baselines);
  EXPECT_EQ(to_json(*read_json<BaselinesRequest>(wanted)), wanted);
  EvaluateRequest against = request();
  against.against = against.program;
  EXPECT_EQ(to_json(*read_json<EvaluateRequest>(to_json(against))), to_json(against));
  EvaluatorOptions options{.python = "python3", .require_sandbox = true, .use_cache = false};
  EXPECT_EQ(to_json(*read_json<EvaluatorOptions>(to_json(options))), to_json(options));
}

TEST(Protocol, OtherProtocolsAreRefused) {
  EXPECT_EQ(*type_of(message(MessageType::close_task, EmptyReply{})), MessageType::close_task);
  EXPECT_FALSE(type_of({{"schema", kSchema}, {"type", "sing"}}));
  EXPECT_FALSE(type_of({{"schema", "cutegen.evaluator.v2"}, {"type", "hello"}}));
  EXPECT_FALSE(type_of({{"type", "hello"}}));
  EXPECT_FALSE(type_of({{"schema", kSchema}, {"type", 7}}));
}

TEST(Protocol, MissingAndUnknownFieldsAreRefused) {
  for (const char* gone : {"program", "up_to", "profile"}) {
    Json j = to_json(request());
    j.erase(gone);
    EXPECT_FALSE(read_json<EvaluateRequest>(j)) << gone;
  }
  Json more = to_json(request());
  more["timer"] = 1;
  EXPECT_FALSE(read_json<EvaluateRequest>(more));
  Json rung = to_json(request());
  rung["up_to"] = "roof";
  EXPECT_FALSE(read_json<EvaluateRequest>(rung));
  EXPECT_FALSE(read_json<OpenedTask>(Json::array()));
  Json task = to_json(opened());
  EXPECT_TRUE(read_json<OpenedTask>(task));
  task["seed"] = 7;
  EXPECT_FALSE(read_json<OpenedTask>(task));
  CertifyRequest certify{.program = request().program};
  for (auto [key, value] : {std::pair("processes", Json(0)),
                            {"processes", Json(99)},
                            {"precise", Json(0)},
                            {"baselines", Json("eager")}}) {
    Json j = to_json(certify);
    j[key] = value;
    EXPECT_FALSE(read_json<CertifyRequest>(j)) << key;
  }
  for (double seconds : {0.0, -1.0, 1e9}) {
    Json f =
        to_json(ForeignRequest{.answer = {.name = "a.py", .source = "text"}, .seconds = seconds});
    EXPECT_FALSE(read_json<ForeignRequest>(f)) << seconds;
    Json j = to_json(BaselinesRequest{.build_seconds = seconds});
    EXPECT_FALSE(read_json<BaselinesRequest>(j)) << seconds;
  }
}

TEST(Protocol, TimesOfBaselinesAreRead) {
  BaselineTime eager{
      .kind = "eager", .time_ns = 10, .low_ns = 9, .high_ns = 11, .samples = 8, .build_s = 1};
  Json reply = message(MessageType::baselines, BaselinesReply{{eager}});
  auto read = body_of<BaselinesReply>(reply);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->times.at(0).time_ns, 10);
  reply["times"][0]["time_ns"] = -1;
  EXPECT_FALSE(body_of<BaselinesReply>(reply));
  reply["times"] = "none";
  EXPECT_FALSE(body_of<BaselinesReply>(reply));
}

}  // namespace
}  // namespace cutegen::eval::protocol
