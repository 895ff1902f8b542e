// SPDX-License-Identifier: Apache-2.0
// Programs that are right only in one order of CTAs and warps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eval/testing/ladder_world.h"

namespace cutegen::eval {
namespace {

using testing::HasSubstr;
using testing_world::twice;
using testing_world::World;

constexpr const char* kBox = ".shared .align 4 .b8 box[4];";

// Thread 0 writes the factor for all threads, and no thread waits for it.
const std::string kWithoutBarrier =
    "setp.eq.u32 %p2, %r4, 0; @%p2 st.volatile.shared.f32 [box], 0f40000000;\n"
    "ld.volatile.shared.f32 %f3, [box]; mul.f32 %f2, %f1, %f3;";

TEST(LadderOrders, AResultThatDependsOnTheOrderIsNamed) {
  World w(twice);
  const Verdict v = w.judge(World::kernel(kWithoutBarrier, {}, kBox));
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_THAT(
      v.feedback.headline,
      HasSubstr(
          "correct in one order of CTAs and warps, but not if the last ones begin first: out: "));
  EXPECT_THAT(v.feedback.detail, HasSubstr("depends on an order that CUDA does not guarantee"));
}

TEST(LadderOrders, SoIsAFinding) {
  World w(twice);
  const Verdict v = w.judge(
      World::kernel("setp.eq.u32 %p2, %r4, 0; @%p2 st.volatile.shared.u32 [box], 7;\n"
                    "ld.volatile.shared.u32 %r8, [box]; setp.eq.u32 %p3, %r8, 7; @!%p3 trap;\n"
                    "add.f32 %f2, %f1, %f1;",
                    {}, kBox));
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_THAT(v.feedback.headline, HasSubstr("not if the last ones begin first: f: trap"));
}

TEST(LadderOrders, ABarrierMakesItRight) {
  World w(twice);
  const Verdict v = w.judge(
      World::kernel("setp.eq.u32 %p2, %r4, 0; @%p2 st.shared.f32 [box], 0f40000000;\nbar.sync 0;\n"
                    "ld.shared.f32 %f3, [box]; mul.f32 %f2, %f1, %f3;",
                    {}, kBox));
  EXPECT_EQ(v.status, Status::correct) << v.feedback.headline << v.feedback.detail;
}

}  // namespace
}  // namespace cutegen::eval
