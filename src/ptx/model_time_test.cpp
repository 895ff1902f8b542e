// SPDX-License-Identifier: Apache-2.0
// The time model: never faster than the bytes allow, and it names what binds.
#include <gtest/gtest.h>

#include "ptx/machine.h"

namespace cutegen::ptx {
namespace {

GpuSpec h200() {
  return *find_gpu("h200");
}

// A launch that streams `bytes` in and out, 512 bytes a request.
LaunchReport stream(int64_t bytes, int64_t ctas) {
  LaunchReport r;
  const uint64_t sectors = uint64_t(bytes) / 32;
  r.ctas_total = r.ctas_run = ctas;
  r.counters.global_load_sectors = r.counters.global_store_sectors = sectors;
  r.counters.global_load_requests = r.counters.global_store_requests = sectors / 16;
  r.counters.warp_instructions = sectors / 16 * 30;
  r.counters.max_cta_instructions = r.counters.warp_instructions / uint64_t(ctas);
  r.counters.by_kind["ld_global"] = sectors / 16;
  r.traffic = {{"x", uint64_t(bytes), sectors, 0}, {"y", uint64_t(bytes), 0, sectors}};
  return r;
}
LaunchConfig config(int64_t ctas, int64_t threads = 256, int64_t shared = 0) {
  return {{ctas, 1, 1}, {threads, 1, 1}, {1, 1, 1}, shared, false};
}
Entry entry(int registers = 32) {
  Entry e;
  e.registers_estimate = registers;
  return e;
}

TEST(ModelTime, NeverBelowTheDramFloor) {
  for (int64_t mib : {1, 16, 256, 4096}) {
    const int64_t bytes = mib << 20, ctas = bytes / 4096;
    const ModelledTime t = model_time(h200(), stream(bytes, ctas), entry(), config(ctas));
    const double floor = 2.0 * double(bytes) / h200().dram_bytes_per_s * 1e9;
    EXPECT_GE(t.time_ns, floor);
    if (mib >= 256) {
      EXPECT_EQ(t.bound_by, "dram");
      EXPECT_LT(t.time_ns, 1.7 * floor);
    }
  }
}

TEST(ModelTime, SmallLaunchesCostTheLaunch) {
  const ModelledTime t = model_time(h200(), stream(4096, 1), entry(), config(1));
  EXPECT_EQ(t.bound_by, "launch");
  EXPECT_GE(t.time_ns, h200().launch_ns);
}

TEST(ModelTime, ASampleStandsForTheGrid) {
  const int64_t bytes = int64_t{1} << 30, ctas = bytes / 4096;
  LaunchReport whole = stream(bytes, ctas), part = stream(bytes / 64, ctas / 64);
  part.ctas_total = ctas;
  part.traffic[0].bytes = part.traffic[1].bytes = uint64_t(bytes);
  EXPECT_NEAR(model_time(h200(), part, entry(), config(ctas)).time_ns,
              model_time(h200(), whole, entry(), config(ctas)).time_ns, 1);
}

TEST(ModelTime, RereadBytesDoNotCrossTheBusTwice) {
  const int64_t bytes = int64_t{1} << 28, ctas = bytes / 4096;
  LaunchReport once = stream(bytes, ctas), twice = once;
  twice.traffic[0].load_sectors *= 2;
  EXPECT_EQ(model_time(h200(), once, entry(), config(ctas)).terms_ns.at("dram"),
            model_time(h200(), twice, entry(), config(ctas)).terms_ns.at("dram"));
}

TEST(ModelTime, MoreRegistersOrSharedMemoryMeanMoreWaves) {
  LaunchReport r = stream(int64_t{1} << 24, 4096);
  auto latency = [&](const Entry& e, const LaunchConfig& c) {
    return model_time(h200(), r, e, c).terms_ns.at("latency");
  };
  EXPECT_GT(latency(entry(200), config(4096)), latency(entry(32), config(4096)));
  EXPECT_GT(latency(entry(32), config(4096, 256, 100'000)), latency(entry(32), config(4096)));
}

TEST(ModelTime, ArithmeticBindsWhenThereIsMuchOfIt) {
  LaunchReport r = stream(1 << 20, 1024);
  r.counters.by_kind["fma"] = 400'000'000;
  r.counters.warp_instructions += 400'000'000;
  const std::string bound = model_time(h200(), r, entry(), config(1024)).bound_by;
  EXPECT_TRUE(bound == "fma" || bound == "issue") << bound;
}

}  // namespace
}  // namespace cutegen::ptx
