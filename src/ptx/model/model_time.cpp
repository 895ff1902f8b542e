// SPDX-License-Identifier: Apache-2.0
#include "ptx/model/model_time.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace cutegen::ptx {
namespace {

constexpr double kSoftness = 5;         // exponent of the soft maximum
constexpr double kMostOutstanding = 4;  // loads that one warp keeps in flight
constexpr double kSectorBytes = 32;

struct Grid {
  double ctas = 1, warps = 1;  // CTAs of the grid; warps of a CTA
};

Grid grid_of(const LaunchConfig& c) {
  return {.ctas = double(c.grid[0]) * double(c.grid[1]) * double(c.grid[2]),
          .warps = std::ceil(double(c.block[0] * c.block[1] * c.block[2]) / 32)};
}

double count(const std::map<std::string, uint64_t>& of, const char* name) {
  auto it = of.find(name);
  return it == of.end() ? 0 : double(it->second);
}

struct DramBytes {
  double read = 0, written = 0;
};

// Bytes that DRAM must move: for each buffer, the loaded and the stored bytes, each at most the
// buffer's size. If the L2 cannot hold the data of all resident CTAs, DRAM also serves rereads.
DramBytes dram_bytes(const GpuSpec& gpu, const LaunchReport& report, const Grid& g,
                     const Occupancy& o) {
  DramBytes bytes;
  double own = 0, again = 0;
  for (const BufferTraffic& t : report.traffic) {
    const double size = double((t.bytes + 31) / 32 * 32);
    const double loads = double(t.load_sectors) * kSectorBytes,
                 rereads = double(std::min(t.reread_sectors, t.load_sectors)) * kSectorBytes;
    bytes.read += std::min(size, loads);
    bytes.written += std::min(size, double(t.store_sectors) * kSectorBytes);
    own += rereads > 0 ? (loads - rereads) / g.ctas : 0;
    again += rereads;
  }
  const double resident = std::min(g.ctas, o.resident_ctas * gpu.sms) * own;
  const double lost = resident > 0 ? std::max(0.0, 1 - double(gpu.l2_bytes) / resident) : 0;
  bytes.read += again * lost;
  return bytes;
}

// The number of times that a warp waits for global loads.
double rounds_of_warp(const Counters& c, const Grid& g) {
  const double requests = double(c.global_load_requests);
  const double rounds = c.load_rounds > 0 ? double(c.load_rounds) : requests;
  return std::min(rounds, requests) / std::max(1.0, g.ctas * g.warps);
}

// The bytes that the resident warps have in flight at once, for Little's law.
double bytes_in_flight(const GpuSpec& gpu, const Counters& c, const Grid& g, const Occupancy& o) {
  const double bytes = double(c.global_load_sectors + c.tma_load_sectors) * kSectorBytes;
  const double rounds = std::max(1.0, rounds_of_warp(c, g)) * g.ctas * g.warps;
  return std::min(g.ctas, o.resident_ctas * gpu.sms) * g.warps * bytes / rounds;
}

// The time of one CTA alone. If no Chain followed a warp, returns an estimate in which only loads
// of one group overlap.
double chain_clocks(const GpuSpec& gpu, const LaunchReport& report, const Grid& g) {
  const GpuLatency& l = gpu.latency;
  if (report.chain_clocks > 0) return l.cta + report.chain_clocks;
  const Counters& c = report.counters;
  const double warps = std::max(1.0, g.ctas * g.warps);
  const double shared = (count(c.by_kind, "ld_shared") + count(c.by_kind, "atomic")) / warps;
  return l.cta + double(c.max_cta_instructions) / g.warps * l.arithmetic +
         rounds_of_warp(c, g) * l.global + shared * l.shared +
         count(c.by_kind, "shuffle") / warps * l.shuffle + double(c.barriers) / warps * l.barrier +
         count(c.by_pipe, "xu") / warps * l.special +
         count(c.by_pipe, "tensor") / warps * (l.tensor - l.arithmetic);
}

// Operations per second of the tensor pipe; 0: not known. wgmma reaches the dense peak; 8-bit types
// reach twice the peak of fp16. No measurement on a GPU backs this.
double tensor_rate(const GpuSpec& gpu, std::string_view type) {
  constexpr std::string_view kGroup = "wgmma_";
  static const std::set<std::string_view> kBytes{"fp8", "int8"};
  const bool group = type.starts_with(kGroup);
  const auto& rates = group ? gpu.flops_per_s : gpu.mma_flops_per_s;
  if (group) type.remove_prefix(kGroup.size());
  const bool bytes = group && (kBytes.contains(type));
  const auto rate = rates.find(bytes ? "fp16" : std::string(type));
  return rate == rates.end() ? 0 : rate->second * (bytes ? 2 : 1);
}

// Adds the time that each pipe of the busiest SM would take alone.
void pipe_terms(const GpuSpec& gpu, const Counters& c, const Grid& g,
                std::map<std::string, double>& t) {
  const GpuRates& r = gpu.rates;
  const double per_sm = std::ceil(g.ctas / gpu.sms) / g.ctas;  // its share of the grid
  auto busiest = [&](double work, double a_clock) {
    return a_clock > 0 ? work * per_sm / a_clock / gpu.clock_hz * 1e9 : 0;
  };
  auto pipe = [&](const char* name) { return count(c.by_pipe, name); };
  t["issue"] = busiest(double(std::max(c.issue_slots, c.warp_instructions)), r.schedulers);
  t["fma"] = busiest(pipe("fma"), r.fp32_lanes / 32);
  t["half"] = busiest(pipe("half"), r.half_lanes / 32);
  t["alu"] = busiest(pipe("alu"), r.integer_lanes / 32);
  t["xu"] = busiest(pipe("xu") + double(c.special_slots), r.special_lanes / 32);
  t["convert"] = busiest(pipe("convert"), r.convert_lanes / 32);
  t["fp64"] = busiest(pipe("fp64"), r.fp64_lanes / 32);
  t["lsu"] = busiest(pipe("lsu"), r.load_store_lanes / 32);
  double tensor = 0;
  for (const auto& [type, flops] : c.tensor_flops) {
    tensor += busiest(double(flops), tensor_rate(gpu, type) / gpu.sms / gpu.clock_hz);
  }
  t["tensor"] = tensor;
  const double sectors = double(c.global_load_sectors + c.global_store_sectors +
                                c.global_atomic_sectors + c.local_sectors);
  t["l1"] = busiest(sectors * kSectorBytes, r.l1_bytes);
  t["shared"] = busiest(double(c.shared_wavefronts) * 128, r.shared_bytes);
  // Assumes that an SM's copy engine moves as many bytes as its L1. No measurement backs this.
  const double copied = double(c.tma_load_sectors + c.tma_store_sectors) * kSectorBytes;
  if (copied > 0) t["tma"] = busiest(copied, r.l1_bytes);
}

// The p-norm of the terms: the largest term, and a little more if others come near it.
double soft_maximum(const std::map<std::string, double>& terms, double largest) {
  if (largest <= 0) return 0;
  double sum = 0;
  for (const auto& [name, ns] : terms) sum += std::pow(ns / largest, kSoftness);
  return largest * std::pow(sum, 1 / kSoftness);
}

}  // namespace

ModelledTime model_time(const GpuSpec& gpu, const LaunchReport& report, const Entry& entry,
                        const LaunchConfig& config) {
  CG_ASSERT(gpu.sms > 0 && gpu.clock_hz > 0 && gpu.dram_bytes_per_s > 0 && gpu.l2_bytes_per_s > 0);
  ModelledTime out;
  const Counters& c = report.counters;
  const Grid g = grid_of(config);
  out.occupancy = occupancy_of(gpu, entry, config);
  auto& t = out.terms_ns;
  pipe_terms(gpu, c, g, t);
  const double to_l2 =
      double(c.global_load_sectors - std::min(c.l1_hit_sectors, c.global_load_sectors)) +
      double(c.global_store_sectors + c.global_atomic_sectors) +
      double(c.tma_load_sectors + c.tma_store_sectors);
  t["l2"] = to_l2 * kSectorBytes / gpu.l2_bytes_per_s * 1e9;
  out.bytes_in_flight = bytes_in_flight(gpu, c, g, out.occupancy);
  out.bytes_to_saturate = gpu.dram_bytes_per_s * gpu.latency.global / gpu.clock_hz;
  // If too few loads are in flight, `latency` shows it: waves times the time of one CTA.
  const DramBytes bytes = dram_bytes(gpu, report, g, out.occupancy);
  out.dram_read_bytes = bytes.read, out.dram_write_bytes = bytes.written;
  t["dram"] =
      (bytes.read + bytes.written) / (gpu.dram_bytes_per_s * gpu.latency.dram_efficiency) * 1e9;
  t["latency"] = out.occupancy.waves * chain_clocks(gpu, report, g) / gpu.clock_hz * 1e9 +
                 std::max(report.most_sleep_ns, report.mean_sleep_ns * out.occupancy.waves);

  double largest = 0, second = 0;
  for (const auto& [name, ns] : t) {
    if (ns > largest) {
      second = largest, out.next = out.bound_by;
      largest = ns, out.bound_by = name;
    } else if (ns > second) {
      second = ns, out.next = name;
    }
  }
  const double body = soft_maximum(t, largest);
  if (gpu.launch_ns > largest) {
    out.next = out.bound_by, second = largest;
    out.bound_by = "launch", largest = gpu.launch_ns;
  }
  out.lead = second > 0 ? largest / second : 1;
  t["launch"] = gpu.launch_ns;
  out.time_ns = gpu.launch_ns + body;
  return out;
}

}  // namespace cutegen::ptx
