// SPDX-License-Identifier: Apache-2.0
#include "ptx/model/counting.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "ptx/model/load_groups.h"
#include "ptx/model/machine_code.h"
#include "ptx/model/pipes.h"

namespace cutegen::ptx {
namespace {

constexpr uint64_t kCountedSector = 32;
constexpr size_t kL1Sectors = 4096;       // 128 KiB: L1 beside a typical use of shared memory
constexpr size_t kSeenSectors = 1 << 18;  // 8 MiB that one CTA may read

const char* kind_name(Kind kind) {
  static constexpr const char* names[] = {
      "move",       "integer",   "fp32",       "fma",       "sfu",       "convert",   "half",
      "fp64",       "compare",   "ld_global",  "st_global", "ld_shared", "st_shared", "ld_local",
      "st_local",   "ld_const",  "atomic",     "shuffle",   "vote",      "barrier",   "branch",
      "mma_half",   "mma_tf32",  "mma_f64",    "mma_fp8",   "mma_int8",  "mma_bits",  "wgmma_half",
      "wgmma_tf32", "wgmma_fp8", "wgmma_int8", "other"};
  static_assert(std::size(names) == size_t(Kind::count_));
  return names[size_t(kind)];
}

uint64_t scaled(uint64_t once, uint64_t sampled, double weight) {
  return once + uint64_t(std::llround(double(sampled) * weight));
}

// Adds the counts of one instruction to the counters of a kernel or a line. `slots` is the number
// of machine instructions.
void account(Counters& to, const Inst& in, const Usage& use, const Executed& x, uint64_t slots,
             const InstCounts& c) {
  to.warp_instructions += x.runs;
  to.thread_instructions += x.lanes;
  to.issue_slots += slots;
  to.special_slots += x.runs * use.special;
  to.flops += x.lanes * in.flops;
  to.by_kind[kind_name(in.kind)] += x.runs;
  to.by_pipe[to_string(use.pipe)] += x.runs;
  const std::string group = in.op == Op::wgmma ? "wgmma_" : "";
  if (use.tensor_flops) to.tensor_flops[group + to_string(use.tensor)] += x.runs * use.tensor_flops;
  if (in.op == Op::store) {
    to.global_store_requests += c.requests, to.global_store_sectors += c.sectors;
    to.global_store_bytes += c.bytes;
  } else if (in.op == Op::atomic) {
    to.global_atomic_requests += c.requests, to.global_atomic_sectors += c.sectors;
    to.global_atomic_bytes += c.bytes;
  } else {  // loads, and copies to shared memory
    to.global_load_requests += c.requests, to.global_load_sectors += c.sectors;
    to.global_load_bytes += c.bytes, to.l1_hit_sectors += c.l1_hits;
  }
  const bool stores = in.kind == Kind::store_global || in.kind == Kind::atomic;
  (stores ? to.tma_store_requests : to.tma_load_requests) += c.copies;
  (stores ? to.tma_store_sectors : to.tma_load_sectors) += c.copy_sectors;
  (stores ? to.tma_store_bytes : to.tma_load_bytes) += c.copy_bytes;
  to.shared_requests += c.shared_requests, to.shared_wavefronts += c.wavefronts;
  to.shared_conflicts += c.wavefronts - c.least;
  to.local_requests += c.local_requests, to.local_sectors += c.local_sectors;
  to.cluster_requests += c.remote_requests, to.cluster_bytes += c.remote_bytes;
  if (use.pipe == Pipe::branch) to.branches += x.runs;
  to.divergent_branches += c.divergent;
  to.barriers += c.barriers;
}

InstCounts scaled(const InstCounts& a, const InstCounts& b, double w) {
  InstCounts out;
  out.requests = scaled(a.requests, b.requests, w), out.sectors = scaled(a.sectors, b.sectors, w);
  out.bytes = scaled(a.bytes, b.bytes, w), out.l1_hits = scaled(a.l1_hits, b.l1_hits, w);
  out.shared_requests = scaled(a.shared_requests, b.shared_requests, w);
  out.wavefronts = scaled(a.wavefronts, b.wavefronts, w);
  out.least = std::min(out.wavefronts, scaled(a.least, b.least, w));
  out.local_requests = scaled(a.local_requests, b.local_requests, w);
  out.local_sectors = scaled(a.local_sectors, b.local_sectors, w);
  out.remote_requests = scaled(a.remote_requests, b.remote_requests, w);
  out.remote_bytes = scaled(a.remote_bytes, b.remote_bytes, w);
  out.copies = scaled(a.copies, b.copies, w);
  out.copy_sectors = scaled(a.copy_sectors, b.copy_sectors, w);
  out.copy_bytes = scaled(a.copy_bytes, b.copy_bytes, w);
  out.divergent = scaled(a.divergent, b.divergent, w);
  out.barriers = scaled(a.barriers, b.barriers, w);
  return out;
}

}  // namespace

Counting::Counting(const Program& program, size_t buffers, const RunOptions& options, bool rereads)
    : program_(program),
      on_(options.counters),
      sectors_on_(options.counters && options.sector_counters),
      wavefronts_on_(options.counters && options.wavefront_counters),
      executed_(on_ ? program.code.size() : 0),
      counts_(on_ ? program.code.size() : 0),
      traffic_(buffers),
      patterns_(on_ ? program.code.size() : 0),
      l1_(sectors_on_ ? kL1Sectors : 0),
      seen_(sectors_on_ && rereads ? kSeenSectors : 0) {}

uint32_t Counting::global_sectors(size_t pc, uint32_t mask, const AddressSummary& s,
                                  const uint64_t* at, uint64_t bytes) {
  if (mask != ~0u || s.uniform || s.contiguous) return sectors_of(s, at, mask, bytes);
  if (const Wavefronts* known = patterns_.find(pc, at, kCountedSector)) return known->count;
  const uint32_t sectors = sectors_of(s, at, mask, bytes);
  patterns_.keep(pc, at, kCountedSector, {.count = sectors, .least = 0});
  return sectors;
}

// Looks up the sectors of a load in the filters, and adds those that are missing.
void Counting::look_up(InstCounts& c, size_t buffer, const AddressSummary& s, const uint64_t* at,
                       uint32_t mask, uint64_t bytes) {
  const uint64_t mark = cta_ << 44;
  auto find = [mark](std::vector<uint64_t>& filter, uint64_t sector) {
    uint64_t& held = filter[sector % filter.size()];
    if (held == (sector | mark)) return true;
    held = sector | mark;
    return false;
  };
  auto one = [&](uint64_t sector) {
    const bool near = find(l1_, sector);
    c.l1_hits += near;
    if (!seen_.empty() && find(seen_, sector) && !near) ++traffic_[buffer][2];
  };
  if (s.uniform || s.contiguous) {
    for (uint64_t i = s.low / kCountedSector; i <= (s.high + bytes - 1) / kCountedSector; ++i)
      one(i);
    return;
  }
  uint64_t last = ~uint64_t{0};
  uint64_t list[32];
  int n = 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint64_t sector = at[std::countr_zero(m)] / kCountedSector;
    if (sector != last) list[n++] = last = sector;
  }
  if (!std::is_sorted(list, list + n)) std::sort(list, list + n);
  const uint64_t* end = std::unique(list, list + n);
  for (const uint64_t* i = list; i != end; ++i) one(*i);
}

void Counting::global(int32_t place, const Inst& in, uint32_t mask, const AddressSummary& s,
                      const uint64_t* at, size_t buffer) {
  if (!sectors_on_) return;
  const uint64_t bytes = uint64_t(in.size) * in.vec;
  const size_t pc = size_t(place);
  const uint64_t sectors = global_sectors(pc, mask, s, at, bytes);
  InstCounts& c = counts_[pc];
  ++c.requests;
  c.sectors += sectors;
  c.bytes += uint64_t(std::popcount(mask)) * bytes;
  work_->sectors += double(sectors);
  const bool writes = in.op == Op::store || in.op == Op::atomic;
  if (writes) count_stored(uint64_t(std::popcount(mask)) * bytes, buffer);
  traffic_[buffer][writes] += sectors;
  if (!writes) look_up(c, buffer, s, at, mask, bytes);
}

void Counting::count_stored(uint64_t bytes, size_t buffer) {
  work_->stored += double(bytes);
  traffic_[buffer][3] += bytes;
}

// Bulk copies bypass L1.
void Counting::copy_row(int32_t pc, uint64_t at, uint64_t bytes, size_t buffer, bool writes) {
  if (!sectors_on_ || bytes == 0) return;
  const uint64_t first = at / kCountedSector, last = (at + bytes - 1) / kCountedSector;
  InstCounts& c = counts_[size_t(pc)];
  c.copy_sectors += last - first + 1, c.copy_bytes += bytes;
  work_->sectors += double(last - first + 1);
  if (writes) count_stored(bytes, buffer);
  traffic_[buffer][writes] += last - first + 1;
  if (writes || seen_.empty()) return;
  const uint64_t mark = cta_ << 44;
  for (uint64_t sector = first; sector <= last; ++sector) {
    uint64_t& held = seen_[sector % seen_.size()];
    traffic_[buffer][2] += held == (sector | mark);
    held = sector | mark;
  }
}

void Counting::shared(int32_t place, const Inst& in, uint32_t mask, const AddressSummary& s,
                      const uint64_t* at) {
  if (!wavefronts_on_) return;
  const size_t pc = size_t(place);
  const uint64_t bytes = uint64_t(in.size) * in.vec;
  const SharedUse use = in.op == Op::atomic ? SharedUse::atomic
                        : in.op == Op::load ? SharedUse::load
                                            : SharedUse::store;
  const bool plain = mask != ~0u || s.uniform || s.contiguous;
  const Wavefronts* known = plain ? nullptr : patterns_.find(pc, at, 4);
  const Wavefronts w = known ? *known : wavefronts_of(s, at, mask, bytes, use);
  if (!plain && !known) patterns_.keep(pc, at, 4, w);
  InstCounts& c = counts_[pc];
  ++c.shared_requests;
  c.wavefronts += w.count;
  c.least += w.least;
  work_->wavefronts += w.count;
}

void Counting::local(int32_t place, const Inst& in, uint32_t mask, const AddressSummary& s,
                     const uint64_t* at) {
  if (!sectors_on_) return;
  InstCounts& c = counts_[size_t(place)];
  const uint32_t sectors = local_sectors_of(s, at, mask, uint64_t(in.size) * in.vec);
  ++c.local_requests;
  c.local_sectors += sectors;
  work_->sectors += sectors;
}

void Totals::add(const Counting& from) {
  executed.resize(std::max(executed.size(), from.executed_.size()));
  counts.resize(std::max(counts.size(), from.counts_.size()));
  traffic.resize(std::max(traffic.size(), from.traffic_.size()));
  for (size_t i = 0; i < from.executed_.size(); ++i)
    executed[i].runs += from.executed_[i].runs, executed[i].lanes += from.executed_[i].lanes;
  for (size_t i = 0; i < from.counts_.size(); ++i) {
    InstCounts& to = counts[i];
    const InstCounts& c = from.counts_[i];
    to.requests += c.requests, to.sectors += c.sectors, to.bytes += c.bytes;
    to.l1_hits += c.l1_hits, to.shared_requests += c.shared_requests;
    to.wavefronts += c.wavefronts, to.least += c.least;
    to.local_requests += c.local_requests, to.local_sectors += c.local_sectors;
    to.remote_requests += c.remote_requests, to.remote_bytes += c.remote_bytes;
    to.divergent += c.divergent, to.barriers += c.barriers;
    to.copies += c.copies, to.copy_sectors += c.copy_sectors, to.copy_bytes += c.copy_bytes;
  }
  for (size_t i = 0; i < from.traffic_.size(); ++i)
    for (size_t k = 0; k < traffic[i].size(); ++k) traffic[i][k] += from.traffic_[i][k];
  most_instructions = std::max(most_instructions, from.most_instructions_);
  most_sleep_ns = std::max(most_sleep_ns, from.most_sleep_ns_), sleep_ns += from.sleep_ns_;
}

void report_counts(const Program& program, const Totals& once, const Totals& sampled, double weight,
                   const RunOptions& options, LaunchReport& report) {
  auto at = [](const auto& list, size_t i) {
    return i < list.size() ? list[i] : std::decay_t<decltype(list[i])>{};
  };
  std::map<int, Counters> by_line;
  const std::vector<uint8_t> together = load_groups(program);
  std::vector<double> factors;
  if (options.machine_code) factors = machine_factors(program, *options.machine_code);
  double rounds = 0;
  for (size_t i = 0; i < program.code.size(); ++i) {
    const Executed a = at(once.executed, i), b = at(sampled.executed, i);
    const Executed x{.runs = scaled(a.runs, b.runs, weight),
                     .lanes = scaled(a.lanes, b.lanes, weight)};
    if (x.runs == 0) continue;
    const SourceLine& line = program.lines[i];
    if (x.lanes > 0)
      report.executed.push_back({.index = int32_t(i),
                                 .source_line = line.source_line,
                                 .source_column = line.source_column,
                                 .opcode = line.opcode,
                                 .runs = x.runs});
    const InstCounts c = scaled(at(once.counts, i), at(sampled.counts, i), weight);
    const Usage use = usage_of(program.lines[i].text);
    const uint64_t estimate = x.runs * use.issue;
    const uint64_t slots =
        factors.empty() ? estimate : uint64_t(std::llround(double(estimate) * factors[i]));
    account(report.counters, program.code[i], use, x, slots, c);
    if (together[i]) rounds += double(c.requests) / together[i];
    if (options.line_counters)
      account(by_line[program.lines[i].source_line], program.code[i], use, x, slots, c);
  }
  report.counters.load_rounds = uint64_t(std::llround(rounds));
  report.counters.max_cta_instructions =
      std::max(once.most_instructions, sampled.most_instructions);
  report.most_sleep_ns = std::max(once.most_sleep_ns, sampled.most_sleep_ns);
  report.mean_sleep_ns =
      (once.sleep_ns + sampled.sleep_ns * weight) / double(std::max<int64_t>(1, report.ctas_total));
  for (auto& [line, counters] : by_line)
    report.lines.push_back({.source_line = line, .counters = std::move(counters)});
  for (size_t i = 0; i < report.traffic.size(); ++i) {
    const auto a = at(once.traffic, i), b = at(sampled.traffic, i);
    report.traffic[i].load_sectors = scaled(a[0], b[0], weight);
    report.traffic[i].store_sectors = scaled(a[1], b[1], weight);
    report.traffic[i].reread_sectors = scaled(a[2], b[2], weight);
    report.traffic[i].store_bytes = scaled(a[3], b[3], weight);
  }
}

}  // namespace cutegen::ptx
