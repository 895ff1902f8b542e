// SPDX-License-Identifier: Apache-2.0
// Times a third-party solution at one shape on a GPU and compares the outputs of every call.
//
// Contract: every call uses a fresh input set, which the solution's process maps read-only, because
// this process may remember inputs. After each call, timed or not, the GPU compares the outputs
// with the truth (the result in float64). In each round, the solution and eager mode (in a trusted
// process) run once in random order with a cold L2. Meanwhile, no other process of cutegen uses the
// GPU.
//
// Most calls are "queued": the GPU waits until the host has queued all launches, so the time
// excludes the host's work. But a solution could start early on streams of its own, which do not
// wait. Every third call is therefore "open": the GPU is idle when the call begins, and the
// evaluator's own clock measures the whole call. The evaluator subtracts the time of a control call
// (a call that computes nothing). If the times of queued calls are too short compared with the open
// calls, the times of the open calls count. The solution is `rejected` if its process reports times
// for open calls that are too short by the evaluator's clock, or a time below the floor (the least
// possible time). Control calls run in a process of their own, which never loads a solution, so no
// solution can change their time.
//
// Example: ForeignCalls calls(ctx, services, task, worker, {judge.gpu(), task.official(), source});
//   CG_TRY(TimingOutcome t, time_foreign(ctx, services, task, calls, controls, open_baseline,
//                                        progress));
#pragma once

#include "eval/rungs/gpu_correctness.h"
#include "eval/rungs/timing.h"
#include "eval/sets/judged_buffers.h"
#include "torch/foreign_worker.h"

namespace cutegen::eval {

// The source of input sets at a shape: `fresh` draws a set that no program has seen, and `gpu` owns
// the memory of the sets.
struct ForeignPlace {
  GpuJudge& gpu;
  const ShapeCase& shape;
  std::function<Result<GpuSetPtr>(const std::string& family)> fresh;
};

class ForeignCalls {
 public:
  // Makes one call. control: make a control call (only in a process without a solution). open: make
  // an open call; false: a queued call.
  using Call = std::function<Result<torch::ForeignReply>(bool control, bool open)>;
  // Wraps a call in additional work, such as taking the GPU's lock; empty: no additional work.
  using Around = std::function<Result<torch::ForeignReply>(const Call& call)>;
  struct Shown {
    RungEnd end;
    torch::ForeignReply model, run;
    bool judged = false;  // the evaluator compared the outputs
    GpuFindings found;
    std::vector<std::string> notes;  // remarks about the input set
  };

  ForeignCalls(const Context& ctx, const Services& services, const Task& task,
               torch::ForeignWorker& worker, ForeignPlace place)
      : ctx_(ctx), services_(services), task_(task), worker_(worker), place_(std::move(place)) {}
  const ShapeCase& shape() const { return place_.shape; }
  // Returns the error `unsupported` if a set does not fit in the GPU's memory.
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
// these sizes and computes nothing.
torch::ForeignFile control_file(const Task& task, const ShapeCase& shape);
// Times control calls by the evaluator's clock. The process of `clean` must have loaded
// control_file(). Returns the error `unsupported` if a set does not fit in the GPU's memory.
Result<std::vector<double>> control_calls(const Context& ctx, const Services& services,
                                          ForeignCalls& clean);
struct ForeignControls {
  std::vector<double> before;  // times of control calls before the solution was loaded
  // Ends the solution's process and times control calls again, because the machine may be slower
  // now.
  std::function<Result<std::vector<double>>()> again;
};

// Opens a torch worker on the GPU that never loads a solution. The caller does not own the worker.
using BesideSource = std::function<Result<torch::TorchWorker*>()>;

Result<TimingOutcome> time_foreign(const Context& ctx, const Services& services, const Task& task,
                                   ForeignCalls& calls, const ForeignControls& controls,
                                   const BesideSource& open_baseline, const Progress& progress);

// own: the times that the solution's process reports for its calls. eager: as many times of eager
// mode, or none.
struct ForeignSeries {
  std::vector<double> own, eager;
  bool paired() const { return !own.empty() && own.size() == eager.size(); }
};
// The reported times of queued and open calls. `seen`: times of the open calls by the evaluator's
// clock; `control`: times of the control calls by this clock.
struct ForeignTimes {
  ForeignSeries queued, open;
  std::vector<double> seen, control;
};
// Compares the evaluator's clock with the reported times `told`, by medians over the open calls.
// The clocks agree if the evaluator's clock shows at most 15% or 300 us more than `told`.
ClockCheck check_foreign_clock(const ForeignTimes& times, const ForeignSeries& told);

}  // namespace cutegen::eval
