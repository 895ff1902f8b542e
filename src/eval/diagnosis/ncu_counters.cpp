// SPDX-License-Identifier: Apache-2.0
#include "eval/diagnosis/ncu_counters.h"

#include <algorithm>

namespace cutegen::eval {
namespace {

constexpr const char* kAny = "*";  // the unit of a count varies: "inst", "sector", "block"

struct Known {
  const char* metric;
  const char* name;
  const char* unit = kAny;
  double scale = 1;
};

constexpr Known kKnown[] = {
    {.metric = "gpu__time_duration.sum", .name = "time_ns", .unit = "ns"},
    // Utilization of compute, memory and their units.
    {.metric = "sm__throughput.avg.pct_of_peak_sustained_elapsed",
     .name = "compute_pct",
     .unit = "%"},
    {.metric = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
     .name = "memory_pct",
     .unit = "%"},
    {.metric = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
     .name = "dram_pct",
     .unit = "%"},
    {.metric = "lts__throughput.avg.pct_of_peak_sustained_elapsed", .name = "l2_pct", .unit = "%"},
    {.metric = "l1tex__throughput.avg.pct_of_peak_sustained_active", .name = "l1_pct", .unit = "%"},
    {.metric = "sm__inst_issued.avg.pct_of_peak_sustained_active",
     .name = "issue_pct",
     .unit = "%"},
    {.metric = "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active",
     .name = "pipe_pct.alu",
     .unit = "%"},
    {.metric = "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
     .name = "pipe_pct.fma",
     .unit = "%"},
    {.metric = "sm__inst_executed_pipe_fma_type_fp16.avg.pct_of_peak_sustained_active",
     .name = "pipe_pct.half",
     .unit = "%"},
    {.metric = "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active",
     .name = "pipe_pct.fp64",
     .unit = "%"},
    {.metric = "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active",
     .name = "pipe_pct.lsu",
     .unit = "%"},
    {.metric = "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
     .name = "pipe_pct.xu",
     .unit = "%"},
    {.metric = "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
     .name = "pipe_pct.tensor",
     .unit = "%"},
    {.metric = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
     .name = "pipe_pct.tensor",
     .unit = "%"},
    // The launch.
    {.metric = "launch__registers_per_thread", .name = "registers"},
    {.metric = "launch__grid_size", .name = "ctas"},
    {.metric = "launch__block_size", .name = "block_threads"},
    {.metric = "launch__waves_per_multiprocessor", .name = "waves"},
    {.metric = "launch__occupancy_limit_blocks", .name = "limit_ctas.blocks"},
    {.metric = "launch__occupancy_limit_registers", .name = "limit_ctas.registers"},
    {.metric = "launch__occupancy_limit_shared_mem", .name = "limit_ctas.shared memory"},
    {.metric = "launch__occupancy_limit_warps", .name = "limit_ctas.threads"},
    {.metric = "sm__maximum_warps_per_active_cycle_pct",
     .name = "occupancy",
     .unit = "%",
     .scale = 0.01},
    {.metric = "sm__warps_active.avg.pct_of_peak_sustained_active",
     .name = "occupancy_achieved",
     .unit = "%",
     .scale = 0.01},
    // Work.
    {.metric = "sm__cycles_active.avg", .name = "cycles_active"},
    {.metric = "smsp__inst_executed.sum", .name = "warp_instructions"},
    {.metric = "smsp__thread_inst_executed_per_inst_executed.ratio", .name = "active_lanes"},
    {.metric = "smsp__sass_average_branch_targets_threads_uniform.pct",
     .name = "uniform_branches_pct",
     .unit = "%"},
    // Memory.
    {.metric = "dram__bytes_read.sum", .name = "dram_read_bytes", .unit = "byte"},
    {.metric = "dram__bytes_write.sum", .name = "dram_write_bytes", .unit = "byte"},
    {.metric = "dram__bytes.sum.per_second", .name = "dram_bytes_per_s", .unit = "byte/s"},
    {.metric = "dram__throughput.avg.pct_of_peak_sustained_elapsed",
     .name = "dram_busy_pct",
     .unit = "%"},
    {.metric = "l1tex__t_sector_hit_rate.pct", .name = "l1_hit_pct", .unit = "%"},
    {.metric = "lts__t_sector_hit_rate.pct", .name = "l2_hit_pct", .unit = "%"},
    {.metric = "lts__throughput.avg.pct_of_peak_sustained_active",
     .name = "l2_busy_pct",
     .unit = "%"},
    {.metric = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", .name = "global_load_requests"},
    {.metric = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", .name = "global_load_sectors"},
    {.metric = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", .name = "global_store_requests"},
    {.metric = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", .name = "global_store_sectors"},
    {.metric = "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", .name = "local_load_sectors"},
    {.metric = "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum", .name = "local_store_sectors"},
    {.metric = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", .name = "shared_wavefronts"},
    {.metric = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", .name = "shared_conflicts"},
    // Cycles between two instructions of a warp.
    {.metric = "smsp__average_warp_latency_per_inst_issued.ratio",
     .name = "warp_cycles_per_instruction"},
};

constexpr const char* kStallNames[] = {"barrier",
                                       "branch_resolving",
                                       "dispatch_stall",
                                       "drain",
                                       "gmma",
                                       "imc_miss",
                                       "lg_throttle",
                                       "long_scoreboard",
                                       "math_pipe_throttle",
                                       "membar",
                                       "mio_throttle",
                                       "no_instruction",
                                       "not_selected",
                                       "selected",
                                       "short_scoreboard",
                                       "sleeping",
                                       "tex_throttle",
                                       "wait"};

std::string stall_metric(const std::string& stall) {
  return "smsp__average_warps_issue_stalled_" + stall + "_per_issue_active.ratio";
}

// Adds each stall's share of the time between two instructions of a warp, in percent.
void add_stalls(const toolchain::NcuKernel& kernel, KernelProfile& out) {
  double all = 0;
  for (const char* stall : kStallNames)
    if (auto at = kernel.metrics.find(stall_metric(stall)); at != kernel.metrics.end())
      all += std::max(0.0, at->second.value);
  if (all <= 0) return;
  for (const char* stall : kStallNames)
    if (auto at = kernel.metrics.find(stall_metric(stall)); at != kernel.metrics.end())
      out.counters[std::string("stall_pct.") + stall] = 100 * std::max(0.0, at->second.value) / all;
}

// The resource that permits the fewest CTAs on an SM.
CtaLimit limiter_of(const KernelProfile& k) {
  CtaLimit out = CtaLimit::unknown;
  double least = 0;
  for (const auto& [resource, name] : enum_names(CtaLimit{})) {
    const auto limit = k.counters.find(std::string("limit_ctas.") + name);
    if (limit == k.counters.end() || (out != CtaLimit::unknown && limit->second >= least)) continue;
    least = limit->second, out = resource;
  }
  return out;
}

}  // namespace

std::vector<std::string> ncu_metrics() {
  std::vector<std::string> out;
  for (const Known& k : kKnown) out.emplace_back(k.metric);
  for (const char* stall : kStallNames) out.push_back(stall_metric(stall));
  return out;
}

KernelProfile measured_profile(const toolchain::NcuKernel& kernel) {
  KernelProfile out;
  out.kernel = kernel.name;
  out.origin = Origin::measured;
  for (const Known& k : kKnown) {
    auto at = kernel.metrics.find(k.metric);
    if (at == kernel.metrics.end()) continue;
    if (k.unit != std::string(kAny) && at->second.unit != k.unit) continue;
    out.counters[k.name] = at->second.value * k.scale;
  }
  if (auto time = out.counters.extract("time_ns")) out.time_ns = time.mapped();
  auto& c = out.counters;
  if (c.contains("local_load_sectors") && c.contains("local_store_sectors"))
    c["local_sectors"] = c["local_load_sectors"] + c["local_store_sectors"];
  add_stalls(kernel, out);
  out.limited_by = limiter_of(out);
  for (const toolchain::NcuRule& rule : kernel.rules)
    if (rule.name == "SOLBottleneck")
      out.remarks.push_back(
          {.kind = "ncu_rule", .line = 0, .message = rule.text, .origin = Origin::measured});
  return out;
}

}  // namespace cutegen::eval
