// SPDX-License-Identifier: Apache-2.0
#include "device/sim_profile.h"

#include <algorithm>

namespace cutegen::device {
namespace {

constexpr size_t kMostLines = 64;

// The FNV-1a hash of an opcode for floats, memory or matrices. Other opcodes give 0, because
// unrolled copies of a loop may compute addresses in different ways.
int64_t kind_of(std::string_view opcode) {
  static constexpr std::string_view starts[] = {"ld.", "st.",   "atom", "red.",
                                                "mma", "wgmma", "cp."};
  static constexpr std::string_view parts[] = {".f16", ".bf16", ".f32", ".f64", ".tf32"};
  const bool told =
      std::ranges::any_of(starts, [&](auto s) { return opcode.starts_with(s); }) ||
      std::ranges::any_of(parts, [&](auto s) { return opcode.find(s) != opcode.npos; });
  if (!told) return 0;
  uint32_t hash = 2166136261;
  for (char c : opcode) hash = (hash ^ uint8_t(c)) * 16777619;
  return hash;
}

using CounterMap = std::map<std::string, double>;

CounterMap counters_of(const ptx::Counters& c) {
  CounterMap out;
  auto put = [&](const std::string& name, uint64_t value) { out[name] = double(value); };
  put("warp_instructions", c.warp_instructions);
  put("thread_instructions", c.thread_instructions);
  put("issue_slots", c.issue_slots);
  put("flops", c.flops);
  put("global_load_requests", c.global_load_requests);
  put("global_load_sectors", c.global_load_sectors);
  put("global_load_bytes", c.global_load_bytes);
  put("global_store_requests", c.global_store_requests);
  put("global_store_sectors", c.global_store_sectors);
  put("global_store_bytes", c.global_store_bytes);
  put("global_atomic_requests", c.global_atomic_requests);
  put("global_atomic_sectors", c.global_atomic_sectors);
  if (c.tma_load_requests + c.tma_store_requests > 0) {
    put("tma_load_requests", c.tma_load_requests);
    put("tma_load_sectors", c.tma_load_sectors);
    put("tma_load_bytes", c.tma_load_bytes);
    put("tma_store_requests", c.tma_store_requests);
    put("tma_store_sectors", c.tma_store_sectors);
    put("tma_store_bytes", c.tma_store_bytes);
  }
  put("l1_hit_sectors", c.l1_hit_sectors);
  put("shared_requests", c.shared_requests);
  if (c.cluster_requests) {
    put("cluster_requests", c.cluster_requests);
    put("cluster_bytes", c.cluster_bytes);
  }
  put("shared_wavefronts", c.shared_wavefronts);
  put("shared_conflicts", c.shared_conflicts);
  put("local_requests", c.local_requests);
  put("local_sectors", c.local_sectors);
  put("barriers", c.barriers);
  put("branches", c.branches);
  put("divergent_branches", c.divergent_branches);
  for (const auto& [pipe, n] : c.by_pipe) put("pipe." + pipe, n);
  for (const auto& [type, n] : c.tensor_flops) put("tensor_flops." + type, n);
  return out;
}

// The cost of a line: its largest share of the kernel's issue slots, sectors or shared wavefronts.
double weight(const ptx::Counters& line, const ptx::Counters& all) {
  auto share = [](uint64_t part, uint64_t whole) {
    return whole > 0 ? double(part) / double(whole) : 0;
  };
  auto sectors = [](const ptx::Counters& c) {
    return c.global_load_sectors + c.global_store_sectors + c.global_atomic_sectors +
           c.local_sectors + c.tma_load_sectors + c.tma_store_sectors;
  };
  return std::max({share(line.issue_slots, all.issue_slots), share(sectors(line), sectors(all)),
                   share(line.shared_wavefronts, all.shared_wavefronts)});
}

std::vector<LineProfile> lines_of(const ptx::LaunchReport& report) {
  std::vector<const ptx::LineCounters*> order;
  order.reserve(report.lines.size());
  for (const ptx::LineCounters& l : report.lines) order.push_back(&l);
  std::stable_sort(order.begin(), order.end(), [&](auto* a, auto* b) {
    return weight(a->counters, report.counters) > weight(b->counters, report.counters);
  });
  order.resize(std::min(order.size(), kMostLines));
  std::vector<LineProfile> out;
  for (const ptx::LineCounters* l : order) {
    LineProfile line{.line = l->source_line, .text = {}, .counters = counters_of(l->counters)};
    std::erase_if(line.counters, [](const auto& entry) { return entry.second == 0; });
    out.push_back(std::move(line));
  }
  return out;
}

}  // namespace

LaunchTrace sim_trace(const Launch& step, const ptx::LaunchReport& r) {
  LaunchTrace t;
  t.kernel = step.kernel, t.module = step.module;
  t.ctas_total = r.ctas_total, t.ctas_run = r.ctas_run;
  t.sample_error = r.sample_error, t.stored_error = r.stored_error;
  t.kinds = r.kinds, t.kinds_missed = r.kinds_missed, t.kinds_known = r.kinds_known;
  const ptx::Counters& c = r.counters;
  t.longest_cta = double(c.max_cta_instructions);
  t.flops = double(c.flops);
  for (const auto& [type, n] : c.tensor_flops) t.flops += double(n);
  t.loaded =
      double(std::max(c.global_load_bytes + c.global_atomic_bytes, c.global_load_sectors * 32));
  t.loaded += double(c.tma_load_bytes);
  t.stored = double(c.global_store_bytes + c.global_atomic_bytes + c.tma_store_bytes);
  t.atomics = c.global_atomic_requests > 0;
  for (const ptx::BufferTraffic& b : r.traffic)
    if (b.store_sectors > 0) {
      t.stored_sectors[b.buffer] = double(b.store_sectors);
      t.stored_bytes[b.buffer] = double(b.store_bytes);
    }
  for (const ptx::BufferTraffic& b : r.traffic)
    if (b.stored_once > 0) t.stored_once[b.buffer] = double(b.stored_once);
  for (const ptx::BufferTraffic& b : r.traffic)
    if (b.reach_known)
      t.unreached[b.buffer] = b.unreached, t.unreached_from[b.buffer] = b.unreached_from;
  constexpr size_t kMostTraced = 60'000;  // below the limit of the codec
  for (const ptx::ExecutedInst& i : r.executed)
    if (t.executed.size() < kMostTraced)
      t.executed.push_back({.index = i.index,
                            .line = i.source_line,
                            .column = i.source_column,
                            .opcode = kind_of(i.opcode),
                            .runs = double(i.runs)});
  return t;
}

KernelProfile sim_profile(const std::string& kernel, const ptx::LaunchReport& r,
                          const ptx::ModelledTime& t) {
  KernelProfile p;
  p.kernel = kernel, p.origin = Origin::modelled;
  p.time_ns = t.time_ns, p.bound_by = t.bound_by, p.limited_by = t.occupancy.limited_by;
  p.counters = counters_of(r.counters);
  for (const auto& [kind, n] : r.counters.by_kind) p.counters["instructions." + kind] = double(n);
  for (const auto& [term, ns] : t.terms_ns) p.counters["modelled_ns." + term] = ns;
  p.counters["bound_by_lead"] = t.lead;
  p.counters["load_rounds"] = double(r.counters.load_rounds);
  for (const ptx::BufferTraffic& b : r.traffic)
    p.counters["reread_sectors"] += double(b.reread_sectors);
  p.counters["ctas"] = double(r.ctas_total);
  p.counters["max_cta_instructions"] = double(r.counters.max_cta_instructions);
  p.counters["occupancy"] = t.occupancy.share;
  p.counters["resident_ctas"] = t.occupancy.resident_ctas;
  p.counters["registers"] = t.occupancy.registers;
  p.counters["waves"] = t.occupancy.waves;
  p.counters["last_wave"] = t.occupancy.tail;
  for (const auto& [resource, most] : t.occupancy.limits)
    p.counters[std::string("limit_ctas.") + to_string(resource)] = most;
  p.counters["dram_read_bytes"] = t.dram_read_bytes;
  p.counters["dram_write_bytes"] = t.dram_write_bytes;
  p.counters["bytes_in_flight"] = t.bytes_in_flight;
  p.counters["bytes_to_saturate"] = t.bytes_to_saturate;
  for (const auto& [what, error] : r.sample_errors) p.counters["sample_error." + what] = error;
  p.sampled_share = r.ctas_total > 0 ? double(r.ctas_run) / double(r.ctas_total) : 1;
  p.sample_error = r.sample_error;
  p.lines = lines_of(r);
  return p;
}

}  // namespace cutegen::device
