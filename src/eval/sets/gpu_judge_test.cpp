// SPDX-License-Identifier: Apache-2.0
// Compares the comparison kernel with the host's comparison, on the simulator and on a GPU if there
// is one.
#include "eval/sets/gpu_judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "device/device.h"
#include "eval/sets/judge_rule.h"
#include "eval/testing/judge_cases.h"

namespace cutegen::eval {

const std::map<std::string, std::string>& judge_kernels();

namespace {

constexpr double kClose = 1e-4;

std::string compiled(const std::string& arch) {
  auto paths = toolchain::find_tools();
  if (!paths) return {};
  auto toolchain = toolchain::Toolchain::open({.paths = *paths});
  EXPECT_TRUE(toolchain) << toolchain.error().text();
  auto result =
      (*toolchain)
          ->compile(Context(), {.name = "judge.cu",
                                .source = judge_kernels().at("src/eval/sets/kernels/judge.cu"),
                                .arch = arch});
  EXPECT_TRUE(result && result->ok) << (result ? result->log : result.error().text());
  return result ? result->ptx : std::string();
}

template <class T>
std::vector<std::byte> bytes_of(const T& value) {
  auto bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}

template <class T>
std::span<std::byte> span_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

void expect_same(const JudgeTally& got, int64_t not_close, const JudgeCase& c,
                 const std::vector<uint8_t>& mask) {
  Judgement want = judge(c.expected, c.output, &c.poison);
  const std::string dtype = to_string(c.dtype);
  EXPECT_EQ(got.wrong, uint64_t(want.wrong)) << dtype;
  EXPECT_EQ(got.nan, uint64_t(want.nan)) << dtype;
  EXPECT_EQ(got.zero, uint64_t(want.zero)) << dtype;
  EXPECT_EQ(got.unwritten, uint64_t(want.unwritten)) << dtype;
  EXPECT_EQ(std::bit_cast<double>(got.worst), want.worst_ratio) << dtype;
  EXPECT_EQ(not_close, count_not_close(c.expected, c.output, kClose)) << dtype;
  const AggregateError whole(int64_t(got.finite), got.squares, got.signed_sum);
  if (std::isfinite(want.rms)) {  // the sum may overflow in f64
    EXPECT_NEAR(whole.rms(), want.rms, 1e-12 * want.rms) << dtype;
    EXPECT_NEAR(whole.bias(), want.bias, 1e-12 * want.rms) << dtype;
  } else {
    EXPECT_FALSE(std::isfinite(whole.rms())) << dtype;
  }
  if (want.wrong == 0) return;
  EXPECT_EQ(mask, want.is_wrong) << dtype;
  auto first = std::find(want.is_wrong.begin(), want.is_wrong.end(), 1);
  EXPECT_EQ(got.first, uint64_t(first - want.is_wrong.begin())) << dtype;
}

class OnTheSimulator : public testing::Test {
 protected:
  void SetUp() override {
    auto device = device::open_device("sim:h200");
    ASSERT_TRUE(device);
    device_ = std::move(*device);
    const std::string ptx = compiled(device_->facts().arch);
    if (ptx.empty()) GTEST_SKIP() << "no compiler here";
    auto loaded = device_->load({ptx});
    ASSERT_TRUE(loaded) << loaded.error().text();
  }

  void compare(JudgeCase& c) {
    JudgeRule rule = judge_rule(c.dtype, c.rule, kClose, c.nan_is_undefined, c.poison);
    std::vector<JudgeRule> rules{rule};
    std::vector<JudgeTally> tally(1);
    const uint64_t from = 0, count = c.expected.truth.size();
    std::vector<uint8_t> mask(count, 9);
    auto bound = device_->bind({{.name = "output", .bytes = c.output},
                                {.name = "truth", .bytes = span_of(c.expected.truth)},
                                {.name = "native", .bytes = c.native},
                                {.name = "margin", .bytes = span_of(c.margin)},
                                {.name = "mask", .bytes = span_of(mask)},
                                {.name = "tally", .bytes = span_of(tally)},
                                {.name = "rule", .bytes = span_of(rules)}});
    ASSERT_TRUE(bound) << bound.error().text();
    Launch launch{.step = "judge", .kernel = "judge", .grid = {3, 1, 1}, .block = {64, 1, 1}};
    for (const char* name : {"output", "truth", "native", "margin", "mask", "tally", "rule"})
      launch.args.push_back({.buffer = name});
    launch.args.push_back({.buffer = "", .bytes = bytes_of(from)});
    launch.args.push_back({.buffer = "", .bytes = bytes_of(count)});
    auto report = device_->run(Context(), {launch}, {});
    ASSERT_TRUE(report) << report.error().text();
    ASSERT_EQ(report->status, device::RunReport::Status::ok) << report->message << "\n"
                                                             << report->detail;
    expect_same(tally[0], int64_t(tally[0].not_close), c, mask);
  }

  std::unique_ptr<device::Device> device_;
};

TEST_F(OnTheSimulator, EveryDtypeIsJudgedAsOnTheHost) {
  std::mt19937_64 random(11);
  for (DType dtype : kAllDtypes)
    for (int round = 0; round < 3; ++round) {
      JudgeCase c = make_case(dtype, 700, random, round == 0 ? 1000000 : 10);
      compare(c);
    }
}

TEST(JudgeRule, KnowsFromWhereATruthIsNoNumber) {
  Poison poison{};
  EXPECT_EQ(judge_rule(DType::f32, {}, 0, false, poison).overflow, 0x1.ffffffp127);
  EXPECT_EQ(judge_rule(DType::f16, {}, 0, false, poison).overflow, 65520);
  EXPECT_EQ(judge_rule(DType::f64, {}, 0, false, poison).overflow,
            std::numeric_limits<double>::infinity());
  EXPECT_EQ(judge_rule(DType::f8e4m3, {}, 0, false, poison).overflows_to_nan, 1);
  EXPECT_EQ(judge_rule(DType::f8e5m2, {}, 0, false, poison).overflows_to_nan, 0);
}

// The kernel reads values from memory that a second context of this process maps.
class OnAGpu : public testing::Test {
 protected:
  void SetUp() override {
    // Looks for the library first: the driver does not search again after a failure, and other
    // tests use another one.
    if (!device::cuda::open_library("libcuda.so.1").library) GTEST_SKIP() << "no GPU here";
    auto judge = GpuJudge::open("cuda:0");
    if (!judge) GTEST_SKIP() << judge.error().text();
    judge_ = std::move(*judge);
    const std::string ptx = compiled("sm_90a");
    if (ptx.empty()) GTEST_SKIP() << "no compiler here";
    ASSERT_TRUE(judge_->load(ptx));
    auto writer = device::cuda::Session::open("cuda:0");
    ASSERT_TRUE(writer);
    writer_ = std::move(*writer);
  }

  GpuBuffer buffer(const char* name, std::span<const std::byte> bytes, bool at_the_end) {
    auto made = judge_->take(name, int64_t(bytes.size()), at_the_end);
    EXPECT_TRUE(made) << made.error().text();
    EXPECT_TRUE(judge_->set_guards(Context(), *made, 0x5a));
    EXPECT_TRUE(writer_->write(made->at(), bytes));
    return std::move(*made);
  }

  std::unique_ptr<GpuJudge> judge_;
  std::unique_ptr<device::cuda::Session> writer_;
};

TEST_F(OnAGpu, EveryDtypeIsJudgedAsOnTheHost) {
  std::mt19937_64 random(12);
  for (DType dtype : kAllDtypes)
    for (int round = 0; round < 4; ++round) {
      JudgeCase c = make_case(dtype, 100003, random, round == 0 ? 100000000 : 50);
      GpuBuffer output = buffer("y", c.output, round % 2 == 0);
      GpuBuffer truth = buffer("truth", span_of(c.expected.truth), false);
      GpuBuffer native = buffer("native", c.native, false);
      GpuBuffer margin = buffer("margin", span_of(c.margin), false);
      GpuExpected e;
      e.spec = c.expected.spec;
      e.elements = int64_t(c.expected.truth.size());
      e.truth = truth.at(), e.native = native.at(), e.margin = margin.at();
      e.rule = c.rule;
      e.close = kClose;
      e.nan_is_undefined = c.nan_is_undefined;
      auto j = judge_->compare(Context(), e, output, c.poison);
      ASSERT_TRUE(j) << j.error().text();
      const Judgement& n = j->counts;
      JudgeTally got{.wrong = uint64_t(n.wrong),
                     .nan = uint64_t(n.nan),
                     .zero = uint64_t(n.zero),
                     .unwritten = uint64_t(n.unwritten),
                     .not_close = uint64_t(j->not_close),
                     .first = uint64_t(j->first),
                     .last = uint64_t(j->last),
                     .worst = std::bit_cast<uint64_t>(n.worst_ratio)};
      expect_same(got, j->not_close, c, n.is_wrong);
      auto damage = judge_->damage(output);
      ASSERT_TRUE(damage);
      EXPECT_EQ(*damage, "");
    }
}

TEST_F(OnAGpu, WhatIsWrittenOutsideShows) {
  std::vector<std::byte> bytes(1000);
  for (bool at_the_end : {false, true}) {
    GpuBuffer y = buffer("y", bytes, at_the_end);
    ASSERT_TRUE(judge_->poison(Context(), y, draw_poison(PoisonKind::nan)));
    EXPECT_EQ(judge_->damage(y).value(), "");
    const std::byte other[1] = {std::byte{1}}, another[1] = {std::byte{2}};
    const device::cuda::Address at = at_the_end ? y.at() - 1 : y.at() + 1000;
    ASSERT_TRUE(writer_->write(at, other));
    ASSERT_TRUE(writer_->write(at + (at_the_end ? -1 : 1), another));
    EXPECT_EQ(judge_->damage(y).value(),
              at_the_end ? "memory before 'y' was written" : "memory behind 'y' was written");
  }
}

}  // namespace
}  // namespace cutegen::eval
