// SPDX-License-Identifier: Apache-2.0
// The interface of the PTX simulator: memory, parsed modules, launches.
//
// Contract: Module::parse is safe on hostile text. An unknown directive is an `unsupported` error;
// an unknown opcode ends the launch with LaunchStatus::unsupported when a warp executes it.
// Therefore, code that the simulator does not support never produces a wrong result. `Memory`
// places each buffer at a deterministic 256-byte aligned address between unmapped addresses.
// launch() runs CTAs on `threads` host threads. It stops when it finds a fault of the kernel
// (`Finding`), when the instruction budget is spent, or when the Context ends.
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
#include "gpu/code_shape.h"
#include "gpu/spec.h"

namespace cutegen::ptx {

enum class Access { read_only, read_write };
// What a buffer contains before the first launch: data (`given`), or undefined values. A kernel may
// leave undefined values in scratch, as padding, but not in an output.
enum class Content { given, output, scratch };

// The simulated global address space. The caller owns the memory of the buffers, which must outlive
// the `Memory` object.
class Memory {
 public:
  Memory();
  ~Memory();
  Memory(Memory&&) noexcept;
  Memory& operator=(Memory&&) noexcept;
  uint64_t add(const std::string& name, std::span<std::byte> storage, Access access,
               Content content = Content::given);
  // Tells the checks that the host has written the whole buffer that begins at `base`.
  void set_defined(uint64_t base);
  // Tells the race checks that all earlier launches end before the next launch begins.
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
  int registers_estimate = 0;  // estimated maximum number of live 32-bit registers
};

class Module {
 public:
  static Result<Module> parse(std::string_view text);
  const std::vector<Entry>& entries() const;
  // The constants are initialised `.global` and `.const` variables with plain (extern "C") names,
  // of at most 1 MiB each. integer_constants() reads 32-bit integers as signed.
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
  bool overlaps = false;  // programmatic launch: may begin before the previous launch ends
};

// The order in which CTAs start and warps run. `in_order` starts with the lowest CTA index and runs
// each warp as long as possible. `reversed` starts with the highest CTA index among the CTAs that
// the GPU could hold at once. `mixed` is random, and may switch warps at fences, atomics, volatile
// accesses and barriers.
enum class Order { in_order, reversed, mixed };

// The checks of a launch that a caller may turn off. A launch always checks bounds and alignment,
// and that the kernel does not write to read-only buffers.
struct Checks {
  bool barriers = true;       // finds threads that exit before a barrier for the whole CTA
  bool uninitialised = true;  // finds undefined values in addresses, branches and outputs
  bool races = true;          // finds conflicting accesses without synchronisation
  static Checks none() { return {.barriers = false, .uninitialised = false, .races = false}; }
};

struct RunOptions {
  Checks checks;
  int64_t resident_ctas = 0;  // number of CTAs that fit on the GPU at once; 0: unknown
  int threads = 0;            // 0: all cores
  uint64_t instruction_budget = 4'000'000'000;  // warp instructions of the whole launch
  bool counters = true;                         // if false, the next three flags have no effect
  bool sector_counters = true;     // count the 32-byte sectors of global and local accesses
  bool wavefront_counters = true;  // count the wavefronts of shared accesses
  bool line_counters = true;       // also report all counters by source line
  // The launch first runs a sample of `sample_ctas` CTAs (0: it runs all CTAs). The sample doubles
  // until its error is at most sample_error, sample_most CTAs have run, or the next CTAs would
  // exceed the instruction budget.
  int64_t sample_ctas = 0, sample_most = 0;
  double sample_error = 0.02;
  uint64_t sample_seed = 1;
  // Adds a CTA of each kind to the sample. CTAs of one kind have the same control flow
  // (ptx/cta/cta_kinds.h).
  bool every_kind = false;
  // If the sample predicts that the whole grid executes at most `whole_instructions` warp
  // instructions, all CTAs run.
  uint64_t whole_instructions = 0;
  // If set, a `Chain` models the time of one warp (LaunchReport::chain_clocks), and CTAs that take
  // tiles from a counter in global memory advance at the same pace, as on a GPU.
  const GpuLatency* latency = nullptr;
  // If set, Counters::issue_slots follows from the kernel's machine code instead of the PTX alone.
  const CodeShape* machine_code = nullptr;
  Order order = Order::in_order;
  uint64_t order_seed = 1;
};

enum class LaunchStatus { ok, finding, unsupported, out_of_budget, cancelled };

// A fault of the kernel that a launch found.
struct Finding {
  // "out_of_bounds", "misaligned", "read_only", "divergent_barrier", "deadlock", ...
  std::string kind;
  std::string message;                // one line
  std::string instruction;            // PTX text
  int ptx_line = 0, source_line = 0;  // source_line from .loc, 0 = unknown
  std::array<int64_t, 3> cta{0, 0, 0};
  int thread = 0;  // linear index in the CTA
  uint64_t address = 0;
  std::string buffer;  // buffer nearest to `address`; `message` has the offset
  // The other access of a race, or the instruction that read an undefined value.
  struct Party {
    int ptx_line = 0, source_line = 0;
    std::array<int64_t, 3> cta{0, 0, 0};
    int thread = 0;
  };
  std::optional<Party> other;
};

// Counters of the whole grid. The counters are exact for PTX instructions if every CTA ran. If only
// a sample ran, the simulator estimates the counters.
struct Counters {
  uint64_t warp_instructions = 0, thread_instructions = 0, flops = 0;
  // Estimated numbers of all machine instructions, and of machine instructions for the special
  // function units.
  uint64_t issue_slots = 0, special_slots = 0;
  std::map<std::string, uint64_t> by_kind;  // "fma", "sfu", "ld_global", "st_shared", ...
  std::map<std::string, uint64_t> by_pipe;  // executed instructions; keys: pipes.h
  // FLOPs of tensor cores by operand type: "bf16" for mma, "wgmma_bf16" for wgmma.
  std::map<std::string, uint64_t> tensor_flops;
  uint64_t global_load_requests = 0, global_load_sectors = 0, global_load_bytes = 0,
           global_store_requests = 0, global_store_sectors = 0, global_store_bytes = 0,
           global_atomic_requests = 0, global_atomic_sectors = 0, global_atomic_bytes = 0;
  // Traffic of bulk copies (TMA), which bypass L1. Bulk reductions count as stores.
  uint64_t tma_load_requests = 0, tma_load_sectors = 0, tma_load_bytes = 0, tma_store_requests = 0,
           tma_store_sectors = 0, tma_store_bytes = 0;
  // Estimated number of load sectors that hit L1, if each CTA had 128 KiB of L1.
  uint64_t l1_hit_sectors = 0;
  uint64_t load_rounds = 0;  // estimated number of groups of global loads in flight together
  uint64_t shared_requests = 0, shared_wavefronts = 0, shared_conflicts = 0;
  uint64_t local_requests = 0, local_sectors = 0;
  uint64_t cluster_requests = 0, cluster_bytes = 0;  // accesses to other CTAs' shared memory
  uint64_t barriers = 0, branches = 0, divergent_branches = 0;
  // Warp instructions of the CTA that executed the most, even if this CTA did not end.
  uint64_t max_cta_instructions = 0;
};
// An instruction that at least one lane executed.
struct ExecutedInst {
  int32_t index = 0;                       // in the entry
  int source_line = 0, source_column = 0;  // 0: unknown
  std::string_view opcode;                 // points into the module's text
  uint64_t runs = 0;                       // executions by warps of the whole grid
};
struct LineCounters {
  int source_line = 0;  // 0: unknown
  Counters counters;
};

// The traffic of a launch on one buffer. Each access of a warp, and each row of a bulk copy, adds
// the 32-byte sectors that it touches, so the same sector may count several times.
struct BufferTraffic {
  std::string buffer;
  uint64_t bytes = 0;  // its size
  uint64_t load_sectors = 0, store_sectors = 0, store_bytes = 0;
  uint64_t reread_sectors = 0;  // estimated sectors that a CTA loads again after an L1 miss
  // Only in a sampled launch: `reach_known` says whether the simulator knows which parts of the
  // buffer the stores of the whole grid reach (ptx/cta/store_reach.h). `unreached` is the share of
  // the buffer that no store reaches. The first unreached part begins at `unreached_from`, as a
  // share of the buffer (1: unknown).
  bool reach_known = false;
  double unreached = 0, unreached_from = 0;
  // Only of a read-write input after a sampled launch: the bytes that the CTAs of this and earlier
  // sampled launches have stored, each byte counted once. The number is not scaled to the grid.
  uint64_t stored_once = 0;
};

struct LaunchReport {
  LaunchStatus status = LaunchStatus::ok;
  std::optional<Finding> finding;
  std::string reason;  // the unsupported opcode, or why the launch ended
  Counters counters;
  std::vector<LineCounters> lines;     // by source line
  std::vector<BufferTraffic> traffic;  // one entry per accessed buffer
  std::vector<ExecutedInst> executed;  // sorted by `index`; empty if the counters are off
  int64_t ctas_total = 0, ctas_run = 0;
  // half the 95% confidence interval divided by the total; 0 if every CTA ran
  double sample_error = 0, stored_error = 0;
  std::map<std::string, double> sample_errors;  // "instructions", "sectors", "wavefronts"
  // CTAs of one kind have the same control flow (ptx/cta/cta_kinds.h). `kinds` is the number of
  // kinds in a sampled grid, and `kinds_missed` the number of kinds without a CTA in the sample.
  // `kinds_known` is false if the grid is too large, or the kernel's loops are too long, to
  // classify each CTA.
  int64_t kinds = 1, kinds_missed = 0;
  bool kinds_known = true;
  // Modelled clocks that a warp of the longest CTA (the CTA with the most instructions) would take
  // alone; 0 without a Chain. A `Chain` (ptx/model/chain.h) models a warp of another CTA; the
  // simulator multiplies its clocks by (instructions of the longest CTA) / (instructions of the
  // modelled CTA).
  double chain_clocks = 0;
  // The longest and the mean time that a CTA sleeps in nanosleep, except in polling loops.
  double most_sleep_ns = 0, mean_sleep_ns = 0;
  bool communicates = false;  // threads exchange values (barriers, atomics, ...)
  Nanoseconds host_time{0};
};

// `params` has the bytes of each argument. If an argument and its parameter differ in size,
// launch() returns a user error.
Result<LaunchReport> launch(const Context& ctx, Memory& memory, const Module& module,
                            const std::string& entry, const LaunchConfig& config,
                            const std::vector<std::vector<std::byte>>& params,
                            const RunOptions& options);

// Returns how many CTAs of a launch fit on `gpu` at the same time, based on
// Entry::registers_estimate.
int64_t resident_ctas(const GpuSpec& gpu, const Entry& entry, const LaunchConfig& config);

}  // namespace cutegen::ptx
