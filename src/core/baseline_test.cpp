// SPDX-License-Identifier: Apache-2.0
// Which times are reused on another day, which baseline counts, and the JSON form.
#include "core/baseline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cutegen {
namespace {

BaselineTime took(const std::string& kind, double ns) {
  BaselineTime t;
  t.kind = kind, t.time_ns = ns, t.low_ns = 0.9 * ns, t.high_ns = 1.1 * ns, t.samples = 8;
  return t;
}

BaselineTime missing(const std::string& kind, const std::string& why) {
  BaselineTime t;
  t.kind = kind, t.why = why, t.build_s = 3;
  return t;
}

BaselineRecord record() {
  BaselineRecord b;
  b.task_id = "t", b.name = "19_ReLU", b.workload = "elementwise", b.gpu = "h200", b.uuid = "GPU-1";
  b.driver = "580", b.torch = "2.11", b.measured = "2026-11-22 07:00", b.floor_ns = 5;
  b.bound_by = "memory", b.admitted = true,
  b.truth = {.seconds = 0.5, .bytes = 4096, .notes = {"a note"}};
  b.controls = {{.name = "stream", .program_id = "p1", .time_ns = 100},
                {.name = "multiply", .program_id = "p2", .time_ns = 200}};
  b.times = {took("eager", 30), took("eager-tf32", 10), missing("compile", "it raises")};
  return b;
}

TEST(Baseline, TheFastestInTheMathModeCounts) {
  const auto times = record().times;
  EXPECT_EQ(best_baseline(times, MathMode::fp32)->kind, "eager");
  EXPECT_EQ(best_baseline(times, MathMode::tf32)->kind, "eager-tf32");
  EXPECT_EQ(best_baseline({missing("eager", "no")}, MathMode::fp32), nullptr);
}

Task task_with(const std::string& op, MathMode mode = MathMode::fp32, DType dtype = DType::f32) {
  Task task;
  task.math_mode = mode;
  task.tensors = {{.name = "x", .role = TensorRole::input, .dtype = dtype}};
  Node node;
  node.op = op, node.outputs = {{.name = "y", .dtype = dtype, .shape = {4}}};
  task.graph.nodes.push_back(node);
  return task;
}

TEST(BaselineClass, IsWhatPyTorchRoundsOperandsTo) {
  Task conv = task_with("aten.convolution.default");
  EXPECT_TRUE(has_cudnn_tf32(conv));
  EXPECT_EQ(class_of(BaselineKind::eager, conv).precision, "tf32 convolutions");
  EXPECT_TRUE(class_of(BaselineKind::eager, conv).coarser) << "the task is held to fp32";
  EXPECT_TRUE(class_of(BaselineKind::compile_max, conv).coarser);
  EXPECT_EQ(class_of(BaselineKind::eager_fp32, conv).precision, "fp32");
  EXPECT_FALSE(class_of(BaselineKind::eager_fp32, conv).coarser);
  EXPECT_EQ(class_of(BaselineKind::eager_tf32, conv).precision, "tf32");
  EXPECT_TRUE(class_of(BaselineKind::eager_tf32, conv).coarser);
  EXPECT_EQ(class_of(baseline_kind("mine:fast"), conv).precision, "");
  conv.tf32_convolutions = true;
  EXPECT_FALSE(class_of(BaselineKind::eager, conv).coarser) << "as PyTorch ships";
  EXPECT_TRUE(class_of(BaselineKind::eager_tf32, conv).coarser);
  const Task product = task_with("aten.mm.default");
  EXPECT_FALSE(has_cudnn_tf32(product));
  EXPECT_EQ(class_of(BaselineKind::eager, product).precision, "fp32");
  EXPECT_EQ(class_of(BaselineKind::eager, task_with("aten.lstm.input")).precision,
            "tf32 convolutions");
  const Task half = task_with("aten.convolution.default", MathMode::bf16, DType::bf16);
  EXPECT_FALSE(has_cudnn_tf32(half));
  EXPECT_EQ(class_of(BaselineKind::eager, half).precision, "bf16");
  EXPECT_FALSE(class_of(BaselineKind::eager_tf32, half).coarser);
  EXPECT_FALSE(
      class_of(BaselineKind::eager_tf32, task_with("aten.mm.default", MathMode::tf32)).coarser);
}

TEST(BaselineClass, DepthwiseConvolutionsAreInFloat32) {
  Task task = task_with("aten.convolution.default");
  task.graph.placeholders = {{.name = "x", .dtype = DType::f32, .shape = {2, 6, 8, 8}},
                             {.name = "w", .dtype = DType::f32, .shape = {6, 1, 3, 3}}};
  Node& node = task.graph.nodes.front();
  auto with = [&](int64_t channels, int64_t groups) {
    task.graph.placeholders[0].shape[1] = channels;
    node.args = {{{"ref", "x"}}, {{"ref", "w"}}, nullptr, {1, 1}, {0, 0},
                 {1, 1},         false,          {0, 0},  groups};
    return has_cudnn_tf32(task);
  };
  EXPECT_FALSE(with(6, 6));
  EXPECT_TRUE(with(6, 3));
  EXPECT_TRUE(with(6, 1));
  EXPECT_TRUE(with(1, 1)) << "some kernels of cuDNN use TF32";
}

// In fp32 tasks, baselines in fp32 count. A coarser one counts only if its results are within the
// candidates' tolerance.
TEST(BaselineClass, CoarserOnesCountOnlyIfTheyPassTheGate) {
  const Task conv = task_with("aten.convolution.default");
  std::vector<BaselineTime> times{took("eager", 10), took("eager-fp32", 40), took("compile", 20)};
  for (BaselineTime& t : times) t.accuracy = class_of(baseline_kind(t.kind), conv);
  EXPECT_EQ(best_baseline(times, MathMode::fp32)->kind, "eager-fp32");
  times[2].accuracy.passes = true;
  EXPECT_EQ(best_baseline(times, MathMode::fp32)->kind, "compile");
  times[0].accuracy.passes = false;
  EXPECT_EQ(best_baseline(times, MathMode::fp32)->kind, "compile");
  times[1].accuracy.passes = false;
  times[2].accuracy.passes.reset();
  EXPECT_EQ(best_baseline(times, MathMode::fp32)->kind, "eager-fp32")
      << "its precision respects the math mode, so its error does not matter";
  EXPECT_EQ(best_baseline({times[0]}, MathMode::fp32), nullptr);
}

TEST(BaselineClass, IsToldInATable) {
  BaselineAccuracy a;
  EXPECT_EQ(accuracy_text(a), "own precision");
  a.precision = "tf32 convolutions", a.coarser = true;
  EXPECT_EQ(accuracy_text(a), "tf32 convolutions: coarser than the math mode");
  a.passes = false, a.share = 40;
  EXPECT_EQ(accuracy_text(a), "tf32 convolutions: fails this task's tolerance");
  a = {.precision = "fp32", .coarser = false, .share = 0.3125, .passes = true, .why = ""};
  EXPECT_EQ(accuracy_text(a), "fp32, 0.31 of the accepted error");
  a.share.reset();
  EXPECT_EQ(accuracy_text(a), "fp32, within this task's tolerance");
}

TEST(BaselineClass, AnotherShapeKeepsTheWorse) {
  BaselineAccuracy a{
      .precision = "fp32", .coarser = false, .share = 0.5, .passes = true, .why = ""};
  keep_worse(a, {.precision = "fp32", .coarser = false, .share = 0.2, .passes = true, .why = ""});
  EXPECT_EQ(a.share, 0.5);
  EXPECT_EQ(a.passes, true);
  keep_worse(a, {.precision = "fp32",
                 .coarser = false,
                 .share = std::nullopt,
                 .passes = std::nullopt,
                 .why = "no memory"});
  EXPECT_FALSE(a.passes);
  EXPECT_EQ(a.why, "no memory");
  keep_worse(a,
             {.precision = "fp32", .coarser = false, .share = 3, .passes = false, .why = "wrong"});
  EXPECT_EQ(a.passes, false);
  EXPECT_EQ(a.share, 3);
  keep_worse(a, {.precision = "fp32", .coarser = false, .share = 0.1, .passes = true, .why = ""});
  EXPECT_EQ(a.passes, false);
  EXPECT_EQ(a.why, "wrong");
}

TEST(Baseline, TimesAreCarriedOverByTheControls) {
  CarriedOver c =
      carried_over(record(), {{.name = "stream", .program_id = "p1", .time_ns = 102},
                              {.name = "multiply", .program_id = "p2", .time_ns = 204}});
  EXPECT_EQ(c.why, "");
  EXPECT_NEAR(c.ratio, 1.02, 1e-12);
  ASSERT_EQ(c.times.size(), 3U);
  EXPECT_NEAR(c.times[0].time_ns, 30.6, 1e-9);
  EXPECT_NEAR(c.times[0].high_ns, 33.66, 1e-9);
  EXPECT_EQ(c.times[0].origin, Origin::cached);
  EXPECT_EQ(c.times[2].why, "it raises");
}

TEST(Baseline, NothingIsCarriedOverWhenTheControlsDiffer) {
  CarriedOver c =
      carried_over(record(), {{.name = "stream", .program_id = "p1", .time_ns = 106},
                              {.name = "multiply", .program_id = "p2", .time_ns = 200}});
  EXPECT_TRUE(c.times.empty());
  EXPECT_EQ(c.why, "the control kernel 'stream' takes 6.0% longer than then");
  c = carried_over(record(), {{.name = "stream", .program_id = "p1", .time_ns = 100},
                              {.name = "multiply", .program_id = "other", .time_ns = 200}});
  EXPECT_EQ(c.why, "the control kernel 'multiply', which was timed then, is not timed now");
  BaselineRecord none = record();
  none.controls.clear();
  EXPECT_EQ(carried_over(none, {}).why, "no control kernel was timed with these baselines");
}

TEST(Baseline, ARecordHoldsItsFormThroughJson) {
  Json json = to_json(record());
  auto back = read_json<BaselineRecord>(json);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(to_json(*back), json);
  EXPECT_EQ(back->times[2].why, "it raises");
  EXPECT_FALSE(json["baselines"][0].contains("accuracy")) << "nothing is known of it";
  BaselineRecord judged = record();
  judged.times[0].accuracy = {.precision = "tf32 convolutions",
                              .coarser = true,
                              .share = 12.5,
                              .passes = false,
                              .why = "every element"};
  auto again = read_json<BaselineRecord>(to_json(judged));
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(to_json(*again), to_json(judged));
  EXPECT_EQ(again->times[0].accuracy.passes, false);
  Json bad = json;
  bad["schema"] = "cutegen.baselines.v9";
  EXPECT_FALSE(read_json<BaselineRecord>(bad));
  bad = json;
  bad["baselines"][0]["time_ns"] = 0;
  EXPECT_FALSE(read_json<BaselineRecord>(bad));
  bad = json;
  bad["baselines"][0]["origin"] = "guessed";
  EXPECT_FALSE(read_json<BaselineRecord>(bad));
  bad = json;
  bad["extra"] = 1;
  EXPECT_FALSE(read_json<BaselineRecord>(bad));
}

}  // namespace
}  // namespace cutegen
