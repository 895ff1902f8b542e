// SPDX-License-Identifier: Apache-2.0
// What a certificate says of rounds, and its JSON form.
#include "eval/certify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace cutegen {
namespace {

using testing::ElementsAre;

Rounds rounds(std::vector<double> own, std::vector<double> eager) {
  Rounds r;
  r.own = std::move(own);
  r.others["eager"] = std::move(eager);
  return r;
}

TEST(Certify, RoundsOfAllProcessesCountAndTheirDifferenceIsTold) {
  double apart = 0;
  CertifiedMode m =
      pooled("cold", {rounds({10, 10, 10}, {20, 20, 20}), rounds({10, 10, 10}, {22, 22, 22})},
             0.002, apart);
  EXPECT_EQ(m.mode, "cold");
  EXPECT_DOUBLE_EQ(m.time_ns, 10);
  ASSERT_EQ(m.against.size(), 1U);
  EXPECT_EQ(m.against[0].against, "eager");
  EXPECT_EQ(m.against[0].pairs, 6);
  EXPECT_NEAR(m.against[0].speedup, std::sqrt(2 * 2.2), 1e-9);
  EXPECT_DOUBLE_EQ(m.against[0].other_ns, 21);
  EXPECT_EQ(m.against[0].stopped, "enough");
  EXPECT_NEAR(apart, 0.1, 1e-9);
  EXPECT_EQ(hardest(m), &m.against[0]);
  EXPECT_EQ(pooled("call", {rounds({1}, {2}), rounds({1}, {9})}, 0.002, apart).mode, "call");
  EXPECT_NEAR(apart, 0.1, 1e-9);  // the host's times are another matter
}

TEST(Certify, ABaselineThatStoppedHalfWayIsNotCompared) {
  double apart = 0;
  Rounds half = rounds({10, 10}, {20});
  CertifiedMode m = pooled("cold", {half}, 0.002, apart);
  EXPECT_TRUE(m.against.empty());
  EXPECT_EQ(hardest(m), nullptr);
  EXPECT_FALSE(precise_enough(half, 0.002));
}

TEST(Certify, IsPreciseWhenEveryRatioIs) {
  Rounds r = rounds(std::vector<double>(9, 10), std::vector<double>(9, 20));
  EXPECT_TRUE(precise_enough(r, 0.002));
  r.others["compile"] = {10, 11, 12, 13, 14, 15, 16, 17, 18};
  EXPECT_FALSE(precise_enough(r, 0.002));
}

TEST(Certificate, HoldsItsFormThroughJson) {
  Certificate c;
  c.program_id = "p", c.task_id = "t", c.shape = "official", c.gpu = "NVIDIA H200";
  c.uuid = "GPU-1", c.driver = "580", c.torch = "torch 2.11", c.floor_ns = 5, c.bound_by = "memory";
  c.processes = 2, c.apart = 0.001, c.missing = {"compile: no"}, c.elapsed = Nanoseconds(7);
  c.modes = {{"cold", 10, 9, 11, {{"eager", "", 2, 1.9, 2.1, 20, 48, "precise"}}}};
  Json json = to_json(c);
  auto back = certificate_from_json(json);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(to_json(*back), json);
  EXPECT_THAT(back->missing, ElementsAre("compile: no"));
  json["schema"] = "cutegen.certificate.v9";
  EXPECT_FALSE(certificate_from_json(json));
}

}  // namespace
}  // namespace cutegen
