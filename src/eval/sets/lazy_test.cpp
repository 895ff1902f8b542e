// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/lazy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eval/testing/toy_task.h"

namespace cutegen::eval {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing_world::ToyTask;

Admission admission_of(ToyTask toy, const std::vector<std::string>& families) {
  TruthPool pool(toy.task, toy.source());
  std::vector<SetPtr> sets, replayed;
  for (const std::string& f : families)
    sets.push_back(*pool.make(Context(), toy.task.shapes[0], f));
  replayed.push_back(*pool.make(Context(), toy.task.shapes[0], "made"));
  return admit(toy.task, sets, replayed);
}

const std::vector<std::string> kAll{"made", "signed", "heavy"};

TEST(Lazy, TanhIsAdmittedAndNothingPasses) {
  Admission a = admission_of(ToyTask([](double x) { return std::tanh(x); }), kAll);
  EXPECT_TRUE(a.admitted) << a.remark;
  // Only this solution passes, because the official inputs and their results are positive.
  EXPECT_THAT(a.passing, testing::ElementsAre("results without signs passes on 'made'"));
  EXPECT_GE(a.lazy_answers_tried, 12);
  EXPECT_EQ(a.families, kAll);
}

TEST(Lazy, ReluOnOfficialInputsIsACopyAndOthersCatchIt) {
  ToyTask relu([](double x) { return x > 0 ? x : 0; });
  Admission a = admission_of(relu, kAll);
  EXPECT_TRUE(a.admitted) << a.remark;
  EXPECT_THAT(a.passing, Contains("a copy of x passes on 'made'"));
  Admission alone = admission_of(relu, {"made"});
  EXPECT_FALSE(alone.admitted);
  EXPECT_THAT(alone.remark, HasSubstr("a copy of x"));
}

TEST(Lazy, AMutatedTensorThatIsLeftAsItWasIsTriedApart) {
  ToyTask square([](double x) { return x * x; });
  square.mutate([](double x) { return x > 0.5 ? x + 1 : x; });
  Admission a = admission_of(square, kAll);
  EXPECT_TRUE(a.admitted) << a.remark;
  EXPECT_EQ(a.passing, admission_of(ToyTask([](double x) { return x * x; }), kAll).passing);
  square.mutate([](double x) { return x * (1 + 1e-9); });  // an unchanged x is correct
  a = admission_of(square, kAll);
  EXPECT_TRUE(a.admitted) << "an unchanged tensor is no degenerate solution: " << a.remark;
  // Some elements grow and some shrink: a change in one direction would be a bias.
  square.mutate(
      [](double x) { return x * (std::fmod(std::abs(x) * 1000, 2) < 1 ? 1 + 2e-7 : 1 - 2e-7); });
  a = admission_of(square, kAll);
  EXPECT_FALSE(a.admitted);
  EXPECT_THAT(a.remark, HasSubstr("'x' left as it was"));
  EXPECT_TRUE(a.precision_tells);
}

TEST(Lazy, ATaskWithoutOutputsIsJudgedByWhatItMutates) {
  ToyTask relu([](double) { return 0.0; });
  relu.mutate([](double x) { return x > 0 ? x : 0; });
  relu.task.tensors.pop_back();
  Admission a = admission_of(relu, kAll);
  EXPECT_TRUE(a.admitted) << a.remark;
  EXPECT_THAT(a.passing, Contains("'x' left as it was passes on 'made'"));
  EXPECT_THAT(a.passing, Not(Contains(HasSubstr("zeros"))));
}

TEST(Lazy, ConstantTaskIsNotAdmitted) {
  Admission zero = admission_of(ToyTask([](double) { return 0.0; }), kAll);
  EXPECT_FALSE(zero.admitted);
  EXPECT_THAT(zero.remark, HasSubstr("zeros"));
  Admission constant = admission_of(ToyTask([](double) { return 3.25; }), kAll);
  EXPECT_FALSE(constant.admitted);
  EXPECT_THAT(constant.remark, HasSubstr("the first answer replayed"));
}

TEST(Lazy, AConstantTaskNeedNotBeReadAndALinearOneOnlyItsInput) {
  auto least_bytes = [](double (*f)(double)) {
    ToyTask toy(f);
    Task task = toy.task;
    task.tensors.push_back(
        {.name = "w", .role = TensorRole::parameter, .dtype = DType::f32, .shape = {4096}});
    for (ShapeCase& s : task.shapes) {
      s.tensors["w"] = {4096};
      s.least_bytes = Bytes{1 << 20};
    }
    count_reads(task, admission_of(toy, kAll));
    return task.official().least_bytes.value;
  };
  const ShapeCase s = ToyTask([](double x) { return x; }).task.official();
  const int64_t out = 4 * *element_count(s.tensors.at("out"));
  EXPECT_EQ(least_bytes([](double) { return 0.0; }), out);
  EXPECT_EQ(least_bytes([](double) { return 3.25; }), out);
  EXPECT_EQ(least_bytes([](double x) { return 2 * x + 1; }),
            out + 4 * *element_count(s.tensors.at("x")));
  EXPECT_EQ(least_bytes([](double x) { return std::tanh(x); }), 1 << 20)
      << "an admitted task keeps its bytes";
  ToyTask zero([](double) { return 0.0; });
  EXPECT_THAT(admission_of(zero, kAll).remark, HasSubstr("the floor counts only what they read"));
}

TEST(Lazy, LinearTaskIsNamed) {
  Admission a = admission_of(ToyTask([](double x) { return 2 * x + 1; }), kAll);
  EXPECT_FALSE(a.admitted);
  EXPECT_THAT(a.remark, HasSubstr("a linear map of x"));
}

TEST(Lazy, ExactTasksAreNotBlamedForLowPrecision) {
  Admission a = admission_of(ToyTask([](double x) { return x > 0 ? 1.0 : -1.0; }), kAll);
  EXPECT_TRUE(a.admitted) << a.remark;
  EXPECT_THAT(a.passing, Not(Contains(HasSubstr("precision"))));
}

TEST(Lazy, WhatIsZeroByItselfMayBeLeftOut) {
  Admission a = admission_of(ToyTask([](double) { return 0.0; }), kAll);
  EXPECT_THAT(a.passing, Contains(HasSubstr("zeros passes")));
  EXPECT_THAT(a.passing, Not(Contains(HasSubstr("the last row"))));
  EXPECT_THAT(a.passing, Not(Contains(HasSubstr("the first 99%"))));
}

TEST(TruthPool, NeverTheSameSetTwiceForOneProgram) {
  ToyTask toy([](double x) { return x; });
  TruthPool pool(toy.task, toy.source());
  std::set<const InputSet*> seen;
  std::vector<SetPtr> alive;  // keeps sets alive, so that their addresses differ
  for (int i = 0; i < 10; ++i) {
    alive.push_back(*pool.draw(Context(), toy.task.shapes[0], "made", "p1"));
    EXPECT_TRUE(seen.insert(alive.back().get()).second) << i;
  }
}

TEST(TruthPool, ThePublicSetIsAlwaysTheSameAndNeverDrawn) {
  ToyTask toy([](double x) { return 2 * x; });
  TruthPool pool(toy.task, toy.source()), other(toy.task, toy.source());
  const ShapeCase& shape = toy.task.shapes[0];
  auto values = [](const SetPtr& set) {
    auto bytes = set->bytes_of(set->inputs[0]);
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  auto shown = pool.draw_public(Context(), shape, "made");
  ASSERT_TRUE(shown);
  EXPECT_EQ(*pool.draw_public(Context(), shape, "made"), *shown);
  EXPECT_EQ(values(*other.draw_public(Context(), shape, "made")), values(*shown));
  EXPECT_NE(values(*pool.draw_public(Context(), shape, "signed")), values(*shown));
  for (int i = 0; i < 20; ++i) {
    auto set = pool.draw(Context(), shape, "made", "program " + std::to_string(i));
    ASSERT_TRUE(set);
    EXPECT_NE(values(*set), values(*shown));
  }
  for (const char* family : {"a", "b", "c", "d", "e"})
    EXPECT_TRUE(pool.draw_public(Context(), shape, family));
  EXPECT_EQ(values(*pool.draw_public(Context(), shape, "made")), values(*shown));
}

TEST(TruthPool, SetsAreSharedBetweenProgramsAndRetired) {
  ToyTask toy([](double x) { return x; });
  TruthPool pool(toy.task, toy.source());
  std::map<const InputSet*, int> uses;
  std::vector<SetPtr> alive;
  for (int i = 0; i < 40; ++i) {
    alive.push_back(*pool.draw(Context(), toy.task.shapes[0], "signed", "p" + std::to_string(i)));
    ++uses[alive.back().get()];
  }
  EXPECT_LT(toy.made, 40);
  for (const auto& [set, n] : uses) EXPECT_LE(n, TruthPool::kMostUses);
}

TEST(TruthPool, KeepsFewerSetsOfLargeTensors) {
  ToyTask toy([](double x) { return x; });
  const ShapeCase& shape = toy.task.shapes[0];
  TruthPool measure(toy.task, toy.source());
  const size_t one = (*measure.draw(Context(), shape, "made", "a"))->memory.size();
  TruthPool pool(toy.task, toy.source(), 2 * one);
  std::vector<std::weak_ptr<const InputSet>> drawn;
  for (const char* family : {"made", "signed", "heavy", "made", "heavy"}) {
    auto set = pool.draw(Context(), shape, family, "program " + std::to_string(drawn.size()));
    ASSERT_TRUE(set);
    drawn.push_back(*set);
  }
  const auto kept = std::ranges::count_if(drawn, [](const auto& set) { return !set.expired(); });
  EXPECT_EQ(kept, 2);
  EXPECT_FALSE(drawn.back().expired());
  // More than half of the memory is in use, so the pool computes no sets in advance.
  pool.refill_in_background({{shape, "outliers"}});
  pool.wait_until_idle();
  TruthPool tight(toy.task, toy.source(), one - 1);
  EXPECT_TRUE(tight.draw(Context(), shape, "made", "a"));
  EXPECT_TRUE(tight.draw(Context(), shape, "made", "b"));
}

// Lets the pool work until it has computed `sets` sets or a limit has passed, then long enough to
// show that it computes no more.
void restock(TruthPool& pool, const ToyTask& toy, int sets) {
  for (int wait = 0, calm = 0; wait < 500 && calm < 10; ++wait) {
    pool.resume();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    pool.pause();
    pool.wait_until_idle();
    if (toy.made >= sets) ++calm;
  }
}

TEST(TruthPool, StocksOneSetOfEachUntilAProgramHasDrawn) {
  ToyTask toy([](double x) { return x; });
  TruthPool pool(toy.task, toy.source());
  const std::vector<std::pair<ShapeCase, std::string>> wanted{{toy.task.shapes[0], "made"},
                                                              {toy.task.shapes[0], "heavy"}};
  pool.refill_in_background(wanted);
  restock(pool, toy, 2);
  EXPECT_EQ(toy.made, 2);
  for (const char* program : {TruthPool::kAdmission, "p"}) {
    for (const char* family : {"made", "heavy"})
      (void)pool.draw(Context(), toy.task.shapes[0], family, program);
    pool.refill_in_background(wanted);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    pool.wait_until_idle();
    EXPECT_EQ(toy.made, 2) << "each has one";
    if (program == TruthPool::kAdmission) restock(pool, toy, 2);
  }
  EXPECT_EQ(toy.made, 2) << "degenerate solutions are no program";
  restock(pool, toy, 4);
  EXPECT_EQ(toy.made, 4);
  (void)pool.draw(Context(), toy.task.shapes[0], "made", "p");
  EXPECT_EQ(toy.made, 4);
}

TEST(TruthPool, AFailingSourceIsReportedOnDraw) {
  ToyTask toy([](double x) { return x; });
  TruthPool pool(toy.task,
                 [](const Context&, const ShapeCase&, const std::string&,
                    uint64_t) -> Result<torch::TensorSet> { return world_error("no worker"); });
  pool.refill_in_background({{toy.task.shapes[0], "made"}});
  auto set = pool.draw(Context(), toy.task.shapes[0], "made", "p");
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().message, "no worker");
}

TEST(InputSet, HostileSetsAreRefused) {
  ToyTask toy([](double x) { return x; });
  auto with = [&](auto change) {
    auto set = *toy.source()(Context(), toy.task.shapes[0], "made", 1);
    change(set);
    return make_input_set(toy.task, toy.task.shapes[0], std::move(set)).has_value();
  };
  EXPECT_TRUE(with([](torch::TensorSet&) {}));
  EXPECT_FALSE(with([](torch::TensorSet& s) { s.slots[0].offset = s.bytes - 8; }));
  EXPECT_FALSE(with([](torch::TensorSet& s) { s.slots[1].shape = {32, 64}; }));
  EXPECT_FALSE(with([](torch::TensorSet& s) { s.slots[0].name = "y"; }));
  EXPECT_FALSE(with([](torch::TensorSet& s) { s.bytes *= 2; }));
  EXPECT_FALSE(with([](torch::TensorSet& s) { s.slots[2].shape = {3}; }));
  EXPECT_FALSE(with([](torch::TensorSet& s) { s.slots.erase(s.slots.begin() + 1); }));
}

}  // namespace
}  // namespace cutegen::eval
