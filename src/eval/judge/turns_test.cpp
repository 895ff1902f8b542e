// SPDX-License-Identifier: Apache-2.0
#include "eval/judge/turns.h"

#include <gtest/gtest.h>

namespace cutegen::eval {
namespace {

TEST(Clocks, AreTheMedianAndTheLeastOfAllBlocks) {
  Clocks clocks;
  clocks.note_sms({{"sm_clock_hz", 1.9e9}, {"sm_clock_least_hz", 1.8e9}});
  clocks.note_sms({{"sm_clock_hz", 1.7e9}, {"sm_clock_least_hz", 1.2e9}});
  clocks.note_sms({{"sm_clock_hz", 1.8e9}, {"sm_clock_least_hz", 1.5e9}});
  clocks.note_memory({{"memory_clock_hz", 3.2e9}});
  clocks.note_memory({{"memory_clock_hz", 2.6e9}, {"sm_clock_hz", 1e9}});
  Certificate certificate;
  clocks.write(certificate);
  EXPECT_EQ(certificate.sm_clock_hz, 1.8e9);
  EXPECT_EQ(certificate.sm_clock_least_hz, 1.2e9);
  EXPECT_EQ(certificate.memory_clock_hz, 2.6e9);
}

TEST(Clocks, AreUnknownIfTheGpuReportsNone) {
  Clocks clocks;
  clocks.note_sms({{"sm_clock_hz", 0}, {"temperature_c", 40}});
  clocks.note_memory({});
  Certificate certificate;
  clocks.write(certificate);
  EXPECT_FALSE(certificate.sm_clock_hz);
  EXPECT_FALSE(certificate.sm_clock_least_hz);
  EXPECT_FALSE(certificate.memory_clock_hz);
}

TEST(Names, OfABaselineAreItsTargetIfItHasOne) {
  EXPECT_EQ(torch::BaselineWanted{BaselineKind::eager}.name(), "eager");
  EXPECT_EQ((torch::BaselineWanted{BaselineKind::callable, "mine.py:fast"}.name()), "mine.py:fast");
}

}  // namespace
}  // namespace cutegen::eval
