// SPDX-License-Identifier: Apache-2.0
// Counting: counts how often each PTX instruction runs on one host thread, and the memory traffic
// that the instruction causes. Totals: the sums of these counts over all host threads.
//
// Contract: each count belongs to one pc. After the launch, report_counts() sums the counts by
// kernel, pipe and source line. Counts of L1 hits and of sectors that a CTA loads again are
// estimates, from tables of the sectors that the CTA has read recently. All counts but these two
// are exact for the PTX code. Counters that the caller has switched off stay zero.
//
// Example: counting.global(pc, in, mask, summary, at, buffer); totals.add(counting);
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "ptx/decode/program.h"
#include "ptx/machine/machine.h"
#include "ptx/model/coalesce.h"

namespace cutegen::ptx {

struct Executed {
  uint64_t runs = 0, lanes = 0;  // runs: warp instructions; lanes: sum of their active lanes
};
// Counts of the memory accesses and control flow of one instruction.
struct InstCounts {
  uint64_t requests = 0, sectors = 0, bytes = 0, l1_hits = 0;  // global
  uint64_t shared_requests = 0, wavefronts = 0, least = 0;     // shared
  uint64_t local_requests = 0, local_sectors = 0;              // local
  // Accesses to the shared memory of other CTAs.
  uint64_t remote_requests = 0, remote_bytes = 0;
  uint64_t divergent = 0, barriers = 0;
  // bulk copies, which the async proxy executes
  uint64_t copies = 0, copy_sectors = 0, copy_bytes = 0;
};
// The work of one CTA. The Sampler computes the error of a sample from the spread of
// `instructions`, `sectors` and `wavefronts` between CTAs.
struct CtaWork {
  double instructions = 0, sectors = 0, wavefronts = 0;
  double stored = 0;  // bytes of global memory
  double slept_ns = 0;
  CtaWork& operator+=(const CtaWork& w) {
    instructions += w.instructions, sectors += w.sectors, wavefronts += w.wavefronts;
    stored += w.stored;
    slept_ns += w.slept_ns;
    return *this;
  }
};

// Four numbers for one buffer: sectors loaded, sectors stored, sectors loaded again, and bytes
// stored.
using Traffic = std::array<uint64_t, 4>;

class Counting {
 public:
  // If `rereads` is set, also counts the sectors that a CTA loads again after an L1 miss.
  Counting(const Program& program, size_t buffers, const RunOptions& options, bool rereads);
  // Call enter() before CTA `linear` runs, to add the following counts to `work`, too.
  void enter(CtaWork& work, int64_t linear) { work_ = &work, cta_ = uint64_t(linear) + 1; }
  void ended(uint64_t instructions, double slept_ns = 0) {
    most_instructions_ = std::max(most_instructions_, instructions);
    most_sleep_ns_ = std::max(most_sleep_ns_, slept_ns), sleep_ns_ += slept_ns;
  }
  // Returns an array with one entry per pc, or nullptr if the counters are off.
  Executed* executed() { return executed_.empty() ? nullptr : executed_.data(); }
  // `pc` is the instruction that made the access. `in` describes the access; for ldmatrix or
  // cp.async, for example, it differs from the instruction at `pc`.
  void global(int32_t pc, const Inst& in, uint32_t mask, const AddressSummary& s,
              const uint64_t* at, size_t buffer);
  void shared(int32_t pc, const Inst& in, uint32_t mask, const AddressSummary& s,
              const uint64_t* at);
  void local(int32_t pc, const Inst& in, uint32_t mask, const AddressSummary& s,
             const uint64_t* at);
  // Counts an access to the shared memory of another CTA.
  void remote(int32_t pc, uint32_t mask, uint64_t bytes) {
    if (!on_) return;
    ++counts_[size_t(pc)].remote_requests;
    counts_[size_t(pc)].remote_bytes += uint64_t(std::popcount(mask)) * bytes;
  }
  // copy() counts a bulk copy; copy_row() counts the global memory bytes of one row of the copy.
  void copy(int32_t pc) {
    if (sectors_on_) ++counts_[size_t(pc)].copies;
  }
  void copy_row(int32_t pc, uint64_t at, uint64_t bytes, size_t buffer, bool writes);
  void divergent(const Inst& in) {
    if (on_) ++counts_[place(in)].divergent;
  }
  void barrier(const Inst& in) {
    if (on_) ++counts_[place(in)].barriers;
  }

 private:
  friend struct Totals;
  size_t place(const Inst& in) const { return size_t(&in - program_.code.data()); }
  uint32_t global_sectors(size_t pc, uint32_t mask, const AddressSummary& s, const uint64_t* at,
                          uint64_t bytes);
  void count_stored(uint64_t bytes, size_t buffer);
  void look_up(InstCounts& c, size_t buffer, const AddressSummary& s, const uint64_t* at,
               uint32_t mask, uint64_t bytes);

  const Program& program_;
  bool on_, sectors_on_, wavefronts_on_;
  std::vector<Executed> executed_;
  std::vector<InstCounts> counts_;
  std::vector<Traffic> traffic_;  // by buffer
  PatternCache patterns_;
  std::vector<uint64_t> l1_, seen_;  // recent sectors of this CTA, by their low bits
  uint64_t cta_ = 0, most_instructions_ = 0;
  double most_sleep_ns_ = 0, sleep_ns_ = 0;
  CtaWork* work_ = nullptr;
};

struct Totals {
  std::vector<Executed> executed;
  std::vector<InstCounts> counts;
  std::vector<Traffic> traffic;
  uint64_t most_instructions = 0;
  double most_sleep_ns = 0, sleep_ns = 0;
  void add(const Counting& counting);
};

// Sets `counters`, `lines` and `traffic` of the report to `once` plus `weight` times `sampled`.
// Uses line_counters and machine_code of the options.
void report_counts(const Program& program, const Totals& once, const Totals& sampled, double weight,
                   const RunOptions& options, LaunchReport& report);

}  // namespace cutegen::ptx
