// SPDX-License-Identifier: Apache-2.0
#include "eval/diagnosis/feedback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tensor/half.h"

namespace cutegen::eval {
namespace {

using testing::HasSubstr;
using testing::Not;

Mismatch example() {
  Mismatch m;
  m.shape = "odd1", m.family = "signed", m.output = "out";
  m.elements = 1024, m.wrong = 36;
  m.first = {{0, 96}, {1, 97}};
  m.pattern = "columns from 96 on";
  return m;
}

TEST(Feedback, OneLineSaysHowManyAndWhere) {
  EXPECT_EQ(
      text_of(example()),
      "out: 36 of 1024 elements wrong (3.52%) on shape odd1, inputs 'signed': columns from 96 "
      "on");
}

TEST(Feedback, DetailsNameOnlyWhatThereIs) {
  Mismatch m = example();
  EXPECT_EQ(details_of(m), text_of(m) + "\nfirst wrong at [0, 96] [1, 97]");
  m.nan = 3, m.unwritten = 2, m.worst_ratio = 12.5;
  EXPECT_EQ(details_of(m), text_of(m) +
                               "\nfirst wrong at [0, 96] [1, 97]\nNaN: 3 of the wrong elements"
                               "\nnever written: 2 of the wrong elements"
                               "\nthe worst error is 12.5 times the accepted one");
}

TEST(Feedback, AMismatchCarriesTheCountsOfItsJudgement) {
  Judgement j{.elements = 64, .wrong = 9, .nan = 3, .unwritten = 2, .worst_ratio = 4.5};
  j.is_wrong.assign(64, 0);
  std::fill_n(j.is_wrong.begin(), 9, uint8_t{1});
  Mismatch m =
      describe_mismatch(j, {.name = "out", .dtype = DType::f32, .shape = {8, 8}}, "odd2", "heavy");
  EXPECT_EQ(std::tuple(m.elements, m.wrong, m.nan, m.unwritten), std::tuple(64, 9, 3, 2));
  EXPECT_EQ(m.shape + m.family + m.output, "odd2heavyout");
  EXPECT_EQ(m.worst_ratio, 4.5);
  EXPECT_EQ(m.first.size(), 5U);
  EXPECT_FALSE(m.pattern.empty());
}

// The values of a live set are secret: no feedback may contain one.
TEST(Feedback, ShowsNoValueOfALiveSet) {
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  std::vector<double> truth(4096), answer(4096);
  for (size_t i = 0; i < truth.size(); ++i) {
    truth[i] = round_to(DType::f32, 1000 * normal(random));
    answer[i] = i % 3 ? truth[i] : 1000 * normal(random);
  }
  Expected e =
      make_expected({.name = "out", .dtype = DType::f32, .shape = {64, 64}}, truth, truth, {}, {});
  std::vector<std::byte> bytes(truth.size() * 4);
  from_double(DType::f32, answer, bytes);
  Mismatch m = describe_mismatch(judge(e, bytes), e.spec, "small", "made");
  EXPECT_GT(m.wrong, 1000);
  EXPECT_EQ(m.first.size(), 5U);
  m.worst_ratio = 0;  // a ratio of errors, not a value
  std::string told = text_of(m) + details_of(m);
  for (size_t i = 0; i < truth.size(); ++i)
    for (double value : {truth[i], answer[i]}) {
      std::string digits = std::to_string(std::abs(value));  // "123.456789"
      EXPECT_THAT(told, Not(HasSubstr(digits.substr(0, digits.find('.') + 3)))) << i;
    }
}

KernelProfile kernel(const char* name, double ns, const char* bound) {
  KernelProfile k;
  k.kernel = name, k.time_ns = ns, k.bound_by = bound;
  return k;
}

TEST(Feedback, TheSlowestKernelBinds) {
  EXPECT_EQ(bottleneck_text({}, 100), "");
  EXPECT_EQ(bottleneck_text({kernel("a", 3000, "dram")}, 1500),
            "a is bound by dram (3 us); 2.00x the floor of 1.5 us");
  EXPECT_EQ(bottleneck_text({kernel("a", 1000, "dram"), kernel("b", 3000, "issue")}, 2000),
            "b is bound by issue (3 us, 75% of the time); 2.00x the floor of 2 us");
  EXPECT_EQ(bottleneck_text({kernel("a", 1000, "")}, 0), "a takes 1 us");
}

}  // namespace
}  // namespace cutegen::eval
