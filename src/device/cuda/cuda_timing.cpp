// SPDX-License-Identifier: Apache-2.0
// Timed runs of CudaDevice.
#include <algorithm>
#include <random>
#include <set>

#include "device/cuda/cuda_device.h"

namespace cutegen::device::cuda {
namespace {

constexpr size_t kMostGatedSteps = 256;  // a stream queues about 1,000 launches
constexpr int kRelaxed = 2;              // capture mode that permits other calls

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

// A program with its timed samples.
struct Timed {
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
  std::vector<double> samples_ns, clocks_hz, coolings_ns;
};

// The timed runs of one request.
class TimedRuns {
 public:
  TimedRuns(const Context& ctx, const TimeRequest& request, const Driver& driver, StepQueue& queue,
            OwnKernels& own, Buffers& buffers, Scrubber& scrubber)
      : program(driver, request.steps, request.control),
        against(driver, request.against, request.control),
        ctx_(ctx),
        request_(request),
        driver_(driver),
        queue_(queue),
        own_(own),
        buffers_(buffers),
        scrubber_(scrubber) {}
  Result<void> take_pairs(RunReport& report);

  Timed program, against;

 private:
  Result<void> sample(Timed& timed, RunReport& report);
  Result<double> by_events(Timed& timed, RunReport& report);
  Result<double> by_the_clock(Timed& timed, RunReport& report);
  Result<Status> queue_all(const Timed& timed, bool in_graph);
  Result<void> capture(Timed& timed);
  Result<void> set_scene(const Timed& timed);

  const Context& ctx_;
  const TimeRequest& request_;
  const Driver& driver_;
  StepQueue& queue_;
  OwnKernels& own_;
  Buffers& buffers_;
  Scrubber& scrubber_;
};

// Restores outputs, mutated tensors and scratch, overwrites shared memory, local memory and
// registers, and makes the L2 cold or warm.
Result<void> TimedRuns::set_scene(const Timed& timed) {
  for (const std::string& name : timed.buffers) CG_CHECK(buffers_.refill(name, queue_.stream()));
  CG_CHECK(own_.soil_shared(queue_.stream()));
  scrubber_.run(queue_.stream(), own_.mark(), own_.spare());
  if (request_.mode != TimeMode::warm) return own_.cool_l2(queue_.stream());
  CG_TRY(Status queued, queue_all(timed, false));
  CG_CHECK(driver_.check(queued, "warming the L2"));
  for (const std::string& name : timed.buffers) CG_CHECK(buffers_.restore(name, queue_.stream()));
  return {};
}

Result<Status> TimedRuns::queue_all(const Timed& timed, bool in_graph) {
  if (in_graph && timed.executable) return driver_.graph_launch(timed.executable, queue_.stream());
  for (size_t i = 0; i < timed.steps.size(); ++i) {
    CG_TRY(Status queued, queue_.queue(timed.steps[i], i == 0));
    if (queued != kOk) return queued;
  }
  return kOk;
}

Result<void> TimedRuns::capture(Timed& timed) {
  CG_CHECK(driver_.check(driver_.capture_begin(queue_.stream(), kRelaxed), "capturing a graph"));
  auto queued = queue_all(timed, false);
  Status ended = driver_.capture_end(queue_.stream(), &timed.graph);
  if (!queued) return fail(queued.error());
  CG_CHECK(driver_.check(*queued == kOk ? ended : *queued, "capturing a graph"));
  return driver_.check(driver_.graph_instantiate(&timed.executable, timed.graph, 0),
                       "making a graph");
}

// Queues gate, event, steps, event and tick. The gate opens when all are queued, so that the time
// excludes the host's work.
Result<double> TimedRuns::by_events(Timed& timed, RunReport& report) {
  if (timed.steps.size() <= kMostGatedSteps) CG_CHECK(own_.shut_gate(queue_.stream()));
  Status status = queue_.record_begin();
  if (status == kOk) {
    auto queued = queue_all(timed, request_.mode == TimeMode::graph);
    if (!queued) own_.open_gate();
    if (!queued) return fail(queued.error());
    status = *queued;
  }
  if (status == kOk) status = queue_.record_end();
  auto ticking = status == kOk ? own_.tick(queue_.stream()) : Result<void>();
  own_.open_gate();
  if (status == kOk) {
    CG_TRY(status, queue_.wait(ctx_, request_.limit));
  }
  CG_CHECK(queue_.note_fault(status, "a timed run", report));
  if (report.status != RunReport::Status::ok) return 0.0;
  CG_CHECK(ticking);
  if (auto hz = own_.clock_hz()) timed.clocks_hz.push_back(*hz);
  if (auto ns = own_.cooling_ns(); ns && request_.mode != TimeMode::warm)
    timed.coolings_ns.push_back(*ns);
  float ms = 0;
  CG_CHECK(driver_.check(queue_.elapsed(&ms), "reading the time"));
  return double(ms) * 1e6;
}

Result<double> TimedRuns::by_the_clock(Timed& timed, RunReport& report) {
  CG_TRY(Status status, queue_.wait(ctx_, request_.limit));
  const auto start = Clock::now();
  if (status == kOk) {
    CG_TRY(status, queue_all(timed, false));
  }
  while (status == kOk) {
    status = driver_.stream_query(queue_.stream());
    if (status != kNotReady || Clock::now() - start > request_.limit || ctx_.done()) break;
    status = kOk;
  }
  const auto elapsed = Clock::now() - start;
  CG_CHECK(queue_.note_fault(status, "a timed call", report));
  return double(std::chrono::duration_cast<Nanoseconds>(elapsed).count());
}

Result<void> TimedRuns::sample(Timed& timed, RunReport& report) {
  if (report.status != RunReport::Status::ok) return {};
  CG_CHECK(set_scene(timed));
  CG_TRY(double ns,
         request_.mode == TimeMode::call ? by_the_clock(timed, report) : by_events(timed, report));
  if (report.status == RunReport::Status::ok) timed.samples_ns.push_back(ns);
  return {};
}

Result<void> TimedRuns::take_pairs(RunReport& report) {
  std::mt19937_64 random(request_.seed);
  // A graph holds the addresses of its capture, so all its runs use the first copy.
  if (request_.mode == TimeMode::graph) {
    CG_CHECK(capture(program));
    if (request_.paired) CG_CHECK(capture(against));
  }
  for (int run = 0; run < request_.samples && report.status == RunReport::Status::ok; ++run) {
    if (request_.mode != TimeMode::graph) buffers_.use_copy(run);
    const bool first = random() & 1;
    if (request_.paired && !first) CG_CHECK(sample(against, report));
    CG_CHECK(sample(program, report));
    if (request_.paired && first) CG_CHECK(sample(against, report));
  }
  return {};
}

}  // namespace

Result<RunReport> CudaDevice::time(const Context& ctx, const TimeRequest& request) {
  if (queue_.lost()) return world_error("this GPU context is broken", "start the runner again");
  CG_CHECK(own_.load(gpu_.facts, size_t(gpu_.identity.l2_bytes)));
  scrubber_.prepare(modules_.local_bytes());
  RunReport report;
  TimedRuns runs(ctx, request, driver_, queue_, own_, buffers_, scrubber_);
  buffers_.use_copy(0);
  CG_CHECK(runs.take_pairs(report));
  report.samples_ns = std::move(runs.program.samples_ns);
  report.against_ns = std::move(runs.against.samples_ns);
  if (queue_.lost()) return report;
  if (request.watch) report.state = watch_.read();
  for (const std::string& what : scrubber_.missing()) report.state["not_scrubbed." + what] = 1;
  if (auto& clocks = runs.program.clocks_hz; !clocks.empty()) {
    std::sort(clocks.begin(), clocks.end());
    report.state["sm_clock_hz"] = clocks[clocks.size() / 2];
    report.state["sm_clock_least_hz"] = clocks.front();
  }
  auto coolings = std::move(runs.program.coolings_ns);
  coolings.insert(coolings.end(), runs.against.coolings_ns.begin(), runs.against.coolings_ns.end());
  if (!coolings.empty()) {
    std::sort(coolings.begin(), coolings.end());
    report.state["cooling_ns"] = coolings[coolings.size() / 2];
    report.state["cooling_least_ns"] = coolings.front();
  }
  CG_CHECK(copy_back(report));
  return report;
}

}  // namespace cutegen::device::cuda
