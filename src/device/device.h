// SPDX-License-Identifier: Apache-2.0
// Device: runs kernel programs. The simulator ("sim:h200") and GPUs ("cuda:0") share this
// interface.
//
// Contract: only the runner, the sandboxed process that executes programs, uses a Device. The
// function load() takes PTX modules and returns facts about each module. On a GPU, load() uses the
// module's machine code if the caller passes the code; otherwise the driver assembles the PTX. The
// function bind() sets the buffers, in the caller's memory, that the next runs use. The function
// run() executes the steps of a resolved plan in order, stops at the first step that fails, and
// copies the results to the caller's memory. If a kernel faults, run() returns a RunReport, not an
// Error, and the device can run the next candidate. After a report with `device_lost`, the process
// must exit.
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

// What a buffer contains before the first step: `data`, or undefined values (`output`, `scratch`).
// A program may leave undefined values in scratch, as padding, but not in an output.
enum class BufferContent { data, output, scratch };

// A buffer in GPU memory that another process owns, `offset` bytes after the start of the mapped
// memory.
struct SharedPart {
  int descriptor = -1;  // -1: not shared
  size_t mapped_bytes = 0, offset = 0;
};

struct BufferBinding {
  std::string name;
  std::span<std::byte> bytes;
  bool read_only = false;
  BufferContent content = BufferContent::data;
  // If not empty, a GPU device fills the buffer with repetitions of the pattern and copies nothing
  // back to the caller.
  std::span<const std::byte> pattern = {};
  // Only with a pattern or a descriptor: number of copies "NAME", "NAME#1", ... of the buffer,
  // which successive timed runs use in turn.
  int copies = 1;
  // If the descriptor is set, a GPU device maps this memory instead of copying `bytes`. A buffer
  // with `read_only` is mapped read-only.
  SharedPart shared = {};
  // For a mutated tensor in a shared buffer: name of the buffer from which a GPU device copies the
  // tensor's initial values before each timed run.
  std::string initial = {};
};

using PlanSteps = std::vector<std::variant<Launch, Fill>>;

// The order in which the simulator starts CTAs and runs warps: by index, highest index first, or
// random. In the order `mixed` (random), the simulator also switches to another warp at randomly
// chosen instructions by which threads communicate, such as barriers and atomics.
enum class RunOrder { in_order, reversed, mixed };

struct RunSettings {
  // Number of CTAs in the simulator's first sample of a launch; with 0, all CTAs run.
  int64_t sample_ctas = 0;
  uint64_t instruction_budget = 4'000'000'000;
  int threads = 0;
  // Whether the simulator looks for races and undefined values. A GPU ignores this flag.
  bool checks = false;
  // The simulator enlarges the sample until the counters' relative error is below `sample_error`,
  // or until the sample has `sample_most` CTAs.
  int64_t sample_most = 0;
  double sample_error = 0.02;
  uint64_t sample_seed = 1;
  bool lines = false;  // whether to count events by source line
  bool trace = false;  // whether to report what each launch executed and stored
  // Only with a sample of CTAs: a launch before the last step runs all of its CTAs, if the whole
  // launch takes at most this many warp instructions.
  uint64_t whole_instructions = 0;
  // The time limit of one run on a GPU.
  Nanoseconds limit = std::chrono::seconds(10);
  // Only the simulator uses `order`. The report has counters, times and traces only with in_order.
  RunOrder order = RunOrder::in_order;
  uint64_t order_seed = 1;
};

// Asks for timed runs on a GPU, on the bound buffers. Each run executes all steps of one program.
// If `paired` is set, the device alternates the program with a second program (`against`), in
// random order within each pair. Before each run, the device refills outputs and scratch with their
// patterns. If an output has several copies, each run uses the next copy, but a CUDA graph always
// uses the first copy. If `control` is set, the device omits only the steps themselves, to measure
// the overhead of timing.
struct TimeRequest {
  TimeMode mode = TimeMode::cold;
  PlanSteps steps, against;
  bool paired = false, control = false;
  // Whether to report temperature, power and throttle reasons, which takes milliseconds.
  bool watch = false;
  int samples = 8;  // per program
  uint64_t seed = 1;
  Nanoseconds limit = std::chrono::seconds(10);  // of one run
};

// A PTX instruction that a launch executed on the simulator, and how often (`runs`). If only a
// sample of the CTAs ran, `runs` is an estimate for the whole grid.
struct TracedInst {
  int64_t index = 0;             // index of the instruction in the kernel's PTX
  int64_t line = 0, column = 0;  // source line and column; 0: unknown
  int64_t opcode = 0;            // hash of the opcode's name; 0 for integer opcodes and branches
  double runs = 0;               // warp instructions
};
struct LaunchTrace {
  std::string kernel;
  size_t module = 0;
  int64_t ctas_total = 0, ctas_run = 0;
  // Relative errors of counters that a sample of CTAs estimates: half of a counter's 95% interval,
  // divided by the counter. `sample_error` is the largest of all counters' relative errors, and
  // `stored_error` is the relative error of the stored bytes.
  double sample_error = 0, stored_error = 0;
  // CTAs of the same kind have the same control flow. `kinds` counts the kinds of CTAs in the grid,
  // `kinds_missed` the kinds without a CTA in the sample. `kinds_known` is true if the simulator
  // classified every CTA of the grid.
  int64_t kinds = 1, kinds_missed = 0;
  bool kinds_known = true;
  double longest_cta = 0;         // warp instructions of the longest CTA, finished or not
  double flops = 0;               // FLOPs of scalar and matrix instructions
  double loaded = 0, stored = 0;  // bytes of global memory; an atomic is a load and a store
  bool atomics = false;           // on global memory
  std::map<std::string, double> stored_sectors;  // stored sectors of 32 bytes, by buffer
  std::map<std::string, double> stored_bytes;    // by buffer
  // For each mutated tensor after a sampled launch: how many of its bytes the CTAs of the sample
  // have stored, in this or an earlier launch. Each byte counts once; the number is not scaled to
  // the grid.
  std::map<std::string, double> stored_once;
  // Set only for a sampled launch, and only for buffers for which the simulator knows where the
  // grid stores. `unreached`: the share of the buffer to which no CTA stores. `unreached_from`:
  // where the first part without stores begins, as a share of the buffer (1: unknown).
  std::map<std::string, double> unreached, unreached_from;
  // Instructions that at least one lane executed, in program order.
  std::vector<TracedInst> executed;
};

struct RunReport {
  enum class Status { ok, finding, unsupported, out_of_budget } status = Status::ok;
  std::string message;                 // one line: the fault that was found, or why the run ended
  std::string detail;                  // place of the fault: instruction, source line, CTA, ...
  std::vector<KernelProfile> kernels;  // one profile per step that ran
  std::vector<LaunchTrace> traces;     // one trace per launch, if RunSettings::trace is set
  std::vector<double> samples_ns;      // measured time of each timed run, in order
  std::vector<double> against_ns;      // the second program's times, paired with samples_ns
  // Figures by name. A GPU reports "sm_clock_hz" (median of the runs) and others. The simulator
  // reports "communicates": 1 if threads of any kernel exchange values.
  std::map<std::string, double> state;
  bool device_lost = false;  // no further program can run in this process
};

// Identifies the GPU that produced a measured time. All fields are empty on the simulator.
struct DeviceIdentity {
  std::string gpu, uuid, driver;  // such as "NVIDIA H200", "GPU-...", "580.159.04"
  // The newest CUDA version that the driver supports, such as 13000.
  int cuda_version = 0;
  int64_t memory_bytes = 0, l2_bytes = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceFacts facts() const = 0;
  // `code` has a cubin for each module ("" for a module without a cubin), or is an empty list.
  virtual Result<std::vector<ModuleFacts>> load(const std::vector<std::string>& ptx,
                                                const std::vector<std::string>& code) = 0;
  Result<std::vector<ModuleFacts>> load(const std::vector<std::string>& ptx) {
    return load(ptx, {});
  }
  virtual Result<void> bind(const std::vector<BufferBinding>& buffers) = 0;
  virtual Result<RunReport> run(const Context& ctx, const PlanSteps& steps,
                                const RunSettings& settings) = 0;
  // Times a program on a GPU. Requires an earlier run() on the same buffers.
  virtual Result<RunReport> time(const Context& ctx, const TimeRequest& request);
  // Reads a part of a bound buffer, including buffers that run() does not copy back.
  virtual Result<void> read(const std::string& buffer, int64_t offset,
                            std::span<std::byte> out) = 0;
  virtual DeviceIdentity identity() const { return {}; }
};

// Opens "sim:NAME" or "cuda:N". The error for an unknown simulator lists the known simulators.
Result<std::unique_ptr<Device>> open_device(const DeviceName& name);
// Returns the facts about a simulated GPU without opening a device.
Result<DeviceFacts> device_facts(const DeviceName& name);

}  // namespace cutegen::device
