// SPDX-License-Identifier: Apache-2.0
// Device: runs kernel programs. The simulator ("sim:h200") and GPUs ("cuda:0") share this
// interface.
//
// Contract: only the runner process uses a Device. load() takes PTX modules and returns their
// facts. A GPU loads the machine code that comes with a module; without it, the driver assembles
// the PTX. bind() names the buffers (in the caller's memory) of the next runs. run() executes the
// steps of a resolved plan in order, stops at the first that fails, and leaves the results in the
// caller's memory. A kernel's fault is a RunReport, never an Error, and leaves the device usable
// for the next candidate. But after a report with `device_lost`, the process must end.
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
#include "core/device_name.h"
#include "core/program.h"
#include "core/time_mode.h"
#include "core/verdict.h"

namespace cutegen::device {

// What a buffer holds before the first step: `data`, or undefined values (`output`, `scratch`). An
// undefined value may stay in scratch, as padding, but not in an output.
enum class BufferContent { data, output, scratch };

// GPU memory that another process owns. The buffer begins at `offset` of the mapped memory.
struct SharedPart {
  int descriptor = -1;  // -1: not shared
  size_t mapped_bytes = 0, offset = 0;
};

struct BufferBinding {
  std::string name;
  std::span<std::byte> bytes;
  bool read_only = false;
  BufferContent content = BufferContent::data;
  // If not empty, a GPU fills the buffer with repetitions of the pattern and copies nothing back.
  std::span<const std::byte> pattern = {};
  // With a pattern or a descriptor: timed runs use this many buffers in turn, "NAME", "NAME#1", ...
  int copies = 1;
  // With a descriptor: a GPU maps the memory instead of copying it (read-only if the buffer is).
  SharedPart shared = {};
  // With a descriptor, for a mutated tensor: the buffer from which a GPU restores this one before
  // each timed run.
  std::string initial = {};
};

using PlanSteps = std::vector<std::variant<Launch, Fill>>;

// The order in which CTAs start and warps take turns, on a device that can choose it: by index,
// highest index first, or random, with random switches where threads communicate.
enum class RunOrder { in_order, reversed, mixed };

struct RunSettings {
  int64_t sample_ctas = 0;  // CTAs of the initial sample of each launch; 0: all
  uint64_t instruction_budget = 4'000'000'000;
  int threads = 0;
  // Also look for races and undefined values. A GPU ignores this.
  bool checks = false;
  // The sample grows up to `sample_most` CTAs, until its relative error is below `sample_error`.
  int64_t sample_most = 0;
  double sample_error = 0.02;
  uint64_t sample_seed = 1;
  bool lines = false;  // count by source line
  bool trace = false;  // report what each launch executed and stored
  // If only a sample of the CTAs runs: launches before the last step run all their CTAs if that
  // takes at most this many warp instructions.
  uint64_t whole_instructions = 0;
  // On a GPU: the longest time of one run.
  Nanoseconds limit = std::chrono::seconds(10);
  RunOrder order = RunOrder::in_order;  // other orders give no counters and no time
  uint64_t order_seed = 1;
};

// Timed runs on a GPU, on the bound buffers. Each run executes all steps of one program. `paired`
// alternates the program with a second one, in random order within each pair. Before each run, the
// device refills outputs and scratch with their patterns; outputs with several copies use them in
// turn (a CUDA graph always uses the first). `control` does everything except the steps, to measure
// the overhead of timing.
struct TimeRequest {
  TimeMode mode = TimeMode::cold;
  PlanSteps steps, against;
  bool paired = false, control = false;
  // Report temperature, power and throttle reasons. This takes milliseconds.
  bool watch = false;
  int samples = 8;  // per program
  uint64_t seed = 1;
  Nanoseconds limit = std::chrono::seconds(10);  // of one run
};

// What one launch executed on the simulator. The figures are for the whole grid. If only a sample
// of its CTAs ran, they are estimates.
struct TracedInst {
  int64_t index = 0;             // index of the instruction in the kernel's PTX
  int64_t line = 0, column = 0;  // place in the source; 0: unknown
  int64_t opcode = 0;            // a hash of its name; 0: integer opcodes and branches
  double runs = 0;               // warp instructions
};
struct LaunchTrace {
  std::string kernel;
  size_t module = 0;
  int64_t ctas_total = 0, ctas_run = 0;
  double sample_error = 0;  // half the 95% interval, divided by the total
  // Number of kinds of CTAs, which differ in control flow, and how many kinds the sample misses.
  // kinds_known: the grid was small enough to look at each CTA.
  int64_t kinds = 1, kinds_missed = 0;
  bool kinds_known = true;
  double longest_cta = 0;         // warp instructions of the longest CTA, finished or not
  double flops = 0;               // floating-point operations of scalar and matrix instructions
  double loaded = 0, stored = 0;  // bytes of global memory; atomics count in both
  bool atomics = false;           // on global memory
  std::map<std::string, double> stored_sectors;  // sectors of 32 bytes, by buffer
  std::vector<TracedInst> executed;  // the instructions that some lane executed, in program order
};

struct RunReport {
  enum class Status { ok, finding, unsupported, out_of_budget } status = Status::ok;
  std::string message;                 // the finding or reason, one line
  std::string detail;                  // instruction, source line, CTA, thread, address, buffer
  std::vector<KernelProfile> kernels;  // one per step that ran
  std::vector<LaunchTrace> traces;     // one trace per launch, if RunSettings::trace is set
  std::vector<double> samples_ns;      // measured: one per timed run, in order
  std::vector<double> against_ns;      // times of the second program, paired with samples_ns
  // A GPU gives "sm_clock_hz" (median of the runs) and others. The simulator gives "communicates":
  // 1 if the threads of some kernel exchange values.
  std::map<std::string, double> state;
  bool device_lost = false;  // nothing more can run in this process
};

// Identifies the GPU behind a measured figure. Empty on the simulator.
struct DeviceIdentity {
  std::string gpu, uuid, driver;  // "NVIDIA H200", "GPU-...", "580.159.04"
  // The newest CUDA version that the driver supports: 13000.
  int cuda_version = 0;
  int64_t memory_bytes = 0, l2_bytes = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceFacts facts() const = 0;
  // code: one cubin per module, "" for a module without one, or an empty vector.
  virtual Result<std::vector<ModuleFacts>> load(const std::vector<std::string>& ptx,
                                                const std::vector<std::string>& code) = 0;
  Result<std::vector<ModuleFacts>> load(const std::vector<std::string>& ptx) {
    return load(ptx, {});
  }
  virtual Result<void> bind(const std::vector<BufferBinding>& buffers) = 0;
  virtual Result<RunReport> run(const Context& ctx, const PlanSteps& steps,
                                const RunSettings& settings) = 0;
  // GPU only. Requires an earlier run() on the same buffers.
  virtual Result<RunReport> time(const Context& ctx, const TimeRequest& request);
  // Reads a part of a bound buffer, including buffers that run() does not copy back.
  virtual Result<void> read(const std::string& buffer, int64_t offset,
                            std::span<std::byte> out) = 0;
  virtual DeviceIdentity identity() const { return {}; }
};

// The error for an unknown simulator lists the known simulators.
Result<std::unique_ptr<Device>> open_device(const DeviceName& name);
// The facts of a simulated GPU, without opening it.
Result<DeviceFacts> device_facts(const DeviceName& name);

}  // namespace cutegen::device
