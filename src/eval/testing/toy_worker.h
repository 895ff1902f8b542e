// SPDX-License-Identifier: Apache-2.0
// For tests: a fake torch worker with a GPU. A test sets how each baseline behaves. ToyWorker does
// not support input sets.
//
// Contract: `ways` sets the behaviour of each baseline, by the baseline's name. A baseline without
// an entry takes 100 ns.
//
// Example: ToyWorker w; w.ways["compile"] = {.why = "it raises"};
#pragma once

#include <map>

#include "torch/worker.h"

namespace cutegen::eval {

struct ToyWay {
  std::string why;     // not empty: opening the baseline fails with this reason
  bool hangs = false;  // opening the baseline never ends
  bool dies = false;
  bool never_ends = false;  // timing the baseline never ends
  // the returned times in ns, repeated from the start if necessary
  std::vector<double> samples = {100};
};

class ToyWorker final : public torch::TorchWorker {
 public:
  std::map<std::string, ToyWay> ways;
  std::function<Result<Task>(const std::filesystem::path&)> task;
  std::string module_why;    // not empty: opening the module fails with this reason
  bool close_fails = false;  // close_baselines() fails, as after a broken CUDA context
  int opened = 0, closed = 0;
  std::vector<std::string> added, shapes;  // names of added baselines; shapes of opened modules
  // Implements run_baseline(); if empty, ToyWorker cannot run baselines on given values.
  std::function<Result<void>(const std::string& kind, const std::vector<torch::GpuTensor>&)> run;

  Result<Task> describe(const Context&, const std::filesystem::path& file,
                        const torch::DescribeOptions&) override {
    if (!task) return user_error("no task");
    return task(file);
  }
  Result<torch::TensorSet> make_set(const Context&, const Task&, const ShapeCase&,
                                    const std::string&, uint64_t) override {
    return user_error("no values");
  }
  Result<std::vector<std::string>> fill(const Context&, const Task&, const ShapeCase&,
                                        const std::string&, uint64_t,
                                        const std::vector<torch::GpuMemory>&,
                                        const std::vector<torch::GpuTensor>&) override {
    return world_error("no memory");
  }
  Result<std::vector<torch::BaselineOpened>> open_baselines(
      const Context&, const Task&, const ShapeCase& shape,
      const std::vector<torch::BaselineWanted>& wanted) override {
    if (!module_why.empty()) return unsupported_error(module_why);
    ++opened;
    shapes.push_back(shape.name);
    open_ = true;
    return std::vector<torch::BaselineOpened>(wanted.size());
  }
  Result<torch::BaselineOpened> add_baseline(const Context& ctx,
                                             const torch::BaselineWanted& wanted) override {
    const std::string kind = to_string(wanted.kind);
    const ToyWay& way = ways[kind];
    added.push_back(kind);
    if (!open_) return user_error("no module is open");
    if (way.hangs || way.dies) open_ = false;
    if (way.hangs) {
      while (!ctx.done()) {
      }
      CG_CHECK(ctx.check("waiting"));
      return torch::BaselineOpened{};
    }
    if (way.dies) return user_error("the task file ends the worker process (killed by SIGSEGV)");
    return torch::BaselineOpened{.why = way.why, .far = way.why.empty() ? 1e-6 : 0};
  }
  Result<void> run_baseline(const Context& ctx, const Task& task, BaselineKind kind,
                            const std::vector<torch::GpuMemory>& memory,
                            const std::vector<torch::GpuTensor>& slots) override {
    if (!run) return torch::TorchWorker::run_baseline(ctx, task, kind, memory, slots);
    return run(to_string(kind), slots);
  }
  Result<void> close_baselines(const Context&) override {
    open_ = false;
    ++closed;
    if (close_fails) return world_error("CUDA error");
    return {};
  }
  Result<std::vector<double>> time_baseline(const Context& ctx, BaselineKind kind, TimeMode,
                                            int samples) override {
    std::vector<double> out;
    const ToyWay& way = ways[to_string(kind)];
    while (way.never_ends && !ctx.done()) {
    }
    if (way.never_ends) CG_CHECK(ctx.check("timing"));
    const auto& from = way.samples;
    for (int i = 0; i < samples; ++i) out.push_back(from[at_++ % from.size()]);
    return out;
  }
  std::string version() const override { return "torch toy"; }
  sandbox::Grade grade() const override { return {}; }

 private:
  bool open_ = false;
  size_t at_ = 0;
};

}  // namespace cutegen::eval
