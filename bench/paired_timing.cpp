// SPDX-License-Identifier: Apache-2.0
// Measures the quality of paired timing on a GPU: a kernel against itself (A/A) and against itself
// with 1% more work, under a search's rule.
//
// Usage: paired_timing_bench [TRIALS] [cuda:0]. Prints a JSON document. Coverage is the share of
// trials whose 95% interval contains the true ratio, with and without the rule's early stop for
// slower programs.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "base/json.h"
#include "device/device.h"
#include "eval/diagnosis/statistics.h"

namespace cutegen {
namespace {

constexpr int kBlock = 8;
constexpr int64_t kElements = int64_t{1} << 26;  // for the smaller kernel: 256 MiB in, 256 MiB out

// out[i] = 2 x[i] for i < n.
constexpr const char* kTwice = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 p_x, .param .u64 p_out, .param .u32 p_n)
{
  .reg .pred %p<2>;
  .reg .f32 %f<3>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [p_x];
  ld.param.u64 %rd2, [p_out];
  ld.param.u32 %r1, [p_n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd3, %r5, 4;
  add.u64 %rd4, %rd1, %rd3;
  add.u64 %rd5, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%rd5], %f2;
DONE:
  ret;
}
)";

LaunchArg number(int32_t value) {
  LaunchArg arg;
  arg.bytes.resize(sizeof value);
  std::memcpy(arg.bytes.data(), &value, sizeof value);
  return arg;
}

Launch launch(const std::string& out, int64_t elements) {
  return {.step = "twice",
          .kernel = "twice",
          .grid = {(elements + 255) / 256, 1, 1},
          .block = {256, 1, 1},
          .args = {{"x", {}}, {out, {}}, number(int32_t(elements))}};
}

struct Study {
  int trials = 0, held = 0, slower = 0, faster = 0;
  std::vector<double> biases, pairs, gpu_ms;
};

// One decision of a search. `truth` is the expected speedup.
Result<void> trial(device::Device& device, double more, double truth, const eval::PairRule& rule,
                   Study& study) {
  static std::mt19937_64 random(std::random_device{}());
  std::vector<double> own, other;
  device::TimeRequest request;
  request.paired = true;
  request.samples = kBlock;
  request.steps = {launch("out", int64_t(kElements * (1 + more)))};
  request.against = {launch("against/out", kElements)};
  for (;;) {
    request.seed = random() & 0x7fffffff;
    CG_TRY(device::RunReport report, device.time(Context(), request));
    if (report.status != device::RunReport::Status::ok) return world_error(report.message);
    own.insert(own.end(), report.samples_ns.begin(), report.samples_ns.end());
    other.insert(other.end(), report.against_ns.begin(), report.against_ns.end());
    if (enough_pairs(rule, own, other)) break;
  }
  const eval::Median m = eval::speedup_of(own, other, rule.level);
  ++study.trials;
  study.held += m.low <= truth && truth <= m.high;
  study.slower += m.high < 1;
  study.faster += m.low > 1;
  study.biases.push_back(std::log(m.value));
  study.pairs.push_back(double(own.size()));
  double ns = 0;
  for (size_t i = 0; i < own.size(); ++i) ns += own[i] + other[i];
  study.gpu_ms.push_back(ns / 1e6);
  return {};
}

Json summary(const std::string& what, const Study& s) {
  return {{"what", what},
          {"trials", s.trials},
          {"interval_holds_truth", double(s.held) / s.trials},
          {"called_slower", double(s.slower) / s.trials},
          {"called_faster", double(s.faster) / s.trials},
          {"median_log_ratio", eval::median_of(s.biases).value},
          {"median_pairs", eval::median_of(s.pairs).value},
          {"median_gpu_ms", eval::median_of(s.gpu_ms).value},
          {"worst_gpu_ms", *std::max_element(s.gpu_ms.begin(), s.gpu_ms.end())}};
}

Result<Json> run(int trials, const std::string& name) {
  CG_TRY(DeviceName parsed, DeviceName::parse(name));
  CG_TRY(auto device, device::open_device(parsed));
  CG_TRY(auto facts, device->load({kTwice}));
  static std::vector<std::byte> x(size_t(kElements) * 4 / 100 * 102), out(x.size());
  const float pattern[] = {1, 2, 3};
  auto bytes = std::as_bytes(std::span(pattern));
  CG_CHECK(device->bind({{"x", x, true, device::BufferContent::data, bytes},
                         {"out", out, false, device::BufferContent::output, bytes, 8},
                         {"against/out", out, false, device::BufferContent::output, bytes, 8}}));
  Json list = Json::array();
  eval::PairRule search, whole;
  whole.drop_losers = false;
  whole.precise = 0;
  whole.most = 32;
  whole.level = 0.95;
  for (auto [what, more, rule, count] :
       {std::tuple("A/A, 32 pairs each", 0.0, whole, trials),
        std::tuple("A/A, the rule of a search", 0.0, search, trials),
        std::tuple("1% more work, the rule of a search", 0.01, search, trials / 4)}) {
    Study study;
    for (int i = 0; i < count; ++i) CG_CHECK(trial(*device, more, 1 / (1 + more), rule, study));
    list.push_back(summary(what, study));
  }
  return Json{{"gpu", device->identity().gpu}, {"block", kBlock}, {"studies", std::move(list)}};
}

}  // namespace
}  // namespace cutegen

int main(int argc, char** argv) {
  auto result = cutegen::run(argc > 1 ? std::atoi(argv[1]) : 1000, argc > 2 ? argv[2] : "cuda:0");
  if (!result) {
    fmt::print(stderr, "{}\n", result.error().text());
    return 6;
  }
  fmt::print("{}\n", result->dump(1));
}
