// SPDX-License-Identifier: Apache-2.0
// The time model. Every term is a time for the whole grid if only that resource counted.
#include <algorithm>
#include <cmath>

#include "ptx/machine.h"

namespace cutegen::ptx {
namespace {

constexpr double kSoftness = 5;           // of the soft maximum
constexpr double kDramEfficiency = 0.92;  // of the nominal bandwidth that copies reach
constexpr double kDramLatencyNs = 400;
constexpr double kLoadCycles = 600, kSharedCycles = 30, kShuffleCycles = 25, kBarrierCycles = 30,
                 kSfuCycles = 20, kIssueCycles = 4;
constexpr double kMostOutstanding = 4;  // loads a warp keeps in flight

struct Shape {
  double ctas = 0, threads = 0, warps = 0, resident = 1, sms = 1, clock = 1e9;
  double per_sm = 1;  // CTAs that the busiest SM runs
  double waves = 1;
};

Shape shape_of(const GpuSpec& gpu, const Entry& entry, const LaunchConfig& c) {
  Shape s;
  s.ctas = double(c.grid[0]) * double(c.grid[1]) * double(c.grid[2]);
  s.threads = double(c.block[0] * c.block[1] * c.block[2]);
  s.warps = std::ceil(s.threads / 32);
  s.sms = std::max(1, gpu.sms);
  s.clock = gpu.clock_hz > 0 ? gpu.clock_hz : 1.5e9;
  const double registers =
      std::clamp(std::ceil((entry.registers_estimate + 6) / 8.0) * 8, 16.0, 255.0);
  const double shared = double(entry.static_shared_bytes + c.shared_bytes) + 1024;
  double resident = gpu.max_blocks_per_sm;
  resident = std::min(resident, std::floor(gpu.max_threads_per_sm / (s.warps * 32)));
  resident = std::min(resident, std::floor(gpu.registers_per_sm / (registers * s.warps * 32)));
  resident = std::min(resident, std::floor(double(gpu.shared_bytes_per_sm) / shared));
  s.resident = std::max(1.0, resident);
  s.per_sm = std::ceil(s.ctas / s.sms);
  s.waves = std::ceil(s.ctas / (s.resident * s.sms));
  return s;
}

double kind(const Counters& c, const char* name) {
  auto it = c.by_kind.find(name);
  return it == c.by_kind.end() ? 0 : double(it->second);
}

// Bytes that must cross the DRAM bus: each buffer's sectors, at most its size once each way.
double dram_bytes(const LaunchReport& report, double scale) {
  double bytes = 0;
  for (const BufferTraffic& t : report.traffic) {
    const double size = double((t.bytes + 31) / 32 * 32);
    bytes += std::min(size, scale * double(t.load_sectors) * 32);
    bytes += std::min(size, scale * double(t.store_sectors) * 32);
  }
  return bytes;
}

double dram_efficiency(const GpuSpec& gpu, const Counters& c, const Shape& s, double ctas_run) {
  if (c.global_load_requests == 0) return kDramEfficiency;
  const double requests = double(c.global_load_requests);
  const double per_request = double(c.global_load_sectors) * 32 / requests;
  const double per_warp = requests / std::max(1.0, ctas_run * s.warps);
  const double warps = std::min(s.ctas, s.resident * s.sms) * s.warps;
  const double in_flight = warps * std::clamp(per_warp, 1.0, kMostOutstanding) * per_request;
  return std::min(kDramEfficiency, in_flight / (gpu.dram_bytes_per_s * kDramLatencyNs * 1e-9));
}

// The longest chain of one CTA, as if nothing in a warp overlapped but its loads.
double latency_cycles(const Counters& c, const Shape& s, double ctas_run) {
  const double warps = std::max(1.0, ctas_run * s.warps);
  const double loads = double(c.global_load_requests) / warps;
  const double shared = (kind(c, "ld_shared") + kind(c, "atomic")) / warps;
  return double(c.max_cta_instructions) / s.warps * kIssueCycles +
         loads / std::clamp(loads, 1.0, kMostOutstanding) * kLoadCycles + shared * kSharedCycles +
         kind(c, "shuffle") / warps * kShuffleCycles + double(c.barriers) / warps * kBarrierCycles +
         kind(c, "sfu") / warps * kSfuCycles;
}

}  // namespace

ModelledTime model_time(const GpuSpec& gpu, const LaunchReport& report, const Entry& entry,
                        const LaunchConfig& config) {
  ModelledTime out;
  const Counters& c = report.counters;
  const Shape s = shape_of(gpu, entry, config);
  const double run = double(std::max<int64_t>(1, report.ctas_run));
  const double scale = s.ctas / run;
  // Cycles of the busiest SM for `work` (of all CTAs that ran) at `rate` a cycle.
  auto busiest = [&](double work, double rate) {
    return work / run * s.per_sm / rate / s.clock * 1e9;
  };
  auto& t = out.terms_ns;
  t["issue"] = busiest(double(c.warp_instructions), 4);
  t["fma"] = busiest(kind(c, "fma") + kind(c, "fp32") + kind(c, "half"), 4);
  t["alu"] = busiest(kind(c, "integer") + kind(c, "compare"), 2);
  t["sfu"] = busiest(kind(c, "sfu") + kind(c, "convert"), 0.5);
  t["fp64"] = busiest(kind(c, "fp64"), 2);
  const double sectors = double(c.global_load_sectors + c.global_store_sectors);
  const double requests = double(c.global_load_requests + c.global_store_requests);
  t["l1"] = busiest(std::max(requests, sectors / 4), 1);
  t["shared"] = busiest(double(c.shared_requests), 1);
  t["l2"] = gpu.l2_bytes_per_s > 0 ? scale * sectors * 32 / gpu.l2_bytes_per_s * 1e9 : 0;
  if (gpu.dram_bytes_per_s > 0) {
    t["dram"] =
        dram_bytes(report, scale) / (gpu.dram_bytes_per_s * dram_efficiency(gpu, c, s, run)) * 1e9;
  }
  t["latency"] = s.waves * latency_cycles(c, s, run) / s.clock * 1e9;
  double largest = 0, sum = 0;
  for (const auto& [name, ns] : t) {
    if (ns > largest) largest = ns, out.bound_by = name;
  }
  for (const auto& [name, ns] : t) sum += largest > 0 ? std::pow(ns / largest, kSoftness) : 0;
  const double body = largest > 0 ? largest * std::pow(sum, 1 / kSoftness) : 0;
  if (gpu.launch_ns > largest) out.bound_by = "launch";
  t["launch"] = gpu.launch_ns;
  out.time_ns = gpu.launch_ns + body;
  return out;
}

}  // namespace cutegen::ptx
