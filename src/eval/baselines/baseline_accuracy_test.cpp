// SPDX-License-Identifier: Apache-2.0
// Judges baselines on secret sets with a driver without a GPU, whose comparison finds nothing
// wrong.
#include "eval/baselines/baseline_accuracy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/driver_process.h"
#include "eval/sets/gpu_judge.h"
#include "eval/testing/empty_judge.h"
#include "eval/testing/toy_task.h"
#include "eval/testing/toy_worker.h"

namespace cutegen::eval {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct AccuracyStage {
  AccuracyStage() {
    judge = std::move(*GpuJudge::open("cuda:0"));
    EXPECT_TRUE(judge->load(testing_world::kEmptyJudge));
    sets.gpu = judge.get();
    sets.families = {"made", "outliers"};
    sets.lock = false;
    sets.draw = [this](const Context&, const std::string& family) -> Result<GpuSetPtr> {
      drawn.push_back(family);
      if (family == refused) return unsupported_error("inputs and truth take 300 GB");
      auto set = std::make_shared<GpuSet>();
      set->family = family;
      CG_TRY(GpuBuffer x, judge->take("x", 64 * 32 * 4, true));
      CG_TRY(SharedBuffer shared, x.share(true));
      set->inputs.push_back(shared);
      set->memory.push_back(std::move(x));
      GpuExpected e;
      e.spec = {.name = "out", .dtype = DType::f32, .shape = {64, 32}};
      e.elements = 64 * 32;
      set->outputs.push_back(e);
      return GpuSetPtr(set);
    };
    worker.run = [this](const std::string& kind, const std::vector<torch::GpuTensor>& slots) {
      std::string names = kind;
      for (const torch::GpuTensor& s : slots) names += " " + s.tensor.name + ":" + s.tensor.part;
      ran.push_back(names);
      return kind == raises ? Result<void>(user_error("the baseline raises")) : Result<void>();
    };
  }
  std::vector<BaselineAccuracy> judged(const std::vector<torch::BaselineWanted>& wanted) {
    auto out = judge_baselines(Context(), sets, worker, toy.task, toy.task.official(), wanted);
    EXPECT_TRUE(out) << out.error().text();
    return out ? *out : std::vector<BaselineAccuracy>(wanted.size());
  }

  testing_world::ToyTask toy{[](double x) { return x; }};
  std::unique_ptr<GpuJudge> judge;
  BaselineSets sets;
  ToyWorker worker;
  std::string raises, refused;
  std::vector<std::string> drawn, ran;
};

TEST(BaselineAccuracy, EveryWayRunsOnASetOfEveryFamily) {
  device::cuda::with_driver("good", [] {
    AccuracyStage s;
    auto found = s.judged({{.kind = BaselineKind::eager}, {.kind = BaselineKind::compile}});
    EXPECT_THAT(s.drawn, ElementsAre("outliers", "made"))
        << "all baselines share a set, 'made' is last";
    EXPECT_THAT(s.ran, ElementsAre("eager x:value out:output", "compile x:value out:output",
                                   "eager x:value out:output", "compile x:value out:output"));
    for (const BaselineAccuracy& a : found) {
      EXPECT_EQ(a.passes, true);
      EXPECT_EQ(a.share, 0);
      EXPECT_EQ(a.why, "");
      EXPECT_EQ(a.precision, "fp32");
    }
  });
}

TEST(BaselineAccuracy, OneThatRaisesIsNotKnownAndTheOthersGoOn) {
  device::cuda::with_driver("good", [] {
    AccuracyStage s;
    s.raises = "eager";
    auto found = s.judged({{.kind = BaselineKind::eager}, {.kind = BaselineKind::compile}});
    EXPECT_FALSE(found[0].passes);
    EXPECT_EQ(found[0].why, "the baseline raises");
    EXPECT_EQ(found[1].passes, true);
    EXPECT_EQ(s.ran.size(), 3U) << "eager does not run again";
  });
}

TEST(BaselineAccuracy, ASetThatDoesNotFitLeavesItUnknown) {
  device::cuda::with_driver("good", [] {
    AccuracyStage s;
    s.refused = "made";
    auto found = s.judged({{.kind = BaselineKind::eager}});
    EXPECT_FALSE(found[0].passes) << "one family passed, another could not be judged";
    EXPECT_THAT(found[0].why, HasSubstr("300 GB"));
    s.refused = "outliers", s.drawn.clear();
    found = s.judged({{.kind = BaselineKind::eager}});
    EXPECT_FALSE(found[0].passes);
    EXPECT_THAT(s.drawn, ElementsAre("outliers"));
  });
}

TEST(BaselineAccuracy, TheEndOfTheContextIsAnError) {
  device::cuda::with_driver("good", [] {
    AccuracyStage s;
    std::stop_source stop;
    stop.request_stop();
    auto found = judge_baselines(Context(stop.get_token()), s.sets, s.worker, s.toy.task,
                                 s.toy.task.official(), {{.kind = BaselineKind::eager}});
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().kind, ErrorKind::cancelled);
  });
}

}  // namespace
}  // namespace cutegen::eval
