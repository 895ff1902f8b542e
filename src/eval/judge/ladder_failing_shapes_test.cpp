// SPDX-License-Identifier: Apache-2.0
// Tasks whose module raises an exception at some test shapes, which no program can cause.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eval/sets/admission.h"
#include "eval/sets/failing_shapes.h"
#include "eval/testing/ladder_world.h"

namespace cutegen::eval {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_world::kTwice;
using testing_world::report_of;
using testing_world::twice;
using testing_world::World;

const char* const kRaised = "forward() raises IndexError: Target 1032 is out of bounds.";

// The shape `small` works. The input sets of `odd1` fail with `error` if the family matches.
struct FailingWorld : World {
  Error error{.kind = ErrorKind::user, .message = kRaised, .where = "m.py:7"};
  std::string family = "signed";
  int failures_left = 1000, failed = 0;

  FailingWorld() : World(twice) {
    ShapeCase odd = toy.task.shapes[0];
    odd.name = "odd1";
    odd.kind = ShapeKind::odd;
    toy.task.shapes.push_back(odd);
  }

  SetSource source() {
    return [this, works = toy.source()](const Context& ctx, const ShapeCase& shape,
                                        const std::string& wanted,
                                        uint64_t seed) -> Result<torch::TensorSet> {
      if (shape.name != "odd1" || wanted != family || failures_left == 0)
        return works(ctx, shape, wanted, seed);
      --failures_left, ++failed;
      return fail(error);
    };
  }

  Verdict judged(const std::string& body = kTwice) {
    if (!pool) pool.emplace(toy.task, source());
    services.pool = lent(*pool);
    return judge(World::kernel(body));
  }
};

TEST(LadderFailingShapes, TheVerdictNamesTheShapeAndTheError) {
  FailingWorld w;
  const Verdict v = w.judged();
  EXPECT_EQ(v.status, Status::correct) << v.feedback.headline;
  EXPECT_THAT(v.skipped, Contains("shape odd1: omitted, because the module fails on inputs of the "
                                  "family 'signed': " +
                                  std::string(kRaised)));
  EXPECT_EQ(w.failed, 2) << "another seed is tried before the shape is omitted";
  EXPECT_EQ(v.sets_judged, 4) << "all families of `small`, and `made` of `odd1`";
  EXPECT_THAT(report_of(v, Rung::correctness).detail, HasSubstr("4 sets on 1 shape"));
}

TEST(LadderFailingShapes, AWrongProgramStillFails) {
  FailingWorld w;
  EXPECT_EQ(w.judged("mov.f32 %f2, %f1;").status, Status::failed);
}

TEST(LadderFailingShapes, AnotherSeedMaySuffice) {
  FailingWorld w;
  w.failures_left = 1;
  const Verdict v = w.judged();
  EXPECT_EQ(v.status, Status::correct) << v.feedback.headline;
  EXPECT_THAT(v.skipped, testing::Not(Contains(HasSubstr("odd1"))));
  EXPECT_EQ(v.sets_judged, 6);
}

TEST(LadderFailingShapes, TheLastTestShapeIsNotOmitted) {
  FailingWorld w;
  w.toy.task.shapes.erase(w.toy.task.shapes.begin());
  const Verdict v = w.judged();
  EXPECT_EQ(v.status, Status::aborted);
  EXPECT_THAT(v.feedback.headline, HasSubstr("Target 1032"));
}

TEST(LadderFailingShapes, NorIsATimedShape) {
  for (const ShapeKind kind : {ShapeKind::official, ShapeKind::user}) {
    FailingWorld w;
    w.toy.task.shapes.back().kind = kind;
    w.toy.task.shapes.back().weight = 1;
    EXPECT_EQ(w.judged().status, Status::aborted);
  }
}

// A program that takes the memory or the processors of the machine may cause these errors.
TEST(LadderFailingShapes, OnlyExceptionsOfTheModuleCount) {
  for (const Error& error :
       {Error{.kind = ErrorKind::user, .message = "the task file ends the worker process"},
        Error{.kind = ErrorKind::user, .message = "the task file does not finish"},
        Error{.kind = ErrorKind::user,
              .message = "forward() raises RuntimeError: [enforce fail at alloc_cpu.cpp:127] . "
                         "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8"},
        Error{.kind = ErrorKind::world, .message = "forward() raises RuntimeError: no worker"}}) {
    EXPECT_FALSE(raised_by_module(error)) << error.message;
    FailingWorld w;
    w.error = error;
    EXPECT_EQ(w.judged().status, Status::aborted) << error.message;
  }
}

TEST(LadderFailingShapes, AdmissionRemovesTheShapeFromTheTask) {
  FailingWorld w;
  TruthPool pool(w.toy.task, w.source());
  auto admission = admission_of(Context(), w.toy.task, pool);
  ASSERT_TRUE(admission) << admission.error().text();
  ASSERT_EQ(w.toy.task.shapes.size(), 1u);
  EXPECT_EQ(w.toy.task.shapes[0].name, "small");
  EXPECT_THAT(w.toy.task.notes, ElementsAre(HasSubstr("shape odd1: omitted, because the module")));
}

TEST(LadderFailingShapes, AdmissionKeepsTheLastAndTheOfficialShape) {
  FailingWorld w;
  w.toy.task.shapes.erase(w.toy.task.shapes.begin());
  TruthPool pool(w.toy.task, w.source());
  EXPECT_FALSE(admission_of(Context(), w.toy.task, pool));
  EXPECT_THAT(w.toy.task.notes, IsEmpty());
  FailingWorld other;
  other.toy.task.shapes.back().kind = ShapeKind::official;
  TruthPool others(other.toy.task, other.source());
  EXPECT_FALSE(admission_of(Context(), other.toy.task, others));
  EXPECT_EQ(other.toy.task.shapes.size(), 2u);
}

}  // namespace
}  // namespace cutegen::eval
