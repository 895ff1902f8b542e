// SPDX-License-Identifier: Apache-2.0
// Times a third-party solution at the official shape on a GPU and compares the outputs of every
// call.
//
// Contract: every call has a fresh set, because the solution's process may keep its inputs. The
// process maps inputs read-only; the GPU compares the outputs with the truth after each call, timed
// or not. In a round, the solution and eager (in a trusted process) take turns, alone on the GPU,
// in random order and with a cold L2. Most calls are queued behind a wait on the GPU, which keeps
// the host's share out of the time. But streams that the solution creates do not wait there. So
// every third call is open: the GPU is idle when it begins, and the evaluator's own clock measures
// the whole call, minus the time of a control call. If the queued times are too short compared with
// the open calls, the open times count. If these are too short as well, the solution is `rejected`,
// as for a time below the floor. Control calls run before the solution is loaded, in a process that
// never loads one, so the solution cannot change what is subtracted.
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

// The source of official sets: `fresh` draws an unused set of a family, and `gpu` owns its memory.
struct ForeignPlace {
  GpuJudge& gpu;
  std::function<Result<GpuSetPtr>(const std::string& family)> fresh;
};

class ForeignOfficial {
 public:
  // Makes one call. control: everything of a call except the solution's work (only in a process
  // without a solution). open: the call is not queued behind a wait.
  using Call = std::function<Result<torch::ForeignReply>(bool control, bool open)>;
  // Work to do before and after the call. Empty: only the call.
  using Around = std::function<Result<torch::ForeignReply>(const Call& call)>;
  struct Shown {
    RungEnd end;
    torch::ForeignReply model, run;
    bool judged = false;  // outputs were compared
    GpuFindings found;
    std::vector<std::string> notes;  // of the set
  };

  ForeignOfficial(const Context& ctx, const Services& services, const Task& task,
                  torch::ForeignWorker& worker, ForeignPlace place)
      : ctx_(ctx), services_(services), task_(task), worker_(worker), place_(std::move(place)) {}
  // `unsupported`: a set does not fit the GPU.
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

// The file that a control process loads instead of a solution. It returns outputs of the task's
// shapes and computes nothing.
torch::ForeignFile control_file(const Task& task);
// Times the control calls of a process that has loaded that file, by the evaluator's clock.
// `unsupported`: a set does not fit the GPU.
Result<std::vector<double>> control_calls(const Context& ctx, const Services& services,
                                          ForeignOfficial& clean);
struct ForeignControls {
  std::vector<double> before;  // the control calls before the solution was loaded
  // Ends the solution's process and repeats the control calls, because the machine may be slower
  // now.
  std::function<Result<std::vector<double>>()> again;
};

// Opens a worker on the GPU that sees no solution. The function keeps ownership of the worker.
using BesideSource = std::function<Result<torch::TorchWorker*>()>;

Result<TimingOutcome> time_foreign(const Context& ctx, const Services& services, const Task& task,
                                   ForeignOfficial& official, const ForeignControls& controls,
                                   const BesideSource& open_baseline, const Progress& progress);

// The times that the process reports for its calls, and the same number of eager's times (or none).
struct ForeignSeries {
  std::vector<double> own, eager;
  bool paired() const { return !own.empty() && own.size() == eager.size(); }
};
// seen, control: times of the open calls and the control calls, by the evaluator's clock.
struct ForeignTimes {
  ForeignSeries queued, open;
  std::vector<double> seen, control;
};
// Compares medians of the open calls: the times by the evaluator's clock may exceed the reported
// times (`told`) by 15% or 300 us.
ClockCheck check_foreign_clock(const ForeignTimes& times, const ForeignSeries& told);

}  // namespace cutegen::eval
