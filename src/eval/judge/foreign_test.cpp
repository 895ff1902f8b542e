// SPDX-License-Identifier: Apache-2.0
// Judges third-party solutions played by a toy process, and times them with a driver without a GPU.
#include "eval/judge/foreign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/weighted.h"
#include "device/device.h"
#include "device/testing/driver_process.h"
#include "eval/api/foreign_file.h"
#include "eval/judge/foreign_timing.h"
#include "eval/judge/time_shapes.h"
#include "eval/testing/empty_judge.h"
#include "eval/testing/lent.h"
#include "eval/testing/official_stage.h"
#include "eval/testing/toy_task.h"
#include "eval/testing/toy_worker.h"

namespace cutegen::eval {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using ReplyKind = torch::ForeignReply::Kind;

torch::ForeignReply foreign_reply(ReplyKind kind, std::string what = {}) {
  torch::ForeignReply out;
  out.kind = kind;
  out.what = std::move(what);
  return out;
}

// A solution that computes `f` of every element if memory is a file. Otherwise it replies as the
// test sets.
class ToyAnswer final : public torch::ForeignWorker {
 public:
  std::function<double(double)> f = [](double x) { return 2 * x; };
  std::map<std::string, torch::ForeignReply> at_shape;  // its reply at a shape
  std::map<std::string, double> factor_at;              // of its times at a shape
  torch::ForeignReply loading;
  double claimed_ns = 1e6, open_ns = 1.1e6, seen_ns = 1.3e6, control_ns = 2e5;
  int loads = 0, runs = 0, controls = 0, fails_at = -1;
  bool touches_input = false, control_has_input = false;

  Result<torch::ForeignReply> load(const Context&, const Task&,
                                   const torch::ForeignFile&) override {
    ++loads;
    return loading;
  }
  Result<torch::ForeignReply> make_model(const Context&, const Task&, const ShapeCase& shape,
                                         const torch::ForeignModel&) override {
    shape_ = shape.name;
    return foreign_reply(ReplyKind::done);
  }
  Result<torch::ForeignReply> run(const Context&, const torch::ForeignRun& run) override {
    if (auto at = at_shape.find(shape_); at != at_shape.end()) return at->second;
    for (const torch::GpuTensor& t : run.tensors.tensors)
      control_has_input = control_has_input || (run.control && t.tensor.part == "value");
    if (!run.tensors.blocks[0].host) return measured(run);
    const torch::TensorSlot &x = run.tensors.tensors[0].tensor, &y = run.tensors.tensors[1].tensor;
    EXPECT_EQ(x.name + " " + y.name, "x out");
    CG_TRY(Mapping m, Mapping::map(run.tensors.blocks[0].descriptor,
                                   std::max(x.offset + x.bytes, y.offset + y.bytes), true));
    for (size_t i = 0; i < y.bytes / 4; ++i)
      store_double(DType::f32, f(load_double(DType::f32, m.data() + x.offset + 4 * i)),
                   m.data() + y.offset + 4 * i);
    if (touches_input) m.data()[x.offset + 5] ^= std::byte{1};
    return foreign_reply(ReplyKind::done);
  }
  std::string version() const override { return "toy"; }
  sandbox::Grade grade() const override {
    return {.held = {{"seccomp", true}}, .label = Protection::full};
  }

 private:
  torch::ForeignReply measured(const torch::ForeignRun& run) {
    controls += run.control;
    if (!run.control && runs++ == fails_at)
      return foreign_reply(ReplyKind::raised, "forward() raises");
    torch::ForeignReply out;
    const double factor = factor_at.contains(shape_) ? factor_at.at(shape_) : 1;
    out.claimed_ns = factor * (run.sleep_ns > 0 ? claimed_ns : open_ns);
    out.seen = Nanoseconds(
        int64_t(run.control ? control_ns : control_ns + factor * (seen_ns - control_ns)));
    return out;
  }
  std::string shape_;
};

struct ForeignWorld {
  ForeignWorld() {
    ShapeCase official = toy.task.shapes[0];
    official.name = "official", official.kind = ShapeKind::official;
    toy.task.shapes.insert(toy.task.shapes.begin(), official);
    services.device = *device::device_facts("sim:h200");
    services.gpu = *find_gpu("h200");
    services.families = {"made", "signed", "heavy"};
    request.answer = {.name = "answer.py", .source = "text"};
  }

  Verdict judge() {
    TruthPool pool(toy.task, toy.source());
    services.pool = lent(pool);
    ForeignOpeners openers;
    openers.answer = [this]() -> Result<std::unique_ptr<torch::ForeignWorker>> {
      if (!answer) return world_error("no process");
      std::unique_ptr<ToyAnswer> out = std::move(answer);
      answer = std::move(next);
      return out;
    };
    auto verdict =
        judge_foreign(Context(), services, toy.task, request, openers, [](const std::string&) {});
    EXPECT_TRUE(verdict) << verdict.error().text();
    return verdict ? *verdict : Verdict{};
  }

  testing_world::ToyTask toy{[](double x) { return 2 * x; }};
  Services services;
  ForeignRequest request;
  std::unique_ptr<ToyAnswer> answer = std::make_unique<ToyAnswer>(), next;
};

RungResult result_of(const Verdict& v, Rung rung) {
  return v.rungs.at(size_t(rung)).result;
}

TEST(Foreign, IsJudgedOnEveryShapeAndFamilyAndLabelled) {
  ForeignWorld w;
  Verdict v = w.judge();
  EXPECT_EQ(v.status, Status::correct);
  EXPECT_EQ(v.sets_judged, 6);
  EXPECT_THAT(v.marks.at(0), HasSubstr("never certified"));
  EXPECT_EQ(v.sandbox.label, Protection::full);
  EXPECT_EQ(result_of(v, Rung::compile), RungResult::skipped);
  EXPECT_EQ(result_of(v, Rung::timing), RungResult::skipped);
  EXPECT_EQ(v.compat->wrong, 0);
  Json json = to_json(v);
  EXPECT_EQ(json["label"], "foreign");
  auto back = read_json<Verdict>(json);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(to_json(*back), json);
  json["program_id"] = "abc";  // the label does not match the id
  EXPECT_FALSE(read_json<Verdict>(json));
}

TEST(Foreign, AWrongOneFailsWithItsPattern) {
  ForeignWorld w;
  w.answer->f = [](double x) { return x > 0 ? 2 * x : 0; };
  Verdict v = w.judge();
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_THAT(v.feedback.headline, HasSubstr("elements wrong"));
  EXPECT_EQ(v.feedback.mismatches.at(0).shape, "official");
}

TEST(Foreign, AnInputThatIsChangedIsSeen) {
  ForeignWorld w;
  w.answer->touches_input = true;
  Verdict v = w.judge();
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_THAT(v.feedback.headline, HasSubstr("the input 'x' was changed, first at byte 5"));
}

TEST(Foreign, TheOfficialShapeDecides) {
  ForeignWorld w;
  w.answer->at_shape["small"] = foreign_reply(ReplyKind::raised, "forward() raises AssertionError");
  Verdict v = w.judge();
  EXPECT_EQ(v.status, Status::correct);
  EXPECT_EQ(v.sets_judged, 3);
  EXPECT_THAT(v.marks, testing::Contains(HasSubstr("covers fewer shapes")));
  EXPECT_THAT(v.skipped.at(0), HasSubstr("shape small: forward() raises"));

  ForeignWorld other;
  other.toy.task.shapes.front().least_bytes = Bytes{int64_t{1} << 40};  // too large without a GPU
  other.answer->at_shape["small"] =
      foreign_reply(ReplyKind::raised, "forward() raises AssertionError");
  EXPECT_EQ(other.judge().status, Status::failed);
}

TEST(Foreign, AShapeWithAWeightDecidesToo) {
  for (double weight : {0.0, 2.0}) {
    ForeignWorld w;
    ShapeCase wide = w.toy.task.shapes.front();
    wide.name = "user-wide", wide.kind = ShapeKind::user, wide.weight = weight;
    w.toy.task.shapes.push_back(wide);
    w.answer->at_shape["user-wide"] = foreign_reply(ReplyKind::raised, "forward() raises");
    EXPECT_EQ(w.judge().status, weight > 0 ? Status::failed : Status::correct);
  }
}

TEST(Foreign, WithoutItsOfficialShapeAMarkSaysSo) {
  ForeignWorld w;
  w.toy.task.shapes.front().least_bytes = Bytes{int64_t{1} << 40};
  Verdict v = w.judge();
  EXPECT_EQ(v.status, Status::correct);
  EXPECT_EQ(v.sets_judged, 3);
  EXPECT_THAT(v.marks, testing::Contains(HasSubstr("at the official shape were not compared")));
  EXPECT_EQ(v.feedback.headline,
            "correct on 3 sets, foreign; outputs of the official shape were not compared (without "
            "a GPU, it is too large)");
  EXPECT_EQ(v.official_not_compared, "without a GPU, it is too large");
  ForeignWorld none;
  none.toy.task.shapes.pop_back();
  none.toy.task.shapes.front().least_bytes = Bytes{int64_t{1} << 40};
  EXPECT_EQ(none.judge().status, Status::unsupported);
}

TEST(Foreign, EachWayToEndHasItsStatus) {
  const std::pair<ReplyKind, Status> cases[] = {{ReplyKind::raised, Status::failed},
                                                {ReplyKind::rule, Status::rejected},
                                                {ReplyKind::needs_gpu, Status::unsupported},
                                                {ReplyKind::died, Status::failed},
                                                {ReplyKind::hung, Status::failed}};
  for (const auto& [kind, status] : cases) {
    ForeignWorld loading, running;
    loading.answer->loading = foreign_reply(kind, "what it did");
    Verdict v = loading.judge();
    EXPECT_EQ(v.status, status);
    EXPECT_THAT(v.feedback.headline, HasSubstr("what it did"));
    EXPECT_EQ(result_of(v, Rung::correctness), RungResult::skipped);
    running.answer->at_shape["official"] = foreign_reply(kind, "what it did");
    v = running.judge();
    EXPECT_EQ(v.status, status);
    EXPECT_THAT(v.feedback.headline, HasSubstr("shape official"));
  }
  ForeignWorld none;
  none.answer.reset();
  EXPECT_EQ(none.judge().status, Status::aborted);
}

TEST(Foreign, AFaultOfTheGpuIsBelievedWhenItHappensTwice) {
  const auto fault =
      foreign_reply(ReplyKind::raised, "CUDA error: an illegal memory access was encountered");
  for (bool again : {false, true}) {
    ForeignWorld w;
    w.services.device_name = "cuda:0", w.services.device.name = "cuda:0",
    w.services.identity.uuid = "GPU-foreign";
    w.next = std::make_unique<ToyAnswer>();
    w.answer->at_shape["official"] = fault;
    if (again) w.next->at_shape["official"] = fault;
    Verdict v = w.judge();
    EXPECT_EQ(v.status, again ? Status::failed : Status::correct);
    EXPECT_THAT(v.marks, testing::Contains(HasSubstr("judged twice")));
  }
  ForeignWorld simulated;  // a simulator has no faults of other processes
  simulated.answer->at_shape["official"] = fault;
  EXPECT_THAT(simulated.judge().marks, testing::Not(testing::Contains(HasSubstr("twice"))));
}

TEST(Foreign, GoesAsFarAsItIsAsked) {
  ForeignWorld w;
  w.request.up_to = Rung::load;
  Verdict v = w.judge();
  EXPECT_EQ(v.status, Status::correct);
  EXPECT_EQ(v.sets_judged, 0);
  EXPECT_EQ(result_of(v, Rung::load), RungResult::passed);
  EXPECT_EQ(result_of(v, Rung::correctness), RungResult::skipped);
}

// The fake driver runs no kernel, so comparisons find nothing wrong, and times come from the toys.
struct ForeignStage : ForeignWorld {
  ForeignStage() {
    folder =
        std::filesystem::temp_directory_path() / ("cutegen_foreign_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    ::setenv("CUTEGEN_LOCKS", folder.c_str(), 1);
    services.device_name = "cuda:0", services.device.name = "cuda:0",
    services.identity.uuid = "GPU-foreign";
    judge_ = std::move(*GpuJudge::open("cuda:0"));
    EXPECT_TRUE(judge_->load(testing_world::kEmptyJudge));
  }
  ~ForeignStage() {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
  }

  Result<GpuSetPtr> fresh() {
    ++sets;
    auto set = std::make_shared<GpuSet>();
    CG_TRY(GpuBuffer x, judge_->take("x", 64 * 32 * 4, true));
    CG_TRY(SharedBuffer shared, x.share(true));
    set->inputs.push_back(shared);
    set->memory.push_back(std::move(x));
    GpuExpected e;
    e.spec = {.name = "out", .dtype = DType::f32, .shape = {64, 32}};
    e.elements = 64 * 32;
    set->outputs.push_back(e);
    return GpuSetPtr(set);
  }

  std::vector<double> controls(ToyAnswer& clean) {
    ForeignCalls calls(context, services, toy.task, clean, place(toy.task.official()));
    auto out = control_calls(context, services, calls);
    EXPECT_TRUE(out) << out.error().text();
    return out ? *out : std::vector<double>{};
  }

  ForeignPlace place(const ShapeCase& shape) {
    return {
        .gpu = *judge_, .shape = shape, .fresh = [this](const std::string&) { return fresh(); }};
  }

  TimingOutcome time() { return time_at(toy.task.official()); }
  TimingOutcome time_at(const ShapeCase& shape) {
    const ForeignControls controls{
        .before = std::vector<double>(9, control_ns), .again = [this] {
          ++controlled_again;
          return Result<std::vector<double>>(std::vector<double>(9, later_control_ns));
        }};
    ForeignCalls calls(context, services, toy.task, *answer, place(shape));
    auto out = time_foreign(
        context, services, toy.task, calls, controls,
        [this]() -> Result<torch::TorchWorker*> {
          worker.ways["eager"].samples = {eager_ns};
          worker.module_why = why;
          return &worker;
        },
        [](const std::string&) {});
    EXPECT_TRUE(out) << out.error().text();
    return out ? *out : TimingOutcome{};
  }

  std::filesystem::path folder;
  std::unique_ptr<GpuJudge> judge_;
  Context context;
  ToyWorker worker;
  double eager_ns = 2e6, control_ns = 2e5, later_control_ns = 2e5;
  int controlled_again = 0;
  std::string why;
  int sets = 0;
};

// Judges up to correctness. The pool keeps `kept` bytes of sets, or makes none and says why.
Verdict judge_large(ForeignStage& s, int64_t kept, const std::string& refuses = {}) {
  auto judge = std::move(*GpuJudge::open("cuda:0"));
  EXPECT_TRUE(judge->load(testing_world::kEmptyJudge));
  GpuJudge& gpu = *judge;
  GpuTruths truths(
      std::move(judge),
      [&](const Context&, const Task& task, const ShapeCase& shape, const std::string& family,
          uint64_t) -> Result<GpuSetPtr> {
        if (!refuses.empty()) return unsupported_error(refuses);
        return testing_world::OfficialStage::make_set(gpu, task, shape, family);
      },
      kept);
  s.services.official = lent(truths);
  s.request.up_to = Rung::correctness;
  if (!s.answer) s.answer = std::make_unique<ToyAnswer>();
  return s.judge();
}

TEST(Foreign, OnAGpuEveryLargeTimedShapeIsJudged) {
  device::cuda::with_driver("good", [] {
    ForeignStage s;
    s.toy.task.shapes.front().least_bytes = Bytes{int64_t{1} << 40};
    ShapeCase wide = s.toy.task.shapes.front();
    wide.name = "wide", wide.kind = ShapeKind::user, wide.weight = 2;
    s.toy.task.shapes.push_back(wide);
    constexpr int64_t kPlenty = int64_t{1} << 40;
    Verdict v = judge_large(s, kPlenty);
    EXPECT_EQ(v.feedback.headline, "correct on 9 sets, foreign");
    EXPECT_THAT(v.marks, testing::SizeIs(1)) << "never certified";
    v = judge_large(s, 1);  // the pool can keep no set, but all families are judged
    EXPECT_EQ(v.feedback.headline, "correct on 9 sets, foreign");
    v = judge_large(s, kPlenty, "it needs 300 GB");
    EXPECT_EQ(v.status, Status::correct);
    EXPECT_THAT(v.feedback.headline,
                testing::StartsWith("correct on 3 sets, foreign; outputs of the official shape and "
                                    "the shape 'wide' were not compared ("));
    EXPECT_THAT(v.weighted_not_compared, ElementsAre(testing::Pair("wide", HasSubstr("300 GB"))));
    s.answer = std::make_unique<ToyAnswer>();
    s.answer->at_shape["wide"] = foreign_reply(ReplyKind::raised, "forward() raises");
    EXPECT_EQ(judge_large(s, kPlenty).status, Status::failed);
  });
}

TEST(ForeignTiming, TakesTurnsWithEagerOnSetsThatNobodyMet) {
  device::cuda::with_driver("good", [] {
    ForeignStage s;
    TimingOutcome out = s.time();
    ASSERT_TRUE(out.timing) << out.end.headline;
    EXPECT_TRUE(out.end.passed);
    EXPECT_EQ(out.timing->origin, Origin::measured);
    EXPECT_DOUBLE_EQ(out.timing->time_ns, 1e6);
    ASSERT_EQ(out.timing->paired.size(), 1U);
    EXPECT_EQ(out.timing->paired[0].against, "eager");
    EXPECT_NEAR(out.timing->paired[0].speedup, 2, 1e-9);
    EXPECT_EQ(out.timing->paired[0].stopped, "precise");
    EXPECT_TRUE(out.timing->clock->agrees);
    EXPECT_EQ(out.timing->samples, 6);
    EXPECT_EQ(s.sets, 9);  // every third call is open
    EXPECT_EQ(s.answer->controls, 0) << "the solution's process runs no control call";
    EXPECT_EQ(s.controlled_again, 0);
  });
}

TEST(ForeignTiming, ControlCallsAreMadeInAProcessOfTheirOwnWithoutInputs) {
  device::cuda::with_driver("good", [] {
    ForeignStage s;
    ToyAnswer clean;
    EXPECT_THAT(s.controls(clean), testing::AllOf(testing::SizeIs(9), testing::Each(2e5)));
    EXPECT_EQ(clean.controls, 10) << "the first call is a warm-up";
    EXPECT_FALSE(clean.control_has_input);
    EXPECT_EQ(clean.runs, 0);
    clean.at_shape["official"] = foreign_reply(ReplyKind::raised, "no memory");
    ForeignCalls calls(s.context, s.services, s.toy.task, clean, s.place(s.toy.task.official()));
    auto failed = control_calls(s.context, s.services, calls);
    ASSERT_FALSE(failed);
    EXPECT_THAT(failed.error().message, HasSubstr("the control calls fail: no memory"));
  });
}

// When the solution ran its own control calls, it could slow them to gain any time it wanted.
TEST(ForeignTiming, AnAnswerThatSleepsInControlCallsGainsNothing) {
  device::cuda::with_driver("good", [] {
    ForeignStage s;
    s.answer->control_ns = 50e6;  // would hide 50 ms of every call
    s.answer->claimed_ns = s.answer->open_ns = 5e3, s.answer->seen_ns = 20e6;
    TimingOutcome out = s.time();
    EXPECT_EQ(out.end.status, Status::rejected) << out.end.detail;
    EXPECT_EQ(s.answer->controls, 0);
    EXPECT_EQ(s.controlled_again, 1) << "the machine may have been to blame";
  });
}

TEST(ForeignTiming, AMachineThatBecameSlowerIsNoLie) {
  device::cuda::with_driver("good", [] {
    ForeignStage s;
    s.answer->seen_ns = 4e6, s.later_control_ns = 2.9e6;
    TimingOutcome out = s.time();
    EXPECT_TRUE(out.end.passed) << out.end.headline;
    EXPECT_EQ(s.controlled_again, 1);
    EXPECT_TRUE(out.timing->clock->agrees);
  });
}

TEST(ForeignTiming, ItsTimeIsTheMeanOverTheShapesWithAWeight) {
  device::cuda::with_driver("good", [] {
    ForeignStage s;
    ShapeCase wide = s.toy.task.shapes.front();
    wide.name = "user-wide", wide.kind = ShapeKind::user, wide.weight = 2;
    s.toy.task.shapes.push_back(wide);
    s.answer->factor_at["user-wide"] = 8;
    auto timed = time_cases(timed_shapes(s.toy.task), [&](const ShapeCase& shape) {
      return Result<TimingOutcome>(s.time_at(shape));
    });
    ASSERT_TRUE(timed && timed->outcome.timing);
    const Timing& t = *timed->outcome.timing;
    EXPECT_NEAR(t.time_ns, 4e6, 1);  // 1e6^(1/3) * 8e6^(2/3)
    ASSERT_EQ(t.shapes.size(), 2U);
    EXPECT_EQ(t.shapes[0].shape, "official");
    EXPECT_DOUBLE_EQ(t.shapes[1].time_ns, 8e6);
    ASSERT_EQ(t.paired.size(), 1U);
    EXPECT_NEAR(t.paired[0].speedup, 0.5, 1e-9);
    EXPECT_THAT(timed->outcome.end.detail, HasSubstr("weighted geometric mean of 2 shapes"));
  });
}

TEST(ForeignTiming, TheControlFileHasOutputsOfTheShape) {
  ForeignWorld w;
  const torch::ForeignFile file = control_file(w.toy.task, w.toy.task.official());
  EXPECT_THAT(file.source, HasSubstr("OUTPUTS = [([64, 32], \"f32\"), ]"));
  EXPECT_THAT(file.source, HasSubstr("class ModelNew(torch.nn.Module):"));
}

TEST(ForeignTiming, AClockThatLiesIsRejected) {
  device::cuda::with_driver("good", [] {
    ForeignStage s;
    s.answer->claimed_ns = s.answer->open_ns = 5e3, s.answer->seen_ns = 3e6;
    TimingOutcome out = s.time();
    EXPECT_FALSE(out.end.passed);
    EXPECT_EQ(out.end.status, Status::rejected);
    EXPECT_THAT(out.end.headline, HasSubstr("the evaluator's clock shows"));
  });
}

TEST(ForeignTiming, WorkThatDoesNotWaitIsCountedByTheOpenCalls) {
  device::cuda::with_driver("good", [] {
    ForeignStage s;
    s.answer->claimed_ns = 5e3, s.answer->open_ns = 3e6, s.answer->seen_ns = 3.3e6;
    s.eager_ns = 6e6;
    TimingOutcome out = s.time();
    ASSERT_TRUE(out.end.passed) << out.end.headline;
    EXPECT_DOUBLE_EQ(out.timing->time_ns, 3e6);
    EXPECT_NEAR(out.timing->paired.at(0).speedup, 2, 1e-9);
    EXPECT_THAT(out.marks, ElementsAre(HasSubstr("the time includes the host's share")));
  });
}

TEST(ForeignTiming, NothingIsFasterThanTheFloor) {
  device::cuda::with_driver("good", [] {
    ForeignStage s;
    s.toy.task.shapes.front().least_bytes = Bytes{int64_t{100} << 30};
    TimingOutcome out = s.time();
    EXPECT_EQ(out.end.status, Status::rejected);
    EXPECT_THAT(out.end.headline, HasSubstr("omits work"));
  });
}

TEST(ForeignTiming, ACallThatFailsEndsItAndAMissingBaselineDoesNot) {
  device::cuda::with_driver("good", [] {
    ForeignStage s;
    s.answer->fails_at = 3;
    TimingOutcome out = s.time();
    EXPECT_EQ(out.end.status, Status::failed);
    EXPECT_FALSE(out.timing);

    ForeignStage alone;
    alone.why = "it needs more memory";
    out = alone.time();
    ASSERT_TRUE(out.timing);
    EXPECT_TRUE(out.timing->paired.empty());
    EXPECT_THAT(out.marks, ElementsAre(HasSubstr("it needs more memory")));
  });
}

TEST(ForeignTiming, TheClocksMayDifferByALittle) {
  ForeignTimes t;
  t.queued.own = {1e6, 1e6, 1e6}, t.open.own = {1.2e6, 1.2e6};
  t.seen = {1.25e6, 1.25e6, 9e6}, t.control = {1e4, 1e4, 1e4};
  EXPECT_TRUE(check_foreign_clock(t, t.queued).agrees);  // one disturbed call does not count
  t.seen = {1.4e6, 1.4e6, 1.4e6};
  EXPECT_FALSE(check_foreign_clock(t, t.queued).agrees);
  EXPECT_TRUE(check_foreign_clock(t, t.open).agrees);
  t.queued.own = {1e7, 1e7, 1e7}, t.seen = {1.1e7, 1.1e7, 1.1e7};
  EXPECT_TRUE(check_foreign_clock(t, t.queued).agrees);
}

TEST(ForeignFile, IsAFileOrTheOneInAFolder) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("cutegen_answers_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  auto none = find_foreign(folder);
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  ASSERT_TRUE(write_file(folder / "task.py", "task"));
  ASSERT_TRUE(write_file(folder / "answer.py", "text"));
  auto found = find_foreign(folder);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->name + (*found)->source, "answer.pytext");
  EXPECT_EQ(foreign_id(**found), foreign_id({"other.py", "text"}));
  ASSERT_TRUE(write_file(folder / "plan.json", "{}"));
  EXPECT_FALSE(*find_foreign(folder));
  EXPECT_TRUE(find_foreign(folder / "answer.py"));
  EXPECT_FALSE(find_foreign(folder / "missing.py"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace cutegen::eval
