// SPDX-License-Identifier: Apache-2.0
// Timed runs of CudaDevice.
#include <algorithm>
#include <random>
#include <set>

#include "device/cuda/cuda_device.h"

namespace cutegen::device::cuda {
namespace {

constexpr size_t kMostGatedSteps = 256;  // a stream queues about 1,000 launches
constexpr size_t kLeastFlush = size_t{128} << 20;
constexpr int kDynamicShared = 8;  // attribute of a function
constexpr int kRelaxed = 2;        // capture mode: other calls stay allowed

// gate: holds back everything queued behind it until a word of pinned memory is `gate_value`.
//   It is a kernel, because a stream's own wait yields the GPU to other processes for milliseconds.
//   It opens by itself after kGateLimit, because a driver call may wait for the GPU.
// tick: reads the SM's cycles over some nanoseconds.
// soil: overwrites all shared memory of each SM, so that no data passes to the next run.
constexpr auto kGateLimit = std::chrono::milliseconds(250);
constexpr const char* kOwnKernels = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry gate(.param .u64 gate_at, .param .u32 gate_value, .param .u64 gate_limit)
{
  .reg .pred %p<3>;
  .reg .b32 %r<3>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [gate_at];
  ld.param.u32 %r1, [gate_value];
  ld.param.u64 %rd2, [gate_limit];
  mov.u64 %rd3, %globaltimer;
  add.s64 %rd2, %rd2, %rd3;
WAIT:
  ld.relaxed.sys.global.u32 %r2, [%rd1];
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra OPEN;
  mov.u64 %rd4, %globaltimer;
  setp.lt.u64 %p2, %rd4, %rd2;
  @%p2 bra WAIT;
OPEN:
  ret;
}
.visible .entry tick(.param .u64 tick_at)
{
  .reg .pred %p<2>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [tick_at];
  mov.u64 %rd2, %globaltimer;
EDGE:
  mov.u64 %rd3, %globaltimer;
  setp.eq.u64 %p1, %rd3, %rd2;
  @%p1 bra EDGE;
  mov.u64 %rd4, %clock64;
  add.s64 %rd5, %rd3, 15000;
COUNT:
  mov.u64 %rd6, %globaltimer;
  setp.lt.u64 %p1, %rd6, %rd5;
  @%p1 bra COUNT;
  mov.u64 %rd7, %clock64;
  sub.s64 %rd7, %rd7, %rd4;
  sub.s64 %rd6, %rd6, %rd3;
  st.global.u64 [%rd1], %rd7;
  st.global.u64 [%rd1+8], %rd6;
  ret;
}
.extern .shared .align 16 .b8 room[];
.visible .entry soil(.param .u32 soil_value, .param .u32 soil_words)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  ld.param.u32 %r1, [soil_value];
  ld.param.u32 %r2, [soil_words];
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, room;
LOOP:
  setp.ge.u32 %p1, %r3, %r2;
  @%p1 bra DONE;
  shl.b32 %r6, %r3, 2;
  add.u32 %r6, %r5, %r6;
  st.shared.u32 [%r6], %r1;
  add.u32 %r3, %r3, %r4;
  bra LOOP;
DONE:
  ret;
}
)";

std::set<std::string> buffers_of(const PlanSteps& steps) {
  std::set<std::string> out;
  for (const auto& step : steps) {
    if (const auto* launch = std::get_if<Launch>(&step)) {
      for (const LaunchArg& arg : launch->args)
        if (!arg.buffer.empty()) out.insert(arg.buffer);
    } else {
      out.insert(std::get<Fill>(step).buffer);
    }
  }
  return out;
}

}  // namespace

struct CudaDevice::Timed {
  Timed(const Driver& driver, const PlanSteps& given, bool control)
      : driver(driver), steps(control ? PlanSteps() : given), buffers(buffers_of(given)) {}
  ~Timed() {
    if (executable) driver.graph_executable_destroy(executable);
    if (graph) driver.graph_destroy(graph);
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

  const Driver& driver;
  const PlanSteps steps;
  const std::set<std::string> buffers;
  Handle graph = nullptr, executable = nullptr;
  std::vector<double> samples_ns, clocks_hz;
};

Result<void> CudaDevice::prepare_timing() {
  if (flush_) return {};
  flush_bytes_ = std::max(kLeastFlush, 3 * static_cast<size_t>(gpu_.identity.l2_bytes));
  CG_CHECK(driver_.check(driver_.allocate(&flush_, flush_bytes_), "taking memory to cool the L2"));
  constexpr const char* kLoading = "loading our own kernels";
  CG_CHECK(driver_.check(driver_.module_load(&own_module_, kOwnKernels), kLoading));
  CG_CHECK(driver_.check(driver_.module_function(&gate_kernel_, own_module_, "gate"), kLoading));
  CG_CHECK(driver_.check(driver_.module_function(&tick_, own_module_, "tick"), kLoading));
  CG_CHECK(driver_.check(driver_.module_function(&soil_, own_module_, "soil"), kLoading));
  return driver_.check(
      driver_.function_set(soil_, kDynamicShared, static_cast<int>(gpu_.facts.max_shared_bytes)),
      "preparing our own kernel");
}

// Writes one half and copies it to the other, so that the L2 holds none of the program's data and
// not only dirty lines.
Result<void> CudaDevice::cool_l2() {
  const size_t half = flush_bytes_ / 2;
  Status s = driver_.set8(flush_, static_cast<unsigned char>(gates_), half, stream_);
  if (s == kOk) s = driver_.copy(flush_ + half, flush_, half, stream_);
  return driver_.check(s, "cooling the L2");
}

Result<void> CudaDevice::soil_shared() {
  uint32_t value = gates_ * 2654435761U,
           words = static_cast<uint32_t>(gpu_.facts.max_shared_bytes / 4);
  void* arguments[] = {&value, &words};
  LaunchSettings settings{};
  settings.grid[0] = static_cast<unsigned>(gpu_.facts.sms);
  settings.block[0] = 1024;
  settings.grid[1] = settings.grid[2] = settings.block[1] = settings.block[2] = 1;
  settings.shared_bytes = static_cast<unsigned>(gpu_.facts.max_shared_bytes);
  settings.stream = stream_;
  return driver_.check(driver_.launch(&settings, soil_, arguments, nullptr),
                       "writing shared memory");
}

// The state before a run: fresh outputs, mutated tensors and scratch; unrelated values in shared
// memory, local memory and registers; the L2 cold or warm.
Result<void> CudaDevice::set_scene(const TimeRequest& request, const Timed& timed) {
  for (const std::string& name : timed.buffers) CG_CHECK(buffers_.refill(name, stream_));
  CG_CHECK(soil_shared());
  scrubber_.run(stream_, gates_ * 2654435761U, flush_);
  if (request.mode != TimeMode::warm) return cool_l2();
  CG_TRY(Status queued, queue_all(timed, false));
  CG_CHECK(driver_.check(queued, "warming the L2"));
  for (const std::string& name : timed.buffers) CG_CHECK(buffers_.restore(name, stream_));
  return {};
}

Result<Status> CudaDevice::queue_all(const Timed& timed, bool in_graph) {
  if (in_graph && timed.executable) return driver_.graph_launch(timed.executable, stream_);
  for (size_t i = 0; i < timed.steps.size(); ++i) {
    CG_TRY(Status queued, queue(timed.steps[i], i == 0));
    if (queued != kOk) return queued;
  }
  return kOk;
}

Result<void> CudaDevice::capture(Timed& timed) {
  CG_CHECK(driver_.check(driver_.capture_begin(stream_, kRelaxed), "capturing a graph"));
  auto queued = queue_all(timed, false);
  Status ended = driver_.capture_end(stream_, &timed.graph);
  if (!queued) return fail(queued.error());
  CG_CHECK(driver_.check(*queued == kOk ? ended : *queued, "capturing a graph"));
  return driver_.check(driver_.graph_instantiate(&timed.executable, timed.graph, 0),
                       "making a graph");
}

Result<void> CudaDevice::shut_gate() {
  uint64_t limit = static_cast<uint64_t>(Nanoseconds(kGateLimit).count());
  uint32_t value = ++gates_;
  void* arguments[] = {&pinned_address_, &value, &limit};
  return launch_one(gate_kernel_, arguments);
}

Result<void> CudaDevice::launch_one(Handle kernel, void** arguments) {
  LaunchSettings settings{};
  for (int i = 0; i < 3; ++i) settings.grid[i] = settings.block[i] = 1;
  settings.stream = stream_;
  return driver_.check(driver_.launch(&settings, kernel, arguments, nullptr),
                       "launching our own kernel");
}

// Queues gate, event, steps, event and tick. The gate opens when all are queued, so that the time
// excludes the host.
Result<double> CudaDevice::by_events(const Context& ctx, const TimeRequest& request, Timed& timed,
                                     RunReport& report) {
  if (timed.steps.size() <= kMostGatedSteps) CG_CHECK(shut_gate());
  Status status = driver_.event_record(begin_, stream_);
  if (status == kOk) {
    auto queued = queue_all(timed, request.mode == TimeMode::graph);
    if (!queued) open_gate();
    if (!queued) return fail(queued.error());
    status = *queued;
  }
  if (status == kOk) status = driver_.event_record(end_, stream_);
  Address ticks_at = pinned_address_ + offsetof(Pinned, cycles);
  void* arguments[] = {&ticks_at};
  auto ticking = status == kOk ? launch_one(tick_, arguments) : Result<void>();
  open_gate();
  if (status == kOk) {
    CG_TRY(status, wait(ctx, request.limit));
  }
  CG_CHECK(note_fault(status, "a timed run", report));
  if (report.status != RunReport::Status::ok) return 0.0;
  CG_CHECK(ticking);
  if (pinned_->ns > 0)
    timed.clocks_hz.push_back(1e9 * static_cast<double>(pinned_->cycles) / double(pinned_->ns));
  float ms = 0;
  CG_CHECK(driver_.check(driver_.event_elapsed(&ms, begin_, end_), "reading the time"));
  return double(ms) * 1e6;
}

Result<double> CudaDevice::by_the_clock(const Context& ctx, const TimeRequest& request,
                                        Timed& timed, RunReport& report) {
  CG_TRY(Status status, wait(ctx, request.limit));
  const auto start = Clock::now();
  if (status == kOk) {
    CG_TRY(status, queue_all(timed, false));
  }
  while (status == kOk) {
    status = driver_.stream_query(stream_);
    if (status != kNotReady || Clock::now() - start > request.limit || ctx.done()) break;
    status = kOk;
  }
  const auto elapsed = Clock::now() - start;
  CG_CHECK(note_fault(status, "a timed call", report));
  return static_cast<double>(std::chrono::duration_cast<Nanoseconds>(elapsed).count());
}

Result<void> CudaDevice::sample(const Context& ctx, const TimeRequest& request, Timed& timed,
                                RunReport& report) {
  if (report.status != RunReport::Status::ok) return {};
  CG_CHECK(set_scene(request, timed));
  CG_TRY(double ns, request.mode == TimeMode::call ? by_the_clock(ctx, request, timed, report)
                                                   : by_events(ctx, request, timed, report));
  if (report.status == RunReport::Status::ok) timed.samples_ns.push_back(ns);
  return {};
}

Result<void> CudaDevice::take_pairs(const Context& ctx, const TimeRequest& request, Timed& own,
                                    Timed& other, RunReport& report) {
  std::mt19937_64 random(request.seed);
  // A graph holds the addresses of its capture, so all its runs use the first copy.
  if (request.mode == TimeMode::graph) {
    CG_CHECK(capture(own));
    if (request.paired) CG_CHECK(capture(other));
  }
  for (int run = 0; run < request.samples && report.status == RunReport::Status::ok; ++run) {
    if (request.mode != TimeMode::graph) buffers_.use_copy(run);
    const bool first = random() & 1;
    if (request.paired && !first) CG_CHECK(sample(ctx, request, other, report));
    CG_CHECK(sample(ctx, request, own, report));
    if (request.paired && first) CG_CHECK(sample(ctx, request, other, report));
  }
  return {};
}

Result<RunReport> CudaDevice::time(const Context& ctx, const TimeRequest& request) {
  if (lost_) return world_error("this GPU context is broken", "start the runner again");
  CG_CHECK(prepare_timing());
  scrubber_.prepare();
  RunReport report;
  Timed own(driver_, request.steps, request.control);
  Timed other(driver_, request.against, request.control);
  buffers_.use_copy(0);
  CG_CHECK(take_pairs(ctx, request, own, other, report));
  report.samples_ns = std::move(own.samples_ns);
  report.against_ns = std::move(other.samples_ns);
  if (lost_) return report;
  if (request.watch) report.state = watch_.read();
  for (const std::string& what : scrubber_.missing()) report.state["not_scrubbed." + what] = 1;
  if (auto& clocks = own.clocks_hz; !clocks.empty()) {
    std::sort(clocks.begin(), clocks.end());
    report.state["sm_clock_hz"] = clocks[clocks.size() / 2];
    report.state["sm_clock_least_hz"] = clocks.front();
  }
  CG_TRY(std::string damage, buffers_.copy_back());
  if (report.status == RunReport::Status::ok && !damage.empty()) {
    report.status = RunReport::Status::finding;
    report.message = "out_of_bounds: " + damage;
  }
  return report;
}

}  // namespace cutegen::device::cuda
