// SPDX-License-Identifier: Apache-2.0
// The PTX simulator: memory, parsed modules, launches.
//
// Contract: Module::parse is safe on hostile text. An unknown directive is an `unsupported` error;
// an unknown opcode gives LaunchStatus::unsupported when a warp executes it. Neither ever gives a
// wrong result. Memory places each buffer at a deterministic 256-byte aligned address with unmapped
// red zones. launch() runs CTAs on `threads` host threads. It stops at the first finding, or when
// the instruction budget is spent or the Context ends.
//
// Example:
//   Memory mem; uint64_t x = mem.add("x", bytes, Access::read_only);
//   auto r = launch(ctx, mem, module, "relu", {{128,1,1},{256,1,1}}, params, {});
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/context.h"
#include "gpu/spec.h"

namespace cutegen::ptx {

enum class Access { read_only, read_write };
// What a buffer holds before the first launch: data (`given`), or undefined values. An undefined
// value may stay in scratch, as padding, but not in an output.
enum class Content { given, output, scratch };

// The simulated global address space. Buffers are the caller's memory; it must outlive Memory.
class Memory {
 public:
  Memory();
  ~Memory();
  Memory(Memory&&) noexcept;
  Memory& operator=(Memory&&) noexcept;
  uint64_t add(const std::string& name, std::span<std::byte> storage, Access access,
               Content content = Content::given);
  // Marks the whole buffer that begins at `base` as written (by the host).
  void set_defined(uint64_t base);
  // Tells the checks that all launches so far have ended.
  void settle();
  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

struct Param {
  size_t size = 0, align = 0;
};
struct Entry {
  std::string name;
  std::vector<Param> params;
  std::array<int, 3> max_block{0, 0, 0};
  int64_t static_shared_bytes = 0;
  int registers_estimate = 0;  // the most 32-bit registers that are live at once, estimated
};

class Module {
 public:
  static Result<Module> parse(std::string_view text);
  const std::vector<Entry>& entries() const;
  // Initialised `.global`/`.const` data with plain (extern "C") names: integers, and raw bytes.
  // Integers of 32 bits are read as signed; at most 1 MiB of bytes.
  std::map<std::string, int64_t> integer_constants() const;
  std::optional<std::vector<std::byte>> constant_bytes(const std::string& name) const;
  std::vector<std::string> constant_names() const;
  struct State;
  const State& state() const { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

struct LaunchConfig {
  std::array<int64_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  int64_t shared_bytes = 0;
  bool cooperative = false;
  bool overlaps = false;  // programmatic: may begin before the previous one ends
};

// The order in which CTAs begin and warps take turns. in_order: the lowest index first; each runs
// as long as it can. reversed: the highest first, among CTAs that are resident together. mixed:
// random, also switching warps at fences, atomics, volatile accesses and barriers.
enum class Order { in_order, reversed, mixed };

// Checks that a caller may turn off. A launch always checks bounds, alignment and read-only
// buffers.
struct Checks {
  bool barriers = true;       // threads that exit before a barrier for the whole CTA
  bool uninitialised = true;  // an undefined value in an address, a branch or an output
  bool races = true;          // conflicting accesses without synchronisation between them
  static Checks none() { return {.barriers = false, .uninitialised = false, .races = false}; }
};

struct RunOptions {
  Checks checks;
  int64_t resident_ctas = 0;  // the most that fit on the GPU at once; 0: not known
  int threads = 0;            // 0: all cores
  uint64_t instruction_budget = 4'000'000'000;  // warp instructions of the whole launch
  bool counters = true;                         // if false, the next three are false, too
  bool sector_counters = true;                  // count sectors of global and local memory
  bool wavefront_counters = true;               // count wavefronts of shared memory
  bool line_counters = true;                    // all counters by source line
  // sample_ctas: the first size of the sample of CTAs that runs; 0: all CTAs run. The sample
  // doubles until its error is at most sample_error, sample_most CTAs have run, or the next batch
  // would exceed the budget.
  int64_t sample_ctas = 0, sample_most = 0;
  double sample_error = 0.02;
  uint64_t sample_seed = 1;
  // Adds a CTA of each kind (ptx/cta/cta_kinds.h) to the sample.
  bool every_kind = false;
  // If the sample predicts at most this many warp instructions, the whole grid runs.
  uint64_t whole_instructions = 0;
  // If set, a Chain follows one warp of one CTA (LaunchReport::chain_clocks). CTAs that take their
  // work from a counter in global memory then advance equally, as on the GPU.
  const GpuLatency* latency = nullptr;
  Order order = Order::in_order;
  uint64_t order_seed = 1;
};

enum class LaunchStatus { ok, finding, unsupported, out_of_budget, cancelled };

// A fault of the kernel.
struct Finding {
  std::string
      kind;  // "out_of_bounds", "misaligned", "read_only", "divergent_barrier", "deadlock", ...
  std::string message;                // one line
  std::string instruction;            // PTX text
  int ptx_line = 0, source_line = 0;  // source_line from .loc, 0 = unknown
  std::array<int64_t, 3> cta{0, 0, 0};
  int thread = 0;  // linear index in the CTA
  uint64_t address = 0;
  std::string buffer;  // nearest buffer, with the offset in `message`
  // The other side of a race, or the read of an undefined value.
  struct Party {
    int ptx_line = 0, source_line = 0;
    std::array<int64_t, 3> cta{0, 0, 0};
    int thread = 0;
  };
  std::optional<Party> other;
};

// Counters of the whole grid: exact at PTX level if every CTA ran, otherwise estimated from a
// sample.
struct Counters {
  uint64_t warp_instructions = 0, thread_instructions = 0, flops = 0;
  // Machine instructions after assembly, estimated.
  uint64_t issue_slots = 0, special_slots = 0;
  std::map<std::string, uint64_t> by_kind;  // "fma", "sfu", "ld_global", "st_shared", ...
  std::map<std::string, uint64_t> by_pipe;  // names of ptx/model/pipes.h
  // By type of the operands: "bf16" of mma, "wgmma_bf16" of wgmma.
  std::map<std::string, uint64_t> tensor_flops;
  uint64_t global_load_requests = 0, global_load_sectors = 0, global_load_bytes = 0,
           global_store_requests = 0, global_store_sectors = 0, global_store_bytes = 0,
           global_atomic_requests = 0, global_atomic_sectors = 0, global_atomic_bytes = 0;
  // Bulk copies (TMA), which go to L2. Reductions count as stores.
  uint64_t tma_load_requests = 0, tma_load_sectors = 0, tma_load_bytes = 0, tma_store_requests = 0,
           tma_store_sectors = 0, tma_store_bytes = 0;
  // Load sectors that hit L1, estimated with a filter of 128 KiB for each CTA.
  uint64_t l1_hit_sectors = 0;
  uint64_t load_rounds = 0;  // groups of global loads in flight together; estimated
  uint64_t shared_requests = 0, shared_wavefronts = 0, shared_conflicts = 0;
  uint64_t local_requests = 0, local_sectors = 0;
  uint64_t cluster_requests = 0, cluster_bytes = 0;  // accesses to other CTAs' shared memory
  uint64_t barriers = 0, branches = 0, divergent_branches = 0;
  uint64_t max_cta_instructions = 0;  // warp instructions of the longest CTA, ended or not
};
// An instruction that at least one lane executed.
struct ExecutedInst {
  int32_t index = 0;                       // in the entry
  int source_line = 0, source_column = 0;  // 0: unknown
  std::string_view opcode;                 // lies in the module's text
  uint64_t runs = 0;                       // warp instructions of the whole grid
};
struct LineCounters {
  int source_line = 0;  // 0: unknown
  Counters counters;
};

// Sectors of 32 bytes that requests touched in one buffer.
struct BufferTraffic {
  std::string buffer;
  uint64_t bytes = 0;  // its size
  uint64_t load_sectors = 0, store_sectors = 0;
  uint64_t reread_sectors = 0;  // repeated loads by one CTA that miss L1; sampled
};

struct LaunchReport {
  LaunchStatus status = LaunchStatus::ok;
  std::optional<Finding> finding;
  std::string reason;  // unsupported: the opcode; else why the launch ended
  Counters counters;
  std::vector<LineCounters> lines;     // by source line
  std::vector<BufferTraffic> traffic;  // buffers that were touched
  std::vector<ExecutedInst> executed;  // in order of index; empty if the counters are off
  int64_t ctas_total = 0, ctas_run = 0;
  double sample_error = 0;  // half the 95% interval, divided by the total; 0: every CTA ran
  std::map<std::string, double> sample_errors;  // "instructions", "sectors", "wavefronts"
  // Kinds of CTAs (ptx/cta/cta_kinds.h) of a sampled grid, and how many of them no CTA of the
  // sample has. kinds_known: the grid was small enough to look at each CTA.
  int64_t kinds = 1, kinds_missed = 0;
  bool kinds_known = true;
  // Clocks that the first warp of the longest CTA would take if it ran alone. A Chain
  // (ptx/model/chain.h) gives the clocks of the warp that it followed; they are scaled by the ratio
  // of the instructions of the two CTAs. 0: no Chain.
  double chain_clocks = 0;
  // Sleep (nanosleep) of a CTA: the longest and the mean. Sleep in a polling loop does not count.
  double most_sleep_ns = 0, mean_sleep_ns = 0;
  bool communicates = false;  // threads exchange values by barriers, atomics, shared memory, ...
  Nanoseconds host_time{0};
};

// params: one byte string per argument. A size that differs from the entry's is a user error.
Result<LaunchReport> launch(const Context& ctx, Memory& memory, const Module& module,
                            const std::string& entry, const LaunchConfig& config,
                            const std::vector<std::vector<std::byte>>& params,
                            const RunOptions& options);

// How many CTAs of a launch fit on `gpu` at the same time, given the estimated registers.
int64_t resident_ctas(const GpuSpec& gpu, const Entry& entry, const LaunchConfig& config);

}  // namespace cutegen::ptx
