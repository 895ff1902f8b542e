// SPDX-License-Identifier: Apache-2.0
// Device: where programs run. One interface for the simulator ("sim:h200") and GPUs ("cuda:0").
//
// Contract: used inside the runner process only. load() takes compiled modules and tells their
// facts; machine code that an assembler made of them is used where the device can, else the PTX;
// bind() names the buffers (memory of the caller) of the next runs; run() executes the launches of
// a resolved plan in order, stops at the first that fails, and leaves the results in the caller's
// memory. A kernel's fault is a RunReport, never an Error. It leaves the device usable for the next
// candidate, unless the report says `device_lost`: then the process has to end.
//
// Example:
//   CG_TRY(auto d, open_device("sim:h200")); CG_TRY(auto facts, d->load({ptx}));
//   CG_CHECK(d->bind({{"x", bytes, true}})); CG_TRY(auto report, d->run(ctx, launches, {}));
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/context.h"
#include "core/program.h"
#include "core/verdict.h"

namespace cutegen {

// What a buffer holds before the first step: data, or nothing that a kernel may use. Scratch may
// keep such values (padding), an output may not.
enum class BufferContent { data, output, scratch };

// Memory of a GPU that another process owns: the buffer begins at `offset` of what is mapped.
struct SharedPart {
  int descriptor = -1;  // none
  size_t mapped_bytes = 0, offset = 0;
};

struct BufferBinding {
  std::string name;
  std::span<std::byte> bytes;
  bool read_only = false;
  BufferContent content = BufferContent::data;
  // Not empty: a GPU fills the buffer with this again and again, and brings nothing back.
  std::span<const std::byte> pattern = {};
  // With a pattern: timed runs use so many buffers in turn, "NAME", "NAME#1", ...
  int copies = 1;
  // With a descriptor: a GPU maps it (read-only where the buffer is) instead of copying anything.
  SharedPart shared = {};
  // With a descriptor, of a mutated tensor: the buffer whose bytes a GPU copies here before each
  // timed run.
  std::string initial = {};
};

using PlanSteps = std::vector<std::variant<Launch, Fill>>;

// The order in which CTAs begin and warps take turns, where the device can choose: by index; the
// highest index first; drawn at random, with switches where threads communicate.
enum class RunOrder { in_order, reversed, mixed };

struct RunSettings {
  int64_t sample_ctas = 0;  // 0: run everything; else so many of each launch at first
  uint64_t instruction_budget = 4'000'000'000;
  int threads = 0;
  bool checks = false;      // look for races and undefined values too, where the device can
  int64_t sample_most = 0;  // a sample grows up to this, until its error is small enough
  double sample_error = 0.02;
  uint64_t sample_seed = 1;
  bool lines = false;  // counters by source line
  bool trace = false;  // tell what each launch executed and stored
  // With a sample: a launch that is not the last runs whole if it takes no more warp instructions.
  uint64_t whole_instructions = 0;
  Nanoseconds limit = std::chrono::seconds(10);  // of a GPU: how long one run may take
  RunOrder order = RunOrder::in_order;           // other orders tell no counters and no time
  uint64_t order_seed = 1;
};

// cold: the L2 holds other data, the launches are queued before the first begins. warm: the same
// steps ran just before. graph: cold, as one launch of a CUDA graph. call: cold, by the host's
// clock from the first launch to the end.
enum class TimeMode { cold, warm, graph, call };

// Timed runs on a GPU, over what is bound: all steps of one program, and of another in turn with
// it, which goes first drawn anew each time. Every run has its own copy of the outputs, filled with
// the pattern before, and so is scratch. A control does everything but the steps: what timing
// itself takes.
struct TimeRequest {
  TimeMode mode = TimeMode::cold;
  PlanSteps steps, against;
  bool paired = false, control = false;
  bool watch = false;  // tell temperature, power and what holds clocks back: takes milliseconds
  int samples = 8;     // of each
  uint64_t seed = 1;
  Nanoseconds limit = std::chrono::seconds(10);  // of one run
};

// What one launch executed, on the simulator; figures are of the whole grid, estimated where only
// a sample of its CTAs ran.
struct TracedInst {
  int64_t index = 0;  // in the kernel's PTX
  int64_t line = 0;   // of its source; 0: unknown
  double runs = 0;    // warp instructions
};
struct LaunchTrace {
  std::string kernel;
  size_t module = 0;
  int64_t ctas_total = 0, ctas_run = 0;
  double sample_error = 0;        // half the 95% interval over the total
  double longest_cta = 0;         // warp instructions of the longest CTA, ended or not
  double flops = 0;               // of single lanes and of matrix units
  double loaded = 0, stored = 0;  // bytes of global memory, atomics among both
  bool atomics = false;           // on global memory
  std::map<std::string, double> stored_sectors;  // of 32 bytes, by buffer
  std::vector<TracedInst> executed;              // by at least one lane; in order
};

struct RunReport {
  enum class Status { ok, finding, unsupported, out_of_budget } status = Status::ok;
  std::string message;                 // the finding or reason, one line
  std::string detail;                  // instruction, source line, CTA, thread, address, buffer
  std::vector<KernelProfile> kernels;  // one a launch that ran
  std::vector<LaunchTrace> traces;     // the same, where asked for
  std::vector<double> samples_ns;      // measured: one a timed run, in their order
  std::vector<double> against_ns;      // of the other program: the pairs of these
  // Of the GPU: "sm_clock_hz" (median of the runs), ... Of the simulator: "communicates", 1 if the
  // threads of some kernel exchange values.
  std::map<std::string, double> state;
  bool device_lost = false;  // nothing more can run in this process
};

// What a measured figure belongs to; empty for the simulator.
struct DeviceIdentity {
  std::string gpu, uuid, driver;  // "NVIDIA H200", "GPU-...", "580.159.04"
  int cuda_version = 0;           // that the driver takes: 13000
  int64_t memory_bytes = 0, l2_bytes = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual DeviceFacts facts() const = 0;
  // `code`: a cubin for each module, or an empty text where there is none; or nothing at all.
  [[nodiscard]] virtual Result<std::vector<ModuleFacts>> load(
      const std::vector<std::string>& ptx, const std::vector<std::string>& code) = 0;
  [[nodiscard]] Result<std::vector<ModuleFacts>> load(const std::vector<std::string>& ptx) {
    return load(ptx, {});
  }
  [[nodiscard]] virtual Result<void> bind(const std::vector<BufferBinding>& buffers) = 0;
  [[nodiscard]] virtual Result<RunReport> run(const Context& ctx, const PlanSteps& steps,
                                              const RunSettings& settings) = 0;
  // Of a GPU, after a run over the same buffers.
  [[nodiscard]] virtual Result<RunReport> time(const Context& ctx, const TimeRequest& request);
  // A part of a bound buffer as it is now; for those that bring nothing back.
  [[nodiscard]] virtual Result<void> read(const std::string& buffer, int64_t offset,
                                          std::span<std::byte> out) = 0;
  [[nodiscard]] virtual DeviceIdentity identity() const { return {}; }
};

[[nodiscard]] inline bool is_cuda(const std::string& name) {
  return name.starts_with("cuda:");
}
// "sim:NAME" or "cuda:N"; an unknown name lists the known ones.
[[nodiscard]] Result<std::unique_ptr<Device>> open_device(const std::string& name);
// The facts of a simulated GPU alone, without opening anything.
[[nodiscard]] Result<DeviceFacts> device_facts(const std::string& name);

}  // namespace cutegen
