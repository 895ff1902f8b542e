// SPDX-License-Identifier: Apache-2.0
#include "eval/baselines/baselines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "core/weighted.h"
#include "eval/diagnosis/statistics.h"

namespace cutegen::eval {
namespace {

constexpr TimeMode kMode = TimeMode::cold;
constexpr int kFirst = 4, kLeast = 8, kMost = 40;  // numbers of timed runs
constexpr double kWanted = 0.15e9;  // choose the number of runs so that they take about these ns
constexpr double kWide = 0.05;      // more runs follow if half the relative interval is larger
constexpr auto kTimeLimit = std::chrono::seconds(60);
constexpr auto kCloseLimit = std::chrono::seconds(20);

class Timer {
 public:
  Timer(const Context& ctx, torch::TorchWorker& worker, const Task& task, const ShapeCase& shape,
        const BaselineLimits& limits, const BaselineProgress& progress)
      : ctx_(ctx),
        worker_(worker),
        task_(task),
        shape_(shape),
        limits_(limits),
        progress_(progress) {}

  Result<BaselinesTimed> run(const std::vector<torch::BaselineWanted>& wanted,
                             const BaselineSetsOf& sets) {
    for (const torch::BaselineWanted& w : wanted) {
      CG_TRY(BaselineTime time, one(w));
      out_.times.push_back(std::move(time));
    }
    if (sets) CG_CHECK(judge(wanted, sets(shape_)));
    if (auto closed = worker_.close_baselines(ctx_.with_timeout(kCloseLimit)); !closed) {
      CG_CHECK(ctx_.check("timing baselines"));
      out_.broken = true;
    }
    return std::move(out_);
  }

 private:
  // Judges the baselines that were timed and are still open.
  Result<void> judge(const std::vector<torch::BaselineWanted>& wanted, const BaselineSets& sets) {
    std::vector<torch::BaselineWanted> some;
    std::vector<BaselineTime*> to;
    for (size_t i = 0; i < wanted.size(); ++i)
      if (out_.times[i].known()) some.push_back(wanted[i]), to.push_back(&out_.times[i]);
    if (some.empty()) return {};
    tell("judging their results");
    CG_TRY(auto found, judge_baselines(ctx_, sets, worker_, task_, shape_, some));
    for (size_t i = 0; i < to.size(); ++i) to[i]->accuracy = std::move(found[i]);
    return {};
  }

  Result<BaselineTime> one(const torch::BaselineWanted& wanted) {
    BaselineTime time;
    time.kind = wanted.name();
    time.accuracy = class_of(wanted.kind, task_);
    if (wanted.kind == BaselineKind::eager_fp32) time.why = same_as_eager(task_);
    if (!time.why.empty()) return time;
    const auto start = Clock::now();
    auto done = open_and_time(wanted, time);
    if (!done) {
      CG_CHECK(ctx_.check("timing baselines"));
      time.why = reason(done.error());
    }
    if (time.build_s == 0)
      time.build_s = std::chrono::duration<double>(Clock::now() - start).count();
    if (time.why.find("out of memory") != std::string::npos) out_.out_of_memory = true;
    return time;
  }

  // A worker that hangs cannot say what it was doing, so the message takes it from `doing_`.
  std::string reason(const Error& error) {
    if (error.kind == ErrorKind::timeout) {
      open_ = false;
      out_.cut = out_.cut || early_;
      return fmt::format("{} after {}, so cutegen ended it", doing_,
                         human_ns(double(limit_.count())));
    }
    if (error.message.find("ends the worker process") != std::string::npos) open_ = false;
    return sanitize(error.message, 400);
  }

  // At most half of the remaining time, so that time for later baselines remains.
  Nanoseconds build_limit() const { return ctx_.remaining(2 * limits_.build) / 2; }

  Context limited(const char* doing, Nanoseconds limit) {
    doing_ = doing, limit_ = limit;
    early_ = false;
    return ctx_.with_timeout(limit);
  }

  Result<void> open_and_time(const torch::BaselineWanted& wanted, BaselineTime& time) {
    if (!open_) {
      tell("opening the module");
      CG_CHECK(worker_.open_baselines(limited("the module was still being opened", limits_.open),
                                      task_, shape_, {}));
      open_ = true;
    }
    tell("opening " + time.kind);
    const auto start = Clock::now();
    const Context building = limited("it was still being built", build_limit());
    early_ = limit_ < limits_.build;
    CG_TRY(torch::BaselineOpened added, worker_.add_baseline(building, wanted));
    time.build_s = std::chrono::duration<double>(Clock::now() - start).count();
    time.why = added.why, time.far = added.far;
    if (!time.why.empty()) return {};
    tell("timing " + time.kind);
    return measure(wanted.kind, time);
  }

  Result<void> measure(BaselineKind kind, BaselineTime& time) {
    CG_TRY(auto samples, some(kind, kFirst));
    const double each = median_of(samples).value;
    const int more = std::clamp(int(std::ceil(kWanted / each)), kLeast, kMost);
    CG_CHECK(add(samples, kind, more));
    Median m = median_of(samples);
    if (m.high - m.low > 2 * kWide * m.value) {
      CG_CHECK(add(samples, kind, kMost));
      m = median_of(samples);
    }
    time.time_ns = m.value, time.low_ns = m.low, time.high_ns = m.high;
    time.samples = int(samples.size());
    return {};
  }

  Result<std::vector<double>> some(BaselineKind kind, int count) {
    return worker_.time_baseline(limited("its runs had not finished", kTimeLimit), kind, kMode,
                                 count);
  }
  Result<void> add(std::vector<double>& samples, BaselineKind kind, int count) {
    CG_TRY(auto more, some(kind, count));
    samples.insert(samples.end(), more.begin(), more.end());
    return {};
  }

  void tell(const std::string& what) {
    if (progress_) progress_(what);
  }

  const Context& ctx_;
  torch::TorchWorker& worker_;
  const Task& task_;
  const ShapeCase& shape_;
  const BaselineLimits& limits_;
  const BaselineProgress& progress_;
  BaselinesTimed out_;
  bool open_ = false;
  std::string doing_;
  Nanoseconds limit_{0};
  bool early_ = false;  // the limit is shorter than limits_.build
};

// Combines one baseline's times at all shapes.
BaselineTime combined(const std::vector<const ShapeCase*>& shapes,
                      const std::vector<BaselinesTimed>& all, size_t way) {
  BaselineTime out = all.front().times[way];
  std::vector<Weighted> time, low, high;
  out.samples = 0, out.build_s = 0;
  for (size_t s = 0; s < all.size(); ++s) {
    const BaselineTime& t = all[s].times[way];
    const double weight = shapes[s]->weight;
    time.push_back({.weight = weight, .value = t.time_ns});
    low.push_back({.weight = weight, .value = t.low_ns});
    high.push_back({.weight = weight, .value = t.high_ns});
    out.samples += t.samples, out.build_s += t.build_s, out.far = std::max(out.far, t.far);
    if (!t.known() && out.why.empty())
      out.why = fmt::format("shape '{}': {}", shapes[s]->name, t.why);
    keep_worse(out.accuracy, t.accuracy);
  }
  out.time_ns = geometric_mean(time);
  out.low_ns = geometric_mean(low), out.high_ns = geometric_mean(high);
  return out;
}

BaselinesTimed combined(const std::vector<const ShapeCase*>& shapes,
                        std::vector<BaselinesTimed> all) {
  if (all.size() == 1) return std::move(all.front());
  BaselinesTimed out;
  for (size_t way = 0; way < all.front().times.size(); ++way)
    out.times.push_back(combined(shapes, all, way));
  for (const BaselinesTimed& t : all) {
    out.out_of_memory = out.out_of_memory || t.out_of_memory;
    out.broken = out.broken || t.broken;
    out.cut = out.cut || t.cut;
  }
  return out;
}

}  // namespace

std::string same_as_eager(const Task& task) {
  return has_cudnn_tf32(task) ? "" : "same as eager: no float32 convolution that could use TF32";
}

int64_t open_bytes(const ShapeCase& shape) {
  return shape.least_bytes.value / 2 * 5;
}

Result<BaselinesTimed> time_baselines(const Context& ctx, torch::TorchWorker& worker,
                                      const Task& task,
                                      const std::vector<torch::BaselineWanted>& wanted,
                                      const BaselineLimits& limits,
                                      const BaselineProgress& progress,
                                      const BaselineSetsOf& sets) {
  const auto shapes = timed_shapes(task);
  std::vector<BaselinesTimed> all;
  for (const ShapeCase* shape : shapes) {
    BaselineProgress at = progress;
    if (progress && shapes.size() > 1)
      at = [&](const std::string& what) { progress("shape " + shape->name + ": " + what); };
    CG_TRY(BaselinesTimed one, Timer(ctx, worker, task, *shape, limits, at).run(wanted, sets));
    all.push_back(std::move(one));
  }
  return combined(shapes, std::move(all));
}

}  // namespace cutegen::eval
