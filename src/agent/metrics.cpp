// SPDX-License-Identifier: Apache-2.0
#include "agent/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/units.h"

namespace cutegen::agent {
namespace {

constexpr double kSectorBytes = 32;
constexpr const char* kNotCounted = "not counted on this device";
constexpr const char* kNoStalls = "a simulator does not sample waiting warps";

using Value = std::optional<double>;

// The counters of one kernel. If a counter is missing, everything computed from it is empty.
class Figures {
 public:
  Figures(const KernelProfile& kernel, const GpuSpec& gpu) : k_(kernel), gpu_(gpu) {}

  Value of(const std::string& name) const {
    auto it = k_.counters.find(name);
    return it == k_.counters.end() ? std::nullopt : Value(it->second);
  }
  // Prefers the GPU's own counter over the value derived from the simulator's counters.
  Value counted(const std::string& name, Value else_this) const {
    auto own = k_.origin == Origin::measured ? of(name) : std::nullopt;
    return own ? own : else_this;
  }
  Value cycles() const {
    return k_.time_ns > 0 ? Value(k_.time_ns * 1e-9 * gpu_.clock_hz) : std::nullopt;
  }
  // The largest of some terms, in percent of the kernel's time. A term is the time that its unit
  // alone would take.
  Value busy(std::initializer_list<const char*> terms) const {
    Value most;
    for (const char* term : terms)
      if (auto ns = of(std::string("modelled_ns.") + term)) most = std::max(most.value_or(0), *ns);
    return most && k_.time_ns > 0 ? Value(std::min(100.0, 100 * *most / k_.time_ns)) : std::nullopt;
  }
  Value percent(Value part, Value whole) const {
    return part && whole && *whole > 0 ? Value(100 * *part / *whole) : std::nullopt;
  }
  Value dram_bytes() const {
    Value read = of("dram_read_bytes"), written = of("dram_write_bytes");
    return read && written ? Value(*read + *written) : std::nullopt;
  }
  Value dram_rate() const {
    Value bytes = dram_bytes();
    return bytes && k_.time_ns > 0 ? Value(*bytes / k_.time_ns * 1e9) : std::nullopt;
  }
  // Sectors that reach the L2.
  Value l2_sectors() const {
    Value loads = of("global_load_sectors"), hits = of("l1_hit_sectors"),
          stores = of("global_store_sectors"), atomics = of("global_atomic_sectors");
    if (!loads || !hits || !stores || !atomics) return std::nullopt;
    return *loads - std::min(*hits, *loads) + *stores + *atomics;
  }
  Value l2_hit_rate() const {
    Value sectors = l2_sectors(), bytes = dram_bytes();
    if (!sectors || !bytes || *sectors <= 0) return std::nullopt;
    return std::clamp(100 * (1 - *bytes / kSectorBytes / *sectors), 0.0, 100.0);
  }
  // A kernel without branches counts as uniform.
  Value uniform_branches() const {
    Value all = of("branches"), divergent = of("divergent_branches");
    if (!all || !divergent) return std::nullopt;
    return *all > 0 ? 100 * (1 - std::min(1.0, *divergent / *all)) : 100;
  }

 private:
  const KernelProfile& k_;
  const GpuSpec& gpu_;
};

std::string value_text(double value) {
  if (value != 0 && (std::abs(value) >= 1e7 || std::abs(value) < 1e-3))
    return fmt::format("{:.4g}", value);
  return value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.3f}", value);
}

}  // namespace

std::vector<Metric> judge_metrics(const KernelProfile& kernel, const GpuSpec& gpu) {
  const Figures f(kernel, gpu);
  const std::string stalled = "smsp__warp_issue_stalled_";
  const char* no_stalls = kernel.origin == Origin::measured ? kNotCounted : kNoStalls;
  auto stall = [&](const std::string& ours, const std::string& theirs) {
    Value share = f.of("stall_pct." + theirs);
    return Metric{.name = ours,
                  .nearest = stalled + theirs + "_per_warp_active.pct",
                  .value = share,
                  .why = share ? "" : no_stalls};
  };
  std::vector<Metric> out{
      {.name = "elapsed_cycles",
       .nearest = "sm__cycles_active.avg",
       .value = f.counted("cycles_active", f.cycles())},
      {.name = "occupancy_pct",
       .nearest = "sm__warps_active.avg.pct_of_peak_sustained_active",
       .value = f.percent(f.counted("occupancy_achieved", f.of("occupancy")), 1)},
      {.name = "warp_instructions",
       .nearest = "sm__inst_executed.sum",
       .value = f.of("warp_instructions")},
      {.name = "fp32_pipe_pct",
       .nearest = "sm__inst_executed_pipe_fp32.avg.pct_of_peak_sustained_active",
       .value = f.counted("pipe_pct.fma", f.busy({"fma"}))},
      {.name = "tensor_pipe_pct",
       .nearest = "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
       .value = f.counted("pipe_pct.tensor", f.busy({"tensor"}))},
      {.name = "limit_by_block_slots",
       .nearest = "launch__occupancy_limit_blocks",
       .value = f.of("limit_ctas.blocks")},
      {.name = "limit_by_registers",
       .nearest = "launch__occupancy_limit_registers",
       .value = f.of("limit_ctas.registers")},
      {.name = "limit_by_shared_memory",
       .nearest = "launch__occupancy_limit_shared_mem",
       .value = f.of("limit_ctas.shared memory")},
      {.name = "registers_per_thread",
       .nearest = "launch__registers_per_thread",
       .value = f.of("registers")},
      {.name = "dram_read_bytes",
       .nearest = "dram__bytes_read.sum",
       .value = f.of("dram_read_bytes")},
      {.name = "dram_write_bytes",
       .nearest = "dram__bytes_write.sum",
       .value = f.of("dram_write_bytes")},
      {.name = "dram_bytes_per_s",
       .nearest = "dram__bytes.sum.per_second",
       .value = f.counted("dram_bytes_per_s", f.dram_rate())},
      {.name = "dram_busy_pct",
       .nearest = "dram__throughput.avg.pct_of_peak_sustained_elapsed",
       .value = f.counted("dram_busy_pct", f.busy({"dram"}))},
      {.name = "dram_of_peak_pct",
       .nearest = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
       .value = f.counted("dram_pct", f.percent(f.dram_rate(), gpu.dram_bytes_per_s))},
      {.name = "l1_hit_pct",
       .nearest = "l1tex__t_sector_hit_rate.pct",
       .value =
           f.counted("l1_hit_pct", f.percent(f.of("l1_hit_sectors"), f.of("global_load_sectors")))},
      {.name = "l1_busy_pct",
       .nearest = "l1tex__throughput.avg.pct_of_peak_sustained_active",
       .value = f.counted("l1_pct", f.busy({"l1", "lsu", "shared"}))},
      {.name = "l2_hit_pct",
       .nearest = "lts__t_sector_hit_rate.pct",
       .value = f.counted("l2_hit_pct", f.l2_hit_rate())},
      {.name = "l2_busy_pct",
       .nearest = "lts__throughput.avg.pct_of_peak_sustained_active",
       .value = f.counted("l2_busy_pct", f.busy({"l2"}))},
      stall("stalled_memory_dependency_pct", "memory_dependency"),
      stall("stalled_short_scoreboard_pct", "short_scoreboard"),
      stall("stalled_long_scoreboard_pct", "long_scoreboard"),
      stall("stalled_barrier_pct", "barrier"),
      stall("stalled_branch_resolving_pct", "branch_resolving"),
      {.name = "uniform_branches_pct",
       .nearest = "smsp__sass_average_branch_targets_threads_uniform.pct",
       .value = f.counted("uniform_branches_pct", f.uniform_branches())}};
  CG_ASSERT(out.size() == kJudgeMetrics);
  for (Metric& m : out)
    if (!m.value && m.why.empty()) m.why = kNotCounted;
  return out;
}

std::string describe_metrics(const Profile& profile, const GpuSpec& gpu, size_t most) {
  std::vector<const KernelProfile*> slowest;
  slowest.reserve(profile.kernels.size());
  for (const KernelProfile& k : profile.kernels) slowest.push_back(&k);
  std::stable_sort(slowest.begin(), slowest.end(),
                   [](auto* a, auto* b) { return a->time_ns > b->time_ns; });
  slowest.resize(std::min(slowest.size(), most));
  std::string out;
  for (const KernelProfile* k : slowest) {
    out += fmt::format("{} ({} {}), with the nearest metric of Nsight Compute:\n",
                       replace_all(sanitize(k->kernel, 80), "\n", " "), human_ns(k->time_ns),
                       to_string(k->origin));
    for (const Metric& m : judge_metrics(*k, gpu))
      out += fmt::format("- {} = {} ({})\n", m.name,
                         m.value ? value_text(*m.value) : "skipped: " + m.why, m.nearest);
  }
  return out;
}

}  // namespace cutegen::agent
