// SPDX-License-Identifier: Apache-2.0
// The time model is never faster than the bytes allow, and names the bounding resource.
#include "ptx/model/model_time.h"

#include <gtest/gtest.h>

#include <functional>

namespace cutegen::ptx {
namespace {

GpuSpec h200() {
  return *find_gpu("h200");
}

// A launch that loads and stores `bytes`, in requests of 512 bytes.
LaunchReport stream(int64_t bytes, int64_t ctas) {
  LaunchReport r;
  const uint64_t sectors = uint64_t(bytes) / 32;
  r.ctas_total = r.ctas_run = ctas;
  r.counters.global_load_sectors = r.counters.global_store_sectors = sectors;
  r.counters.global_load_requests = r.counters.global_store_requests = sectors / 16;
  r.counters.warp_instructions = sectors / 16 * 30;
  r.counters.max_cta_instructions = r.counters.warp_instructions / uint64_t(ctas);
  r.counters.by_kind["ld_global"] = sectors / 16;
  r.traffic = {
      {.buffer = "x", .bytes = uint64_t(bytes), .load_sectors = sectors, .store_sectors = 0},
      {.buffer = "y", .bytes = uint64_t(bytes), .load_sectors = 0, .store_sectors = sectors}};
  return r;
}
LaunchConfig config(int64_t ctas, int64_t threads = 256, int64_t shared = 0) {
  return {.grid = {ctas, 1, 1},
          .block = {threads, 1, 1},
          .cluster = {1, 1, 1},
          .shared_bytes = shared,
          .cooperative = false};
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

TEST(ModelTime, TellsTheBytesOfEachWayAndWhatEachResourceAllows) {
  const int64_t bytes = int64_t{64} << 20, ctas = bytes / 4096;
  LaunchReport r = stream(bytes, ctas);
  r.traffic[1].store_sectors /= 2;
  const ModelledTime t = model_time(h200(), r, entry(), config(ctas, 256, 40 << 10));
  EXPECT_EQ(t.dram_read_bytes, double(bytes));
  EXPECT_EQ(t.dram_write_bytes, double(bytes) / 2);
  const auto& limits = t.occupancy.limits;
  EXPECT_EQ(limits.at(CtaLimit::blocks), 32);
  EXPECT_EQ(limits.at(CtaLimit::threads), 8);
  EXPECT_EQ(limits.at(CtaLimit::shared_memory), 5);
  EXPECT_GE(limits.at(CtaLimit::registers), 5);
  EXPECT_EQ(t.occupancy.resident_ctas, 5);
}

TEST(ModelTime, SmallLaunchesCostTheLaunch) {
  const ModelledTime t = model_time(h200(), stream(4096, 1), entry(), config(1));
  EXPECT_EQ(t.bound_by, "launch");
  EXPECT_GE(t.time_ns, h200().launch_ns);
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
  r.counters.by_pipe["fma"] = 400'000'000;
  r.counters.warp_instructions += 400'000'000;
  const std::string bound = model_time(h200(), r, entry(), config(1024)).bound_by;
  EXPECT_TRUE(bound == "fma" || bound == "issue") << bound;
}

// A change of the counters, and the term that it must increase.
struct More {
  const char* what;
  std::function<void(LaunchReport&)> add;
  const char* term;
};
std::vector<More> all_kinds() {
  auto pipe = [](const char* name) {
    return [name](LaunchReport& r) { r.counters.by_pipe[name] += 100'000'000; };
  };
  std::vector<More> out;
  for (const char* name : {"fma", "half", "alu", "xu", "convert", "fp64", "lsu"})
    out.push_back({name, pipe(name), name});
  out.push_back(
      {"tensor", [](auto& r) { r.counters.tensor_flops["bf16"] += 1'000'000'000'000; }, "tensor"});
  out.push_back({"issue", [](auto& r) { r.counters.warp_instructions += 400'000'000; }, "issue"});
  out.push_back({"shared", [](auto& r) { r.counters.shared_wavefronts += 100'000'000; }, "shared"});
  out.push_back({"l1", [](auto& r) { r.counters.local_sectors += 1'000'000'000; }, "l1"});
  out.push_back({"l2", [](auto& r) { r.counters.global_atomic_sectors += 1'000'000'000; }, "l2"});
  out.push_back({"dram",
                 [](auto& r) {
                   r.counters.global_store_sectors += 1'000'000'000;
                   r.traffic.push_back({"z", 32'000'000'000, 0, 1'000'000'000});
                 },
                 "dram"});
  out.push_back(
      {"latency", [](auto& r) { r.counters.max_cta_instructions += 1'000'000; }, "latency"});
  return out;
}

TEST(ModelTime, MoreOfAnythingIsNeverFasterAndMuchOfItBinds) {
  for (const char* gpu : {"h200", "h100", "a100"}) {
    const GpuSpec spec = *find_gpu(gpu);
    const LaunchReport base = stream(1 << 24, 4096);
    const ModelledTime before = model_time(spec, base, entry(), config(4096));
    for (const More& more : all_kinds()) {
      LaunchReport r = base;
      more.add(r);
      const ModelledTime after = model_time(spec, r, entry(), config(4096));
      EXPECT_GT(after.time_ns, before.time_ns) << gpu << " " << more.what;
      EXPECT_EQ(after.bound_by, more.term) << gpu;
      EXPECT_GE(after.time_ns, after.terms_ns.at(more.term)) << gpu << " " << more.what;
      EXPECT_GT(after.lead, 1);
    }
  }
}

TEST(ModelTime, AFasterMachineIsNeverSlower) {
  LaunchReport r = stream(1 << 26, 4096);
  r.counters.by_pipe["fma"] = 50'000'000;
  r.counters.shared_wavefronts = 10'000'000;
  const double base = model_time(h200(), r, entry(), config(4096)).time_ns;
  auto with = [&](auto change) {
    GpuSpec g = h200();
    change(g);
    return model_time(g, r, entry(), config(4096)).time_ns;
  };
  EXPECT_LE(with([](GpuSpec& g) { g.sms *= 2; }), base);
  EXPECT_LE(with([](GpuSpec& g) { g.rates.fp32_lanes *= 2; }), base);
  EXPECT_LE(with([](GpuSpec& g) { g.l2_bytes_per_s *= 2; }), base);
  EXPECT_LT(with([](GpuSpec& g) { g.launch_ns /= 2; }), base);
  EXPECT_GT(with([](GpuSpec& g) { g.dram_bytes_per_s /= 2; }), base);
}

// A term alone must equal its limit: work divided by the peak of the whole chip.
TEST(ModelTime, KnownLimits) {
  const GpuSpec g = h200();
  const int64_t ctas = int64_t(g.sms) * 16;  // equally many on all SMs
  LaunchReport r;
  r.ctas_total = r.ctas_run = ctas;
  r.counters.by_pipe["fma"] = uint64_t(ctas) * 1'000'000;
  const double flops = double(ctas) * 1e6 * 64;
  EXPECT_NEAR(model_time(g, r, entry(), config(ctas)).terms_ns.at("fma"),
              flops / g.flops_per_s.at("fp32") * 1e9, 0.02 * flops / 66.9e12 * 1e9);
  r.counters.tensor_flops["fp16"] = 1'000'000'000'000;
  EXPECT_NEAR(model_time(g, r, entry(), config(ctas)).terms_ns.at("tensor"),
              1e12 / g.mma_flops_per_s.at("fp16") * 1e9, 1);
  // wgmma reaches the dense peak; for 8-bit types, twice the peak of fp16.
  for (const auto& [type, peak] :
       std::map<std::string, double>{{"wgmma_bf16", g.flops_per_s.at("bf16")},
                                     {"wgmma_tf32", g.flops_per_s.at("tf32")},
                                     {"wgmma_fp8", 2 * g.flops_per_s.at("fp16")},
                                     {"wgmma_int8", 2 * g.flops_per_s.at("fp16")}}) {
    LaunchReport w = r;
    w.counters.tensor_flops = {{type, 1'000'000'000'000}};
    EXPECT_NEAR(model_time(g, w, entry(), config(ctas)).terms_ns.at("tensor"), 1e12 / peak * 1e9, 1)
        << type;
  }
  // Shared memory: 128 bytes per clock and SM, which is one wavefront per clock.
  r.counters.shared_wavefronts = uint64_t(ctas) * 1000;
  EXPECT_NEAR(model_time(g, r, entry(), config(ctas)).terms_ns.at("shared"),
              16 * 1000 / g.clock_hz * 1e9, 1e-6);
  // One CTA uses one SM, so it takes as long as on a chip with one SM.
  LaunchReport one;
  one.ctas_total = one.ctas_run = 1;
  one.counters.by_pipe["fma"] = 1'000'000;
  EXPECT_NEAR(model_time(g, one, entry(), config(1)).terms_ns.at("fma"), 1e6 / 4 / g.clock_hz * 1e9,
              1e-6);
}

TEST(ModelTime, LoadsThatWaitForOneAnotherCostLatency) {
  // 1 GiB through 1056 CTAs of 8 warps: each warp has 248 requests of 512 bytes.
  LaunchReport r = stream(int64_t{1} << 30, 1056);
  r.counters.max_cta_instructions = 0;
  auto time = [&](uint64_t together) {
    r.counters.load_rounds = r.counters.global_load_requests / together;
    return model_time(h200(), r, entry(26), config(1056));  // 8 CTAs per SM
  };
  EXPECT_GT(time(1).terms_ns.at("latency"), 3.5 * time(4).terms_ns.at("latency"));
  EXPECT_EQ(time(1).terms_ns.at("dram"), time(4).terms_ns.at("dram"));
  // In flight: 1056 * 8 warps with 512 bytes each.
  EXPECT_NEAR(time(1).bytes_in_flight, 1056 * 8 * 512, 20000);
  EXPECT_NEAR(time(4).bytes_in_flight, 4 * 1056 * 8 * 512, 80000);
}

TEST(ModelTime, WhatACtaReadsAgainComesFromDramIfL2IsTooSmall) {
  auto dram = [](int64_t bytes_of_cta) {
    LaunchReport r = stream(bytes_of_cta * 1056, 1056);
    r.traffic[0].reread_sectors = r.traffic[0].load_sectors;  // a second pass
    r.traffic[0].load_sectors *= 2;
    const double once = 2.0 * double(bytes_of_cta) * 1056;
    return model_time(h200(), r, entry(26), config(1056)).terms_ns.at("dram") * 1e-9 *
           h200().dram_bytes_per_s * h200().latency.dram_efficiency / once;
  };
  EXPECT_NEAR(dram(32 << 10), 1.0, 1e-6);    // 35 MB fit in the 50 MB of L2
  EXPECT_NEAR(dram(1536 << 10), 1.5, 0.02);  // 1.6 GB do not fit
}

TEST(ModelTime, ReadsThatHitL1DoNotReachL2) {
  LaunchReport r = stream(1 << 24, 4096);
  const double all = model_time(h200(), r, entry(), config(4096)).terms_ns.at("l2");
  r.counters.l1_hit_sectors = r.counters.global_load_sectors;
  EXPECT_NEAR(model_time(h200(), r, entry(), config(4096)).terms_ns.at("l2"), all / 2, 1e-6);
}

TEST(Occupancy, NamesWhatLimitsIt) {
  auto of = [](const Entry& e, const LaunchConfig& c) { return occupancy_of(h200(), e, c); };
  // 64 warps of 32 registers fit: 8 CTAs of 256 threads.
  Occupancy o = of(entry(26), config(132 * 8));
  EXPECT_EQ(o.resident_ctas, 8);
  EXPECT_EQ(o.limited_by, CtaLimit::threads);
  EXPECT_EQ(o.share, 1);
  EXPECT_EQ(o.waves, 1);
  EXPECT_EQ(o.tail, 1);
  // 128 registers: 65536 / (128 * 256) = 2 CTAs.
  o = of(entry(122), config(132 * 8));
  EXPECT_EQ(o.resident_ctas, 2);
  EXPECT_EQ(o.limited_by, CtaLimit::registers);
  EXPECT_EQ(o.share, 0.25);
  EXPECT_EQ(o.waves, 4);
  // 100 KiB and 1 KiB reserved: 228 / 101 = 2 CTAs.
  o = of(entry(26), config(132 * 8, 256, 100 * 1024));
  EXPECT_EQ(o.resident_ctas, 2);
  EXPECT_EQ(o.limited_by, CtaLimit::shared_memory);
  o = of(entry(16), config(132 * 64, 32));
  EXPECT_EQ(o.resident_ctas, 32);
  EXPECT_EQ(o.limited_by, CtaLimit::blocks);
  o = of(entry(26), config(66));
  EXPECT_EQ(o.limited_by, CtaLimit::grid);
  EXPECT_EQ(o.share, 0.125);
  o = of(entry(26), config(132 * 8 + 132));
  EXPECT_EQ(o.waves, 2);
  EXPECT_DOUBLE_EQ(o.tail, 0.125);
}

}  // namespace
}  // namespace cutegen::ptx
