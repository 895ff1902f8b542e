// SPDX-License-Identifier: Apache-2.0
#include "eval/baselines/baseline_accuracy.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "eval/diagnosis/feedback.h"
#include "eval/rungs/gpu_correctness.h"
#include "eval/runner/gpu_slot.h"
#include "eval/sets/judged_buffers.h"

namespace cutegen::eval {
namespace {

constexpr auto kRunLimit = std::chrono::seconds(60);
constexpr size_t kMostWhy = 300;

// The memory of a run, and the places of the task's tensors in it.
struct Given {
  std::vector<torch::GpuMemory> memory;
  std::vector<torch::GpuTensor> slots;
};

Given given_of(const JudgedBuffers& run, const Task& task, const ShapeCase& shape) {
  Given out;
  for (const SharedBuffer& b : run.buffers()) {
    const TensorInfo* info = task.find(b.name);
    if (!info) continue;
    torch::GpuTensor slot;
    slot.tensor = {.name = b.name,
                   .part = info->role == TensorRole::output ? "output" : "value",
                   .dtype = info->dtype,
                   .shape = shape.tensors.at(b.name),
                   .offset = size_t(b.offset),
                   .bytes = size_t(b.bytes)};
    slot.memory = out.memory.size();
    out.slots.push_back(std::move(slot));
    out.memory.push_back({.descriptor = b.descriptor, .bytes = size_t(b.mapped_bytes)});
  }
  return out;
}

class AccuracyJudge {
 public:
  AccuracyJudge(const Context& ctx, const BaselineSets& sets, torch::TorchWorker& worker,
                const Task& task, const ShapeCase& shape)
      : ctx_(ctx), sets_(sets), worker_(worker), task_(task), shape_(shape) {}

  // Judges the baseline on one set. Returns false if the baseline raised an error; the caller then
  // tries no other sets.
  Result<bool> one(const GpuSetPtr& set, BaselineKind kind, BaselineAccuracy& out) {
    auto found = run(set, kind);
    CG_CHECK(ctx_.check("judging baselines"));
    if (!found) {
      if (!out.passes || *out.passes) out.passes.reset();
      out.why = sanitize(found.error().message, kMostWhy);
      return false;
    }
    out.share = std::max(out.share.value_or(0), found->worst_ratio);
    out.passes = out.passes.value_or(true) && found->mismatches.empty();
    if (!found->mismatches.empty() && out.why.empty())
      out.why = sanitize(text_of(found->mismatches.front()), kMostWhy);
    return true;
  }

 private:
  // Releases this process's lock on the GPU during the run, because the worker takes the lock
  // itself.
  Result<GpuFindings> run(const GpuSetPtr& set, BaselineKind kind) {
    CG_TRY(auto slot, share());
    CG_TRY(JudgedBuffers memory, JudgedBuffers::make(ctx_, *sets_.gpu, set, {}, {}));
    slot.reset();
    const Given given = given_of(memory, task_, shape_);
    CG_CHECK(
        worker_.run_baseline(ctx_.with_timeout(kRunLimit), task_, kind, given.memory, given.slots));
    CG_TRY(slot, share());
    return memory.judge(ctx_);
  }

  Result<std::optional<GpuSlot>> share() {
    std::optional<GpuSlot> out;
    if (sets_.lock) {
      CG_TRY(out, GpuSlot::share(ctx_, sets_.gpu->uuid()));
    }
    return out;
  }

  const Context& ctx_;
  const BaselineSets& sets_;
  torch::TorchWorker& worker_;
  const Task& task_;
  const ShapeCase& shape_;
};

}  // namespace

BaselineSets sets_of(GpuTruths* official, const Task& task, const ShapeCase& shape,
                     const std::vector<std::string>& families) {
  BaselineSets out;
  if (!official) {
    out.missing = "there is no GPU to compare on";
    return out;
  }
  out.missing = official->missing();
  if (!out.missing.empty()) return out;
  out.gpu = &official->gpu();
  out.families = gpu_families(families, 0, 0);
  out.draw = [official, &task, &shape](const Context& ctx, const std::string& family) {
    return official->draw(ctx, task, shape, family, "baselines");
  };
  return out;
}

Result<std::vector<BaselineAccuracy>> judge_baselines(
    const Context& ctx, const BaselineSets& sets, torch::TorchWorker& worker, const Task& task,
    const ShapeCase& shape, const std::vector<torch::BaselineWanted>& wanted) {
  std::vector<BaselineAccuracy> out;
  for (const torch::BaselineWanted& w : wanted) {
    out.push_back(class_of(w.kind, task));
    out.back().why = sets.missing;
  }
  if (!sets.missing.empty()) return out;
  AccuracyJudge judge(ctx, sets, worker, task, shape);
  std::vector<char> going(wanted.size(), true);
  // In reverse, so that the module ends with the first family's values (its own inputs) for timing.
  for (auto family = sets.families.rbegin(); family != sets.families.rend(); ++family) {
    if (std::none_of(going.begin(), going.end(), [](char g) { return g; })) break;
    auto set = sets.draw(ctx, *family);
    CG_CHECK(ctx.check("judging baselines"));
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!going[i]) continue;
      if (set) {
        CG_TRY(going[i], judge.one(*set, wanted[i].kind, out[i]));
        continue;
      }
      going[i] = false;
      out[i].passes.reset();
      out[i].why = sanitize(set.error().text(), kMostWhy);
    }
  }
  return out;
}

}  // namespace cutegen::eval
