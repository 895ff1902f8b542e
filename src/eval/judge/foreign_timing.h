// SPDX-License-Identifier: Apache-2.0
// Times a third-party solution at the official shape (the sizes in the task file) on a GPU and
// compares the outputs of every call.
//
// Contract: every call uses a fresh input set, because the solution's process may remember inputs.
// The process maps the inputs read-only. After each call, timed or not, the GPU compares the
// outputs with the truth (the result in float64). In each round, the solution and eager mode (in a
// trusted process) run once in random order with a cold L2. Nothing else of cutegen uses the GPU
// meanwhile. Most calls are "queued": the GPU waits until the host has queued all launches, so the
// time excludes the host's work. Streams that the solution creates do not wait, so the solution
// could start early. Therefore every third call is "open": the GPU is idle when the call begins,
// and the evaluator's own clock measures the whole call, minus the time of a control call (a call
// that computes nothing). If the queued times are too short compared with the open times, the open
// times count. If the process reports open times that are too short by the evaluator's clock, the
// solution is `rejected`, as for a time below the floor (the least possible time). Control calls
// run before the solution is loaded, in a process that never loads a solution, so the solution
// cannot change the subtracted time.
//
// Example: ForeignOfficial official(ctx, services, task, worker, {judge.gpu(), source});
//   CG_TRY(TimingOutcome t, time_foreign(ctx, services, task, official, controls, open_baseline,
//                                        progress));
#pragma once

#include "eval/rungs/gpu_correctness.h"
#include "eval/rungs/timing.h"
#include "eval/sets/judged_buffers.h"
#include "torch/foreign_worker.h"

namespace cutegen::eval {

// The source of input sets at the official shape: `fresh` draws a set that no program has seen, and
// `gpu` owns its memory.
struct ForeignPlace {
  GpuJudge& gpu;
  std::function<Result<GpuSetPtr>(const std::string& family)> fresh;
};

class ForeignOfficial {
 public:
  // Makes one call. control: do everything except the solution's work (only in a process without a
  // solution). open: make an open call, else a queued one.
  using Call = std::function<Result<torch::ForeignReply>(bool control, bool open)>;
  // Wraps the call in additional work, such as taking the GPU's lock. Empty: no additional work.
  using Around = std::function<Result<torch::ForeignReply>(const Call& call)>;
  struct Shown {
    RungEnd end;
    torch::ForeignReply model, run;
    bool judged = false;  // the evaluator compared the outputs
    GpuFindings found;
    std::vector<std::string> notes;  // notes of the input set
  };

  ForeignOfficial(const Context& ctx, const Services& services, const Task& task,
                  torch::ForeignWorker& worker, ForeignPlace place)
      : ctx_(ctx), services_(services), task_(task), worker_(worker), place_(std::move(place)) {}
  // Returns the error `unsupported` if a set does not fit the GPU.
  Result<Shown> show(const std::string& family, int warm_up, const Around& around);

 private:
  torch::ForeignTensors tensors(const std::vector<SharedBuffer>& buffers,
                                std::initializer_list<TensorRole> roles) const;

  const Context& ctx_;
  const Services& services_;
  const Task& task_;
  torch::ForeignWorker& worker_;
  ForeignPlace place_;
};

// Returns the file that a control process loads instead of a solution. Its model returns outputs of
// the task's shapes and computes nothing.
torch::ForeignFile control_file(const Task& task);
// Times control calls by the evaluator's clock. The process must have loaded control_file().
// Returns the error `unsupported` if a set does not fit the GPU.
Result<std::vector<double>> control_calls(const Context& ctx, const Services& services,
                                          ForeignOfficial& clean);
struct ForeignControls {
  std::vector<double> before;  // times of the control calls before the solution was loaded
  // Ends the solution's process and times control calls again, because the machine may be slower
  // now.
  std::function<Result<std::vector<double>>()> again;
};

// Opens a torch worker on the GPU that never loads a solution. The caller does not own the worker.
using BesideSource = std::function<Result<torch::TorchWorker*>()>;

Result<TimingOutcome> time_foreign(const Context& ctx, const Services& services, const Task& task,
                                   ForeignOfficial& official, const ForeignControls& controls,
                                   const BesideSource& open_baseline, const Progress& progress);

// The times that the solution's process reports for its calls, and as many times of eager mode (or
// none).
struct ForeignSeries {
  std::vector<double> own, eager;
  bool paired() const { return !own.empty() && own.size() == eager.size(); }
};
// The reported times of queued and open calls. seen, control: the times of open calls and control
// calls by the evaluator's clock.
struct ForeignTimes {
  ForeignSeries queued, open;
  std::vector<double> seen, control;
};
// Compares the medians of the open calls. The evaluator's clock may show up to 15% or 300 us more
// than the reported times (`told`).
ClockCheck check_foreign_clock(const ForeignTimes& times, const ForeignSeries& told);

}  // namespace cutegen::eval
