// SPDX-License-Identifier: Apache-2.0
// A foreign answer at the official shape of a GPU: values compared, calls timed beside eager.
//
// Contract: every call has a set of its own that nobody met before and nobody meets again (the
// answer's process may keep what it was given), inputs mapped read-only, outputs in our memory,
// which are compared with the truth on the GPU after each call, timed or not. In a round the answer
// and eager, in a process that we trust, take turns with the GPU to themselves, in random order,
// with a cold L2. Most calls are queued behind a wait, which keeps the host's share out of the
// time; but a stream of the answer's own does not wait. So every third call is an open one: the GPU
// is idle, and the evaluator's clock, less a control call, sees all of it. Where the other times
// are too short for that, the open ones count; where these are too short as well, the answer is
// `rejected`, as below the floor. Control calls are made in a process that never loads an
// answer, before the answer is loaded: nothing that it does can change what is subtracted.
//
// Example: ForeignOfficial official(ctx, services, task, worker, {judge.gpu(), source});
//   CG_TRY(TimingOutcome t, time_foreign(ctx, services, task, official, controls, open_baseline,
//                                        progress));
#pragma once

#include "eval/rungs/official.h"
#include "eval/rungs/timing.h"
#include "torch/foreign_worker.h"

namespace cutegen::eval {

// Where official sets come from: one that nobody met, of a family; and the memory they lie in.
struct ForeignPlace {
  GpuJudge& gpu;
  std::function<Result<OfficialSetPtr>(const std::string& family)> fresh;
};

class ForeignOfficial {
 public:
  // One call, or all of it but the call (control: only in a process without an answer); behind a
  // wait, or open.
  using Call = std::function<Result<torch::ForeignReply>(bool control, bool open)>;
  // What happens around it; empty: the call alone.
  using Around = std::function<Result<torch::ForeignReply>(const Call& call)>;
  struct Shown {
    RungEnd end;
    torch::ForeignReply model, run;
    bool judged = false;  // its outputs were compared
    OfficialFindings found;
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

// The file that a control process loads instead of an answer: outputs of the task's shapes, and no
// computation.
torch::ForeignFile control_file(const Task& task);
// Control calls on a process that has loaded that file: their times by our clock. `unsupported`: a
// set does not fit the GPU.
Result<std::vector<double>> control_calls(const Context& ctx, const Services& services,
                                          ForeignOfficial& clean);
struct ForeignControls {
  std::vector<double> before;  // the answer was loaded
  // Ends the answer's process, and takes others: the machine may be slower than it was.
  std::function<Result<std::vector<double>>()> again;
};

// A worker on the GPU that sees no answer; it stays its owner's.
using BesideSource = std::function<Result<torch::TorchWorker*>()>;

Result<TimingOutcome> time_foreign(const Context& ctx, const Services& services, const Task& task,
                                   ForeignOfficial& official, const ForeignControls& controls,
                                   const BesideSource& open_baseline, const Progress& progress);

// Times that the process tells of single calls, and eager's beside them (none, or as many).
struct ForeignSeries {
  std::vector<double> own, eager;
  bool paired() const { return !own.empty() && own.size() == eager.size(); }
};
// `seen` and `control`: the open calls and their control calls by our clock.
struct ForeignTimes {
  ForeignSeries queued, open;
  std::vector<double> seen, control;
};
// By the medians: what our clock saw of open calls may be longer by 15% or 300 us than `told`.
ClockCheck check_foreign_clock(const ForeignTimes& times, const ForeignSeries& told);

}  // namespace cutegen::eval
