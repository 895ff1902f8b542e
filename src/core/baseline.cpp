// SPDX-License-Identifier: Apache-2.0
#include "core/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace cutegen {
namespace {

constexpr double kMostDrift = 0.05;  // drops the times if a control kernel's time changed by more
constexpr size_t kMostTimes = 64;
constexpr Name<Origin> kOrigins[] = {{Origin::measured, "measured"}, {Origin::cached, "cached"}};

// Operators for which cuDNN rounds float32 operands to TF32 by default.
constexpr const char* kCudnn[] = {"conv", "lstm", "gru", "rnn_tanh", "rnn_relu"};

bool has_f32(const Task& task) {
  return std::any_of(task.tensors.begin(), task.tensors.end(),
                     [](const TensorInfo& t) { return t.dtype == DType::f32; });
}

const ControlTime* find(const std::vector<ControlTime>& controls, const ControlTime& like) {
  for (const ControlTime& c : controls)
    if (c.name == like.name && c.program_id == like.program_id && c.time_ns > 0) return &c;
  return nullptr;
}

// Whether a convolution has several groups of one input channel each. cuDNN computes these in
// float32 (docs/tasks.md: "Math modes").
bool is_depthwise(const Graph& graph, const Node& node) {
  constexpr size_t kGroups = 8;  // aten.convolution's last argument
  if (node.op.find("aten.convolution") == std::string::npos || node.args.size() <= kGroups ||
      !node.args[kGroups].is_number_integer() || !node.args[0].is_object())
    return false;
  const auto groups = node.args[kGroups].get<int64_t>();
  const Value* input = graph.find(node.args[0].value("ref", ""));
  return groups > 1 && input && input->shape.size() > 1 && input->shape[1] == groups;
}

}  // namespace

Names<BaselineKind> enum_names(BaselineKind) {
  static constexpr Name<BaselineKind> names[] = {{BaselineKind::eager, "eager"},
                                                 {BaselineKind::eager_fp32, "eager-fp32"},
                                                 {BaselineKind::eager_tf32, "eager-tf32"},
                                                 {BaselineKind::compile, "compile"},
                                                 {BaselineKind::compile_max, "compile-max"},
                                                 {BaselineKind::callable, "callable"}};
  return names;
}

BaselineKind baseline_kind(const std::string& name) {
  return from_name<BaselineKind>(name, "baseline").value_or(BaselineKind::callable);
}

bool is_eager(BaselineKind kind) {
  return kind == BaselineKind::eager || kind == BaselineKind::eager_fp32 ||
         kind == BaselineKind::eager_tf32;
}

bool has_cudnn_tf32(const Task& task) {
  return std::any_of(task.graph.nodes.begin(), task.graph.nodes.end(), [&](const Node& node) {
    if (is_depthwise(task.graph, node)) return false;
    if (node.outputs.empty() || node.outputs.front().dtype != DType::f32) return false;
    return std::any_of(std::begin(kCudnn), std::end(kCudnn),
                       [&](const char* name) { return node.op.find(name) != std::string::npos; });
  });
}

BaselineAccuracy class_of(BaselineKind kind, const Task& task) {
  BaselineAccuracy out;
  if (kind == BaselineKind::callable) return out;
  const bool f32 = has_f32(task), tf32 = kind == BaselineKind::eager_tf32,
             convolutions = !tf32 && kind != BaselineKind::eager_fp32 && has_cudnn_tf32(task);
  if (tf32)
    out.precision = to_string(MathMode::tf32);
  else if (convolutions)
    out.precision = kTf32Convolutions;
  else
    out.precision = to_string(f32 ? MathMode::fp32 : task.math_mode);
  if (task.math_mode == MathMode::fp32 && f32)
    out.coarser = tf32 || (convolutions && !task.tf32_convolutions);
  return out;
}

bool in_math_mode(BaselineKind kind, const BaselineAccuracy& accuracy, MathMode mode) {
  if (accuracy.passes.value_or(false)) return true;
  if (accuracy.precision.empty()) return mode != MathMode::fp32 || kind != BaselineKind::eager_tf32;
  return !accuracy.coarser;
}

bool in_math_mode(const BaselineTime& time, MathMode mode) {
  return in_math_mode(baseline_kind(time.kind), time.accuracy, mode);
}

void keep_worse(BaselineAccuracy& to, const BaselineAccuracy& from) {
  auto rank = [](const BaselineAccuracy& a) { return !a.passes ? 1 : *a.passes ? 2 : 0; };
  if (from.share) to.share = std::max(to.share.value_or(0), *from.share);
  if (rank(from) < rank(to)) to.passes = from.passes, to.why = from.why;
}

std::string accuracy_text(const BaselineAccuracy& a) {
  std::string out = a.precision.empty() ? "own precision" : a.precision;
  if (a.passes && !*a.passes) return out + ": fails this task's tolerance";
  if (a.passes && a.share) return fmt::format("{}, {:.2f} of the accepted error", out, *a.share);
  if (a.passes) return out + ", within this task's tolerance";
  return out + (a.coarser ? ": coarser than the math mode" : "");
}

const BaselineTime* best_baseline(const std::vector<BaselineTime>& times, MathMode mode) {
  const BaselineTime* best = nullptr;
  for (const BaselineTime& t : times)
    if (t.known() && in_math_mode(t, mode) && (!best || t.time_ns < best->time_ns)) best = &t;
  return best;
}

void drop_accuracy_of_other_policy(BaselineRecord& record) {
  const int now = Verdict().policy_version;
  if (record.policy_version == now) return;
  const std::string judged = record.policy_version > 0
                                 ? fmt::format("rules of version {}", record.policy_version)
                                 : "rules of an unknown version";
  for (BaselineTime& time : record.times) {
    BaselineAccuracy& a = time.accuracy;
    if (!a.passes && !a.share) continue;
    a.passes.reset(), a.share.reset();
    a.why = fmt::format("{} judged it, but this cutegen has version {}: run cutegen baselines",
                        judged, now);
  }
}

CarriedOver carried_over(const BaselineRecord& record, const std::vector<ControlTime>& now) {
  CarriedOver out;
  double logs = 0;
  for (const ControlTime& then : record.controls) {
    const ControlTime* at = find(now, then);
    if (!at || then.time_ns <= 0) {
      out.why = "the control kernel '" + then.name + "', which was timed then, is not timed now";
      return out;
    }
    const double ratio = at->time_ns / then.time_ns;
    if (!(std::abs(ratio - 1) <= kMostDrift)) {
      out.why = fmt::format("the control kernel '{}' takes {:.1f}% {} than then", then.name,
                            100 * std::abs(ratio - 1), ratio > 1 ? "longer" : "less time");
      return out;
    }
    logs += std::log(ratio);
  }
  if (record.controls.empty()) {
    out.why = "no control kernel was timed with these baselines";
    return out;
  }
  out.ratio = std::exp(logs / double(record.controls.size()));
  for (BaselineTime t : record.times) {
    t.origin = Origin::cached;
    for (double* ns : {&t.time_ns, &t.low_ns, &t.high_ns}) *ns *= out.ratio;
    out.times.push_back(std::move(t));
  }
  return out;
}

void fields(Fields& v, BaselineAccuracy& a) {
  v.document("accuracy#");
  v("precision", a.precision, field::if_set);
  v("coarser", a.coarser, field::if_set);
  v("share", a.share);
  v("passes", a.passes);
  v("why", a.why, field::if_set);
}

void fields(Fields& v, BaselineTime& t) {
  v.document("baseline#");
  v("kind", t.kind);
  if (v.reading()) v("why", t.why, field::may_lack);
  if (t.why.empty()) {
    v("time_ns", t.time_ns);
    v("low_ns", t.low_ns);
    v("high_ns", t.high_ns);
    v("samples", t.samples, field::clamped(0, 1'000'000));
    v.named("origin", t.origin, kOrigins);
    v("far", t.far);
    v.check(t.time_ns > 0, "time_ns", "a baseline's time must be positive");
  } else if (!v.reading()) {
    v("why", t.why);
  }
  v("build_s", t.build_s);
  v("accuracy", t.accuracy, field::if_set);
}

void fields(Fields& v, ControlTime& c) {
  v.document("control#");
  v("name", c.name);
  v("program_id", c.program_id);
  v("time_ns", c.time_ns);
}

void fields(Fields& v, TruthMade& t) {
  v("seconds", t.seconds);
  v("bytes", t.bytes);
  v("notes", t.notes);
  v("why", t.why, field::if_set);
}

void fields(Fields& v, BaselineRecord& b) {
  v.document("baselines#");
  v.schema("cutegen.baselines.v1");
  v("task_id", b.task_id);
  v("name", b.name);
  v("class", b.workload);
  v.by_name("math_mode", b.math_mode, math_mode_from);
  v("gpu", b.gpu);
  v("uuid", b.uuid);
  v("driver", b.driver);
  v("torch", b.torch);
  v("measured", b.measured);
  v("floor_ns", b.floor_ns);
  v("bound_by", b.bound_by);
  v("admitted", b.admitted);
  v("remark", b.remark);
  v("truth", b.truth);
  v("controls", b.controls, field::list(kMostTimes));
  v("baselines", b.times, field::list(kMostTimes));
  v("cut", b.cut, field::if_set);
  v("policy_version", b.policy_version, field::between(0, INT32_MAX) + field::if_set);
}

}  // namespace cutegen
