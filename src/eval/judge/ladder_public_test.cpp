// SPDX-License-Identifier: Apache-2.0
// Feedback shows values of inputs from a published seed, and never of a secret set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eval/diagnosis/public_example.h"
#include "eval/testing/ladder_world.h"

namespace cutegen::eval {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing_world::kTwice;
using testing_world::twice;
using testing_world::World;

// Records every set that it draws, with its seed.
struct Watched : World {
  struct Drawn {
    uint64_t seed = 0;
    std::string family;
    std::vector<double> x;
  };
  std::vector<Drawn> drawn;
  bool secrets_hold_seven = false;  // x[0] is 7 in every secret set

  explicit Watched(std::function<double(double)> truth) : World(std::move(truth)) {
    toy.task.graph.placeholders = {{.name = "x", .shape = {64, 32}}};
    toy.task.graph.nodes = {{.id = "y",
                             .op = "aten.mul.Scalar",
                             .args = {{{"ref", "x"}}, 2},
                             .outputs = {{.name = "y", .shape = {64, 32}}}}};
    toy.task.graph.outputs = {"y"};
    auto source = toy.source();
    pool.emplace(
        toy.task,
        [this, source](const Context& ctx, const ShapeCase& shape, const std::string& family,
                       uint64_t seed) -> Result<torch::TensorSet> {
          CG_TRY(torch::TensorSet set, source(ctx, shape, family, seed));
          CG_TRY(Mapping m, Mapping::map(set.memory.get(), set.bytes, true));
          if (secrets_hold_seven && seed != kPublicSeed) {
            const size_t n = size_t{64} * 32;
            store_double(DType::f32, 7, m.data());
            store_double(DType::f32, 14, m.data() + n * 4);
            store_double(DType::f64, 14, m.data() + n * 8);
          }
          Drawn one{.seed = seed, .family = family};
          for (size_t i = 0; i < size_t{64} * 32; ++i)
            one.x.push_back(load_double(DType::f32, m.data() + i * 4));
          drawn.push_back(std::move(one));
          return set;
        });
    services.pool = lent(*pool);
  }
};

TEST(LadderPublic, WrongValuesAreShownOnInputsFromThePublishedSeed) {
  Watched w(twice);
  const Verdict v = w.judge(World::kernel("mul.f32 %f2, %f1, 0f40400000;"));  // 3 x
  ASSERT_EQ(v.status, Status::failed);
  ASSERT_EQ(w.drawn.size(), 2U);
  EXPECT_NE(w.drawn[0].seed, kPublicSeed);
  EXPECT_EQ(w.drawn[1].seed, kPublicSeed);
  EXPECT_EQ(w.drawn[1].family, "made");
  const double x = w.drawn[1].x[0];
  EXPECT_THAT(
      v.feedback.detail,
      HasSubstr(fmt::format("out[0, 0]: expected {:.9g}, got {:.9g}; from x[0, 0] = {:.9g}\n",
                            2 * x, round_to(DType::f32, 3 * x), x)));
  EXPECT_THAT(v.feedback.detail, HasSubstr("2048 of 2048 elements of out are wrong"));
}

// Neither a value nor a seed of a secret set is in any part of the verdict.
TEST(LadderPublic, NoValueAndNoSeedOfASecretSetIsTold) {
  Watched w([](double x) { return x > 0 ? 2 * x : 0; });
  const Verdict v = w.judge(World::kernel(kTwice));  // fails on the family `signed`
  ASSERT_EQ(v.status, Status::failed);
  const std::string told = dump_json(write_json(v)) + fmt::format("{}", fmt::join(w.progress, " "));
  int secret = 0;
  for (const Watched::Drawn& set : w.drawn) {
    if (set.seed == kPublicSeed) continue;
    ++secret;
    EXPECT_THAT(told, Not(HasSubstr(std::to_string(set.seed))));
    for (double x : set.x)
      for (double value : {x, 2 * x}) {
        const std::string digits = fmt::format("{:.7g}", std::abs(value));
        if (digits.size() > 7) {
          EXPECT_THAT(told, Not(HasSubstr(digits)));
        }
      }
  }
  EXPECT_EQ(secret, 2);
  EXPECT_THAT(told, ContainsRegex("expected 0, got -[0-9]"));
}

// Two programs with the same fault get the same text, although their secret sets differ.
TEST(LadderPublic, TheValuesDoNotDependOnTheSecretSet) {
  std::vector<std::string> told;
  for (int i = 0; i < 2; ++i) {
    Watched w(twice);
    const Verdict v = w.judge(World::kernel("mul.f32 %f2, %f1, 0f40400000;"));
    const size_t at = v.feedback.detail.find("On other inputs");
    ASSERT_NE(at, std::string::npos);
    told.push_back(v.feedback.detail.substr(at));
  }
  EXPECT_EQ(told[0], told[1]);
}

// No program is judged on the public set, and the next program gets it without another draw.
TEST(LadderPublic, ThePublicSetIsDrawnOnceAndJudgesNoProgram) {
  Watched w(twice);
  w.judge(World::kernel("mul.f32 %f2, %f1, 0f40400000;"));
  const Verdict v = w.judge(World::kernel("mul.f32 %f2, %f1, 0f40800000;"));
  EXPECT_EQ(v.sets_judged, 1);
  EXPECT_EQ(std::count_if(w.drawn.begin(), w.drawn.end(),
                          [](const auto& set) { return set.seed == kPublicSeed; }),
            1);
  for (const Watched::Drawn& set : w.drawn) EXPECT_EQ(set.family, "made");
  const Verdict right = w.judge(World::kernel(kTwice));
  EXPECT_EQ(right.status, Status::correct);
  EXPECT_THAT(right.feedback.detail, Not(HasSubstr("seed")));
}

TEST(LadderPublic, AProgramThatIsRightOnPublicInputsIsToldSo) {
  Watched w(twice);
  w.secrets_hold_seven = true;
  const Verdict v =
      w.judge(World::kernel("mul.f32 %f2, %f1, 0f40000000; setp.gt.f32 %p2, %f1, 0f40000000; "
                            "@%p2 add.f32 %f2, %f2, 0f3f800000;"));
  ASSERT_EQ(v.status, Status::failed);
  EXPECT_EQ(v.feedback.mismatches.at(0).wrong, 1);
  EXPECT_THAT(v.feedback.detail, HasSubstr("(from the published seed 20, not secret), the program "
                                           "is correct."));
  EXPECT_THAT(v.feedback.detail, Not(HasSubstr("expected")));
}

}  // namespace
}  // namespace cutegen::eval
