// SPDX-License-Identifier: Apache-2.0
#include "eval/diagnosis/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

namespace cutegen::eval {
namespace {

constexpr double kBusy = 80, kWaits = 60, kLead = 10;  // percent; the thresholds of ncu's rule

using CounterMap = std::map<std::string, double>;

std::optional<double> find(const CounterMap& counters, const std::string& name) {
  auto at = counters.find(name);
  return at == counters.end() ? std::nullopt : std::optional(at->second);
}

struct Use {
  std::string unit;
  double pct = 0;
};

// Utilization of the device's compute and memory, and the busiest unit of each.
struct Uses {
  Use compute, memory;
};

void take_larger(Use& use, const std::string& unit, std::optional<double> pct) {
  if (pct && (use.unit.empty() || *pct > use.pct)) use = {.unit = unit, .pct = *pct};
}

// Takes the unit whose percentage is nearest to ncu's aggregate `sum`. The largest percentage may
// belong to a unit that is not part of the aggregate.
void take_nearest(Use& use, double sum, const std::string& unit, std::optional<double> pct) {
  if (pct && (use.unit.empty() || std::abs(*pct - sum) < std::abs(use.pct - sum)))
    use = {.unit = unit, .pct = *pct};
}

// Takes ncu's aggregates for compute and memory. The units only explain the aggregates.
std::optional<Uses> measured_uses(const CounterMap& c) {
  auto compute = find(c, "compute_pct"), memory = find(c, "memory_pct");
  if (!compute || !memory) return std::nullopt;
  Uses out;
  take_nearest(out.compute, *compute, "issue", find(c, "issue_pct"));
  const std::string prefix = "pipe_pct.";
  for (const auto& [name, pct] : c)
    if (name.starts_with(prefix))
      take_nearest(out.compute, *compute, name.substr(prefix.size()), pct);
  take_nearest(out.memory, *memory, "dram", find(c, "dram_pct"));
  take_nearest(out.memory, *memory, "l2", find(c, "l2_pct"));
  take_nearest(out.memory, *memory, "l1", find(c, "l1_pct"));
  if (out.compute.unit.empty()) out.compute.unit = "compute";
  if (out.memory.unit.empty()) out.memory.unit = "memory";
  out.compute.pct = *compute, out.memory.pct = *memory;
  return out;
}

// Divides each term of the time model by the measured or modelled time without the launch. Like the
// hardware counter, DRAM is relative to the bandwidth of the data sheet.
std::optional<Uses> modelled_uses(const KernelProfile& k, const GpuSpec& gpu, double measured_ns) {
  const CounterMap& c = k.counters;
  const double launch = find(c, "modelled_ns.launch").value_or(0),
               whole = measured_ns > 0 ? measured_ns : k.time_ns;
  const double busy_ns = std::max(whole - launch, 0.05 * whole);
  if (busy_ns <= 0) return std::nullopt;
  auto pct = [&](const char* term) -> std::optional<double> {
    auto ns = find(c, std::string("modelled_ns.") + term);
    return ns ? std::optional(std::min(100.0, 100 * *ns / busy_ns)) : std::nullopt;
  };
  Uses out;
  for (const char* term : {"issue", "fma", "half", "alu", "xu", "convert", "fp64", "tensor"})
    take_larger(out.compute, term, pct(term));
  // ncu counts loads and stores in both aggregates, with slightly more weight in memory.
  for (const char* term : {"l2", "l1", "shared", "lsu"}) take_larger(out.memory, term, pct(term));
  auto read = find(c, "dram_read_bytes"), written = find(c, "dram_write_bytes");
  if (read && written && gpu.dram_bytes_per_s > 0)
    take_larger(out.memory, "dram",
                std::min(100.0, 100 * (*read + *written) / busy_ns * 1e9 / gpu.dram_bytes_per_s));
  if (out.compute.unit.empty() || out.memory.unit.empty()) return std::nullopt;
  return out;
}

std::string of_peak(const Use& use) {
  return fmt::format("{} at {:.0f}% of its peak", use.unit, use.pct);
}

// States in which a warp does not wait.
const std::set<std::string> kNoStalls{"selected", "not_selected"};

// Names the most frequent stall of a latency-bound kernel.
std::string waits_for(const KernelProfile& k) {
  const std::string prefix = "stall_pct.";
  std::string most;
  double share = 0;
  for (const auto& [name, pct] : k.counters) {
    if (!name.starts_with(prefix) || pct <= share) continue;
    const std::string stall = name.substr(prefix.size());
    if (!kNoStalls.contains(stall)) most = stall, share = pct;
  }
  if (most.empty()) return {};
  return fmt::format("; warps wait for {} {:.0f}% of the time", most, share);
}

void put(KernelProfile& k, const Uses& uses) {
  Diagnosis& d = k.diagnosis;
  d.origin = k.origin;
  d.bound = bound_of(uses.compute.pct, uses.memory.pct);
  const bool by_compute =
      d.bound == Bound::compute || (d.bound != Bound::memory && uses.compute.pct > uses.memory.pct);
  const Use &first = by_compute ? uses.compute : uses.memory,
            &second = by_compute ? uses.memory : uses.compute;
  d.unit = first.unit;
  d.evidence = {{.name = "compute_pct", .value = uses.compute.pct, .unit = "%"},
                {.name = "memory_pct", .value = uses.memory.pct, .unit = "%"}};
  const auto waves = find(k.counters, "waves");
  if (d.bound == Bound::latency && waves && *waves < 1)
    d.summary = fmt::format("latency bound: the grid fills {:.2f} of a wave; {}, {}", *waves,
                            of_peak(first), of_peak(second));
  else if (d.bound == Bound::latency)
    d.summary = fmt::format("latency bound: nothing is busy: {}, {}{}", of_peak(first),
                            of_peak(second), waits_for(k));
  else if (d.bound == Bound::balanced)
    d.summary =
        fmt::format("compute and memory are balanced: {}, {}", of_peak(first), of_peak(second));
  else
    d.summary =
        fmt::format("{} bound: {}, {}", to_string(d.bound), of_peak(first), of_peak(second));
  constexpr std::pair<const char*, const char*> kMore[] = {{"dram_pct", "%"},
                                                           {"l2_pct", "%"},
                                                           {"l1_pct", "%"},
                                                           {"issue_pct", "%"},
                                                           {"occupancy", "of 1"},
                                                           {"occupancy_achieved", "of 1"},
                                                           {"waves", "waves"},
                                                           {"last_wave", "of 1"},
                                                           {"registers", "of a thread"},
                                                           {"shared_conflicts", "wavefronts"},
                                                           {"local_sectors", "sectors"}};
  for (const auto& [name, unit] : kMore)
    if (auto value = find(k.counters, name))
      d.evidence.push_back({.name = name, .value = *value, .unit = unit});
  if (k.bound_by.empty()) k.bound_by = d.bound == Bound::latency ? gpu_unit::latency : d.unit;
}

}  // namespace

Bound bound_of(double compute_pct, double memory_pct) {
  const double most = std::max(compute_pct, memory_pct);
  const Bound larger = compute_pct >= memory_pct ? Bound::compute : Bound::memory;
  if (most >= kBusy) return larger;
  if (most < kWaits) return Bound::latency;
  const bool apart = std::max(compute_pct - memory_pct, memory_pct - compute_pct) >= kLead;
  return apart ? larger : Bound::balanced;
}

void diagnose(KernelProfile& kernel, const GpuSpec& gpu, double measured_ns) {
  auto uses = kernel.origin == Origin::measured ? measured_uses(kernel.counters)
                                                : modelled_uses(kernel, gpu, measured_ns);
  if (!uses) return;
  put(kernel, *uses);
  if (kernel.origin != Origin::measured && measured_ns > 0)
    kernel.diagnosis.evidence.push_back(
        {.name = "measured_ns", .value = measured_ns, .unit = "ns"});
}

void diagnose_by_roofline(KernelProfile& kernel, const GpuSpec& gpu, const LeastWork& work) {
  auto flops = gpu.flops_per_s.find(to_string(work.math_mode));
  if (work.time_ns <= 0 || gpu.dram_bytes_per_s <= 0 || flops == gpu.flops_per_s.end()) return;
  Uses uses;
  uses.memory = {.unit = "dram",
                 .pct = 100 * work.bytes / work.time_ns * 1e9 / gpu.dram_bytes_per_s};
  uses.compute = {.unit = to_string(work.math_mode),
                  .pct = 100 * work.flops / work.time_ns * 1e9 / flops->second};
  put(kernel, uses);
  kernel.diagnosis.summary += "; computed from the task's least work, so extra work does not show";
}

}  // namespace cutegen::eval
