// SPDX-License-Identifier: Apache-2.0
// A CuTe matrix product in f16: cp.async in three stages, ldmatrix, mma.sync (gemm_f16.cu).
#include <cmath>
#include <random>

#include "ptx/ops/half.h"
#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

constexpr int64_t kM = 256, kN = 128, kK = 96, kSharedBytes = 49152;

struct Problem {
  std::vector<uint16_t> a = std::vector<uint16_t>(kM * kK), b = std::vector<uint16_t>(kN * kK);
  std::vector<float> c = std::vector<float>(kM * kN, NAN);
};

Problem problem() {
  Problem p;
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (auto& x : p.a) x = to_half(normal(random));
  for (auto& x : p.b) x = to_half(normal(random));
  return p;
}

LaunchReport run_product(const std::string& text, Problem& p, LaunchStatus status) {
  auto module = Module::parse(text);
  EXPECT_TRUE(module.has_value()) << module.error().text();
  Sim sim;
  sim.options.threads = 1;
  std::vector<Bytes8> args{sim.input("a", p.a), sim.input("b", p.b), sim.output("c", p.c),
                           arg(int32_t(kM)),    arg(int32_t(kN)),    arg(int32_t(kK))};
  const LaunchConfig config{.grid = {kM / 128, kN / 128, 1},
                            .block = {128, 1, 1},
                            .cluster = {1, 1, 1},
                            .shared_bytes = kSharedBytes,
                            .cooperative = false};
  auto r = launch({}, sim.memory, *module, "gemm", config, args, sim.options);
  EXPECT_TRUE(r.has_value());
  if (!r) return {};
  EXPECT_EQ(r->status, status) << r->reason;
  return *r;
}

std::string matrix_source() {
  auto text = read_file(std::string(CUTEGEN_SOURCE_DIR) + "/tests/golden/ptx/gemm_f16.ptx");
  EXPECT_TRUE(text.has_value());
  return text.value_or("");
}

std::string without(std::string text, const std::string& what) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos);
  return text.erase(at, text.find(';', at) + 1 - at);
}

TEST(MatrixKernel, MultipliesThroughTheTensorCores) {
  Problem p = problem();
  const LaunchReport r = run_product(matrix_source(), p, LaunchStatus::ok);
  for (int64_t i = 0; i < kM; ++i) {
    for (int64_t j = 0; j < kN; ++j) {
      double want = 0, size = 0;
      for (int64_t k = 0; k < kK; ++k) {
        const double product =
            double(half_value(p.a[size_t(i * kK + k)])) * half_value(p.b[size_t(j * kK + k)]);
        want += product, size += std::abs(product);
      }
      ASSERT_NEAR(p.c[size_t(i * kN + j)], want, 1e-6 * size) << i << ' ' << j;
    }
  }
  // The product's multiply-adds, and nothing else, use mma.
  EXPECT_EQ(r.counters.by_kind.at("mma_half"), uint64_t(kM * kN * kK / (16 * 8 * 16)));
  EXPECT_EQ(r.counters.flops, uint64_t(2 * kM * kN * kK));
}

TEST(MatrixKernel, AMissingWaitIsFound) {
  Problem p = problem();
  const LaunchReport r =
      run_product(without(matrix_source(), "cp.async.wait_group"), p, LaunchStatus::finding);
  ASSERT_TRUE(r.finding.has_value());
  EXPECT_EQ(r.finding->kind, "async_copy_pending");
  EXPECT_NE(r.finding->instruction.find("ldmatrix"), std::string::npos);
}

TEST(MatrixKernel, AMissingCommitIsFound) {
  Problem p = problem();
  const LaunchReport r =
      run_product(without(matrix_source(), "cp.async.commit_group"), p, LaunchStatus::finding);
  ASSERT_TRUE(r.finding.has_value());
  EXPECT_EQ(r.finding->kind, "async_copy_pending");
}

}  // namespace
}  // namespace cutegen::ptx
