// SPDX-License-Identifier: Apache-2.0
#include "core/baseline.h"

#include <algorithm>
#include <cmath>

#include "core/codec.h"

namespace cutegen {
namespace {

constexpr const char* kSchema = "cutegen.baselines.v1";
constexpr double kMostDrift = 0.05;  // beyond this drift of a control, no time is carried over
constexpr size_t kMostTimes = 64;
constexpr codec::Names<Origin, 2> kOrigins{
    {{Origin::measured, "measured"}, {Origin::cached, "cached"}}};

Json truth_json(const TruthMade& t) {
  Json out{{"seconds", t.seconds}, {"bytes", t.bytes}, {"notes", t.notes}};
  if (!t.why.empty()) out["why"] = t.why;
  return out;
}

Result<TruthMade> truth_from(const Json& json) {
  ObjectReader r(json, "baselines#/truth");
  TruthMade t;
  CG_TRY(t.seconds, r.number("seconds"));
  CG_TRY(t.bytes, r.integer("bytes"));
  CG_TRY(t.notes, r.strings("notes"));
  CG_TRY(t.why, r.string_or("why", ""));
  CG_CHECK(r.finish());
  return t;
}

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

}  // namespace

bool has_cudnn_tf32(const Task& task) {
  return std::any_of(task.graph.nodes.begin(), task.graph.nodes.end(), [](const Node& node) {
    if (node.outputs.empty() || node.outputs.front().dtype != DType::f32) return false;
    return std::any_of(std::begin(kCudnn), std::end(kCudnn),
                       [&](const char* name) { return node.op.find(name) != std::string::npos; });
  });
}

BaselineAccuracy class_of(const std::string& kind, const Task& task) {
  BaselineAccuracy out;
  if (kind.find(':') != std::string::npos || kind == "callable") return out;
  const bool f32 = has_f32(task);
  if (kind == "eager-tf32")
    out.precision = "tf32";
  else if (kind != "eager-fp32" && has_cudnn_tf32(task))
    out.precision = "tf32 convolutions";
  else
    out.precision = f32 ? "fp32" : to_string(task.math_mode);
  if (task.math_mode != MathMode::fp32 || !f32) return out;
  out.coarser =
      out.precision == "tf32" || (out.precision == "tf32 convolutions" && !task.tf32_convolutions);
  return out;
}

bool in_math_mode(const std::string& kind, const BaselineAccuracy& accuracy, MathMode mode) {
  if (accuracy.passes.value_or(false)) return true;
  if (accuracy.precision.empty()) return mode != MathMode::fp32 || kind != "eager-tf32";
  return !accuracy.coarser;
}

bool in_math_mode(const BaselineTime& time, MathMode mode) {
  return in_math_mode(time.kind, time.accuracy, mode);
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
  out.ratio = std::exp(logs / static_cast<double>(record.controls.size()));
  for (BaselineTime t : record.times) {
    t.origin = Origin::cached;
    for (double* ns : {&t.time_ns, &t.low_ns, &t.high_ns}) *ns *= out.ratio;
    out.times.push_back(std::move(t));
  }
  return out;
}

Json to_json(const BaselineAccuracy& a) {
  Json out = Json::object();
  if (!a.precision.empty()) out["precision"] = a.precision;
  if (a.coarser) out["coarser"] = true;
  if (a.share) out["share"] = *a.share;
  if (a.passes) out["passes"] = *a.passes;
  if (!a.why.empty()) out["why"] = a.why;
  return out;
}

Result<BaselineAccuracy> baseline_accuracy_from_json(const Json& json) {
  ObjectReader r(json, "accuracy#");
  BaselineAccuracy a;
  CG_TRY(a.precision, r.string_or("precision", ""));
  CG_TRY(a.coarser, r.boolean_or("coarser", false));
  if (r.has("share")) {
    CG_TRY(a.share, r.number("share"));
  }
  if (r.has("passes")) {
    CG_TRY(a.passes, r.boolean("passes"));
  }
  CG_TRY(a.why, r.string_or("why", ""));
  CG_CHECK(r.finish());
  return a;
}

Json to_json(const BaselineTime& t) {
  Json out{{"kind", t.kind}};
  if (t.why.empty()) {
    out["time_ns"] = t.time_ns, out["low_ns"] = t.low_ns, out["high_ns"] = t.high_ns;
    out["samples"] = t.samples, out["origin"] = codec::name_of(kOrigins, t.origin);
    out["far"] = t.far;
  } else {
    out["why"] = t.why;
  }
  out["build_s"] = t.build_s;
  if (Json accuracy = to_json(t.accuracy); !accuracy.empty()) out["accuracy"] = accuracy;
  return out;
}

Result<BaselineTime> baseline_time_from_json(const Json& json) {
  ObjectReader r(json, "baseline#");
  BaselineTime t;
  CG_TRY(t.kind, r.string("kind"));
  CG_TRY(t.why, r.string_or("why", ""));
  CG_TRY(t.build_s, r.number("build_s"));
  if (t.why.empty()) {
    CG_TRY(t.time_ns, r.number("time_ns"));
    CG_TRY(t.low_ns, r.number("low_ns"));
    CG_TRY(t.high_ns, r.number("high_ns"));
    CG_TRY(int64_t samples, r.integer("samples"));
    t.samples = static_cast<int>(std::clamp<int64_t>(samples, 0, 1'000'000));
    CG_TRY(t.origin, codec::enum_field(r, "origin", kOrigins));
    CG_TRY(t.far, r.number("far"));
    if (!(t.time_ns > 0)) return user_error("a baseline that takes no time", r.place("time_ns"));
  }
  if (r.has("accuracy")) {
    CG_TRY(Json accuracy, r.object("accuracy"));
    CG_TRY(t.accuracy, baseline_accuracy_from_json(accuracy));
  }
  CG_CHECK(r.finish());
  return t;
}

Json to_json(const ControlTime& c) {
  return {{"name", c.name}, {"program_id", c.program_id}, {"time_ns", c.time_ns}};
}

Result<ControlTime> control_time_from_json(const Json& json) {
  ObjectReader r(json, "control#");
  ControlTime c;
  CG_TRY(c.name, r.string("name"));
  CG_TRY(c.program_id, r.string("program_id"));
  CG_TRY(c.time_ns, r.number("time_ns"));
  CG_CHECK(r.finish());
  return c;
}

Json to_json(const BaselineRecord& b) {
  Json out{
      {"schema", kSchema},
      {"task_id", b.task_id},
      {"name", b.name},
      {"class", b.workload},
      {"math_mode", to_string(b.math_mode)},
      {"gpu", b.gpu},
      {"uuid", b.uuid},
      {"driver", b.driver},
      {"torch", b.torch},
      {"measured", b.measured},
      {"floor_ns", b.floor_ns},
      {"bound_by", b.bound_by},
      {"admitted", b.admitted},
      {"remark", b.remark},
      {"truth", truth_json(b.truth)},
      {"controls", codec::array_of(b.controls, static_cast<Json (*)(const ControlTime&)>(to_json))},
      {"baselines", codec::array_of(b.times, static_cast<Json (*)(const BaselineTime&)>(to_json))}};
  if (b.cut) out["cut"] = true;
  return out;
}

Result<BaselineRecord> baseline_record_from_json(const Json& json) {
  ObjectReader r(json, "baselines#");
  BaselineRecord b;
  CG_CHECK(codec::check_schema(r, kSchema));
  CG_TRY(b.task_id, r.string("task_id"));
  CG_TRY(b.name, r.string("name"));
  CG_TRY(b.workload, r.string("class"));
  CG_TRY(std::string mode, r.string("math_mode"));
  CG_TRY(b.math_mode, math_mode_from(mode));
  CG_TRY(b.gpu, r.string("gpu"));
  CG_TRY(b.uuid, r.string("uuid"));
  CG_TRY(b.driver, r.string("driver"));
  CG_TRY(b.torch, r.string("torch"));
  CG_TRY(b.measured, r.string("measured"));
  CG_TRY(b.floor_ns, r.number("floor_ns"));
  CG_TRY(b.bound_by, r.string("bound_by"));
  CG_TRY(b.admitted, r.boolean("admitted"));
  CG_TRY(b.remark, r.string("remark"));
  CG_TRY(Json truth, r.object("truth"));
  CG_TRY(b.truth, truth_from(truth));
  CG_TRY(b.controls,
         codec::list<ControlTime>(r, "controls", kMostTimes, [](const Json& j, const std::string&) {
           return control_time_from_json(j);
         }));
  CG_TRY(b.times, codec::list<BaselineTime>(r, "baselines", kMostTimes,
                                            [](const Json& j, const std::string&) {
                                              return baseline_time_from_json(j);
                                            }));
  CG_TRY(b.cut, r.boolean_or("cut", false));
  CG_CHECK(r.finish());
  return b;
}

}  // namespace cutegen
