// SPDX-License-Identifier: Apache-2.0
// Certificates of rounds, and their JSON form.
#include "eval/judge/certify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>

#include "device/testing/driver_process.h"
#include "eval/judge/turns.h"
#include "eval/testing/ladder_world.h"
#include "eval/testing/toy_worker.h"

namespace cutegen::eval {
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
  CertifiedMode m = pooled(TimeMode::cold,
                           {rounds({10, 10, 10}, {20, 20, 20}), rounds({10, 10, 10}, {22, 22, 22})},
                           0.002, apart);
  EXPECT_EQ(m.mode, TimeMode::cold);
  EXPECT_DOUBLE_EQ(m.time_ns, 10);
  ASSERT_EQ(m.against.size(), 1U);
  EXPECT_EQ(m.against[0].against, "eager");
  EXPECT_EQ(m.against[0].pairs, 6);
  EXPECT_NEAR(m.against[0].speedup, std::sqrt(2 * 2.2), 1e-9);
  EXPECT_DOUBLE_EQ(m.against[0].other_ns, 21);
  EXPECT_EQ(m.against[0].stopped, "enough");
  EXPECT_NEAR(apart, 0.1, 1e-9);
  EXPECT_EQ(hardest(m), &m.against[0]);
  EXPECT_EQ(pooled(TimeMode::call, {rounds({1}, {2}), rounds({1}, {9})}, 0.002, apart).mode,
            TimeMode::call);
  EXPECT_NEAR(apart, 0.1, 1e-9);  // differences in the mode call do not count
}

TEST(Certify, ABaselineThatStoppedHalfWayIsNotCompared) {
  double apart = 0;
  Rounds half = rounds({10, 10}, {20});
  CertifiedMode m = pooled(TimeMode::cold, {half}, 0.002, apart);
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

// A launch of a kernel of the fake driver on one buffer, with one thread per element.
Json launch_of(const std::string& kernel, const std::string& tensor) {
  return {{"kernel", kernel},
          {"grid", {"size(x)", 1, 1}},
          {"block", {1, 1, 1}},
          {"args", {{{"tensor", tensor}}}}};
}

std::string entry_of(const std::string& kernel) {
  return ".visible .entry " + kernel + "(.param .u64 " + kernel + "_p) { ret; }\n";
}

// A whole certificate: the real ladder and runner, without a GPU.
struct Gpu {
  testing_world::World w;
  Runner runner{{.device = "cuda:0"}};
  std::vector<std::string> said;

  Gpu(std::function<double(double)> truth, const std::vector<std::array<std::string, 2>>& launches)
      : w(std::move(truth)) {
    w.add_official(1 << 12);
    w.toy.task.shapes[0].least_bytes = Bytes{int64_t{1} << 30};  // as large as on a GPU
    Json steps = Json::array();
    w.toolchain.ptx = ".version 8.0\n.target sm_80\n.address_size 64\n";
    std::string source;
    for (const auto& [kernel, tensor] : launches) {
      steps.push_back(launch_of(kernel, tensor));
      w.toolchain.ptx += entry_of(kernel);
      source += "extern \"C\" __global__ void " + kernel + "(void* p) {}\n";
    }
    w.plan({{"steps", steps}});
    w.program.sources["kernel.cu"] = source;
  }

  Result<Certificate> certificate(std::vector<torch::BaselineWanted> baselines) {
    CG_CHECK(runner.start(Context()));
    w.services.runner = lent(runner);
    w.services.device = runner.facts();
    w.services.device_name = "cuda:0";
    w.services.identity = runner.identity();
    w.pool.emplace(w.toy.task, w.toy.source());
    w.services.pool = lent(*w.pool);
    CertifyRequest request{.program = w.program, .baselines = std::move(baselines), .processes = 1};
    return certify(
        Context(), w.services, w.toy.task, request,
        []() -> Result<std::unique_ptr<torch::TorchWorker>> {
          auto worker = std::make_unique<ToyWorker>();
          worker->ways["eager"].samples = {1e6};
          worker->ways["compile"].samples = {2.5e5};
          return worker;
        },
        [&](const std::string& text) { said.push_back(text); });
  }
};

TEST(Certification, EveryWeightedShapeIsCertifiedAndTheHeadlineIsTheirMean) {
  device::cuda::with_driver("good", [] {
    Gpu gpu([](double) { return double{std::bit_cast<float>(7)}; }, {{"sevens", "out"}});
    Task& task = gpu.w.toy.task;
    ShapeCase wide = task.shapes[0];
    wide.name = "wide", wide.kind = ShapeKind::user, wide.weight = 3;
    task.shapes.push_back(wide);
    auto c = gpu.certificate({{.kind = BaselineKind::eager},
                              {.kind = BaselineKind::eager_fp32},
                              {.kind = BaselineKind::compile}});
    ASSERT_TRUE(c) << c.error().text();
    ASSERT_EQ(c->shapes.size(), 2U);
    EXPECT_EQ(c->shapes[1].shape, "wide");
    EXPECT_EQ(c->shapes[1].weight, 3);
    ASSERT_FALSE(c->modes.empty());
    EXPECT_EQ(c->modes[0].mode, TimeMode::cold);
    EXPECT_NEAR(c->modes[0].time_ns, 5e5, 1e-3);
    ASSERT_EQ(c->modes[0].against.size(), 2U);
    for (const PairedRatio& p : c->modes[0].against)
      EXPECT_NEAR(p.speedup, p.against == "eager" ? 2 : 0.5, 1e-9) << p.against;
    EXPECT_THAT(c->missing, testing::Contains(testing::HasSubstr("eager-fp32: same as eager")));
    ASSERT_TRUE(accuracy_of(*c, "eager"));
    EXPECT_FALSE(accuracy_of(*c, "eager")->passes);
    EXPECT_THAT(accuracy_of(*c, "eager")->why, testing::HasSubstr("no GPU to compare on"));
    EXPECT_EQ(accuracy_of(*c, "eager-fp32"), nullptr);
    EXPECT_NEAR(c->floor_ns, c->shapes[0].floor_ns, 1e-6);
    EXPECT_THAT(gpu.said,
                testing::Contains(testing::HasSubstr("shape 'wide': process 1 of 1: graph")));
    auto back = read_json<Certificate>(to_json(*c));
    ASSERT_TRUE(back) << back.error().text();
    EXPECT_EQ(to_json(*back), to_json(*c));
  });
}

void expect_all_modes(const Result<Certificate>& c) {
  ASSERT_TRUE(c) << c.error().text();
  std::vector<TimeMode> modes;
  for (const CertifiedMode& m : c->modes) {
    modes.push_back(m.mode);
    EXPECT_GT(m.time_ns, 0) << to_string(m.mode);
    ASSERT_EQ(m.against.size(), 1U) << to_string(m.mode);
    EXPECT_EQ(m.against[0].against, "eager");
  }
  EXPECT_THAT(modes, ElementsAre(TimeMode::cold, TimeMode::warm, TimeMode::graph, TimeMode::call));
}

TEST(Certification, OfAnOutputInFloat8) {
  device::cuda::with_driver("good", [] {
    Gpu gpu([](double) { return 1.0; }, {{"ones", "out"}});
    gpu.w.toy.output_in(DType::f8e4m3);
    expect_all_modes(gpu.certificate({{.kind = BaselineKind::eager}}));
  });
}

TEST(Certification, OfAnOutputInFloat8ThatIsWrong) {
  device::cuda::with_driver("good", [] {
    Gpu gpu([](double) { return 1.125; }, {{"ones", "out"}});
    gpu.w.toy.output_in(DType::f8e4m3);
    auto c = gpu.certificate({{.kind = BaselineKind::eager}});
    ASSERT_FALSE(c);
    EXPECT_THAT(c.error().message, testing::HasSubstr("this program is not correct (failed)"));
  });
}

// The kernel faults if it finds its own result, so each run must start with the initial values.
TEST(Certification, OfAMutatedTensorRestoresItBeforeEveryRun) {
  device::cuda::with_driver("good", [] {
    Gpu gpu([](double) { return double{std::bit_cast<float>(7)}; },
            {{"sevens", "out"}, {"once", "x"}});
    gpu.w.toy.mutate([](double x) { return x + 1000; });
    gpu.w.services.families = {"made"};
    expect_all_modes(gpu.certificate({{.kind = BaselineKind::eager}}));
  });
}

TEST(Certification, OfAProgramThatForgetsTheMutatedTensorIsRefused) {
  device::cuda::with_driver("good", [] {
    Gpu gpu([](double) { return double{std::bit_cast<float>(7)}; }, {{"sevens", "out"}});
    gpu.w.toy.mutate([](double x) { return x + 1000; });
    gpu.w.services.families = {"made"};
    auto c = gpu.certificate({{.kind = BaselineKind::eager}});
    ASSERT_FALSE(c);
    EXPECT_THAT(c.error().message, testing::HasSubstr("this program is not correct"));
  });
}

TEST(Certificate, HoldsItsFormThroughJson) {
  Certificate c;
  c.program_id = "p", c.task_id = "t", c.shape = "official", c.gpu = "NVIDIA H200";
  c.uuid = "GPU-1", c.driver = "580", c.torch = "torch 2.11", c.floor_ns = 5, c.bound_by = "memory";
  c.processes = 2, c.apart = 0.001, c.missing = {"compile: no"}, c.elapsed = Nanoseconds(7);
  c.modes = {{.mode = TimeMode::cold,
              .time_ns = 10,
              .low_ns = 9,
              .high_ns = 11,
              .against = {{.against = "eager",
                           .program_id = "",
                           .speedup = 2,
                           .low = 1.9,
                           .high = 2.1,
                           .other_ns = 20,
                           .pairs = 48,
                           .stopped = "precise"}}}};
  Json json = to_json(c);
  auto back = read_json<Certificate>(json);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(to_json(*back), json);
  EXPECT_THAT(back->missing, ElementsAre("compile: no"));
  for (const char* key : {"shapes", "baselines", "cudnn", "sm_clock_hz", "memory_clock_hz"})
    EXPECT_FALSE(json.contains(key)) << "unknown to older readers: " << key;
  c.shapes = {{.shape = "official", .weight = 1, .floor_ns = 4, .modes = c.modes},
              {.shape = "wide", .weight = 2.5, .floor_ns = 6, .modes = c.modes}};
  c.baselines = {
      {.kind = "eager",
       .accuracy = {
           .precision = "fp32", .coarser = false, .share = 0.5, .passes = true, .why = ""}}};
  c.cudnn = "9.10.2", c.sm_clock_hz = 1.98e9, c.sm_clock_least_hz = 1.9e9, c.memory_clock_hz = 3e9;
  json = to_json(c);
  back = read_json<Certificate>(json);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(to_json(*back), json);
  EXPECT_EQ(back->shapes[1].weight, 2.5);
  ASSERT_TRUE(accuracy_of(*back, "eager"));
  EXPECT_EQ(accuracy_of(*back, "eager")->share, 0.5);
  EXPECT_EQ(accuracy_of(*back, "compile"), nullptr);
  json["schema"] = "cutegen.certificate.v9";
  EXPECT_FALSE(read_json<Certificate>(json));
}

}  // namespace
}  // namespace cutegen::eval
