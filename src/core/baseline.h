// SPDX-License-Identifier: Apache-2.0
// Baselines of a task: how long the ways take that its user has today, on one GPU.
//
// Contract: times are for one call at the official shape, cold L2, the median of a few runs with
// its 95% interval; a baseline without a time has a reason. A record also says what the measuring
// run found of the task, and how long the control kernels took then: by these its times are carried
// over to another day (carried_over). JSON form: schema cutegen.baselines.v1.
//
// Example: if (const BaselineTime* b = best_baseline(record.times, task.math_mode))
// use(b->time_ns);
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "core/task.h"
#include "core/verdict.h"

namespace cutegen {

// How exact a baseline is, by the rule that decides about candidates.
struct BaselineAccuracy {
  std::string precision;  // "fp32", "tf32 convolutions", "tf32", "fp16", "bf16"; "": not known
  bool coarser = false;   // it rounds more coarsely than the task's math mode permits
  std::optional<double> share;  // its largest error over the accepted one, in the sets judged
  std::optional<bool> passes;   // the candidates' own gate
  std::string why;              // it does not pass, or it could not be judged
};

struct BaselineTime {
  std::string kind;  // "eager", "eager-fp32", "eager-tf32", "compile", "compile-max", or
                     // MODULE:CALLABLE
  double time_ns = 0, low_ns = 0, high_ns = 0;
  int samples = 0;
  Origin origin = Origin::measured;
  double far = 0;      // from eager's result, over the largest value
  double build_s = 0;  // to open it: of torch.compile, to build it
  std::string why;     // there is no time
  BaselineAccuracy accuracy = {};
  [[nodiscard]] bool known() const { return why.empty() && time_ns > 0; }
};

// A program of our own whose time says how fast the GPU is now.
struct ControlTime {
  std::string name, program_id;
  double time_ns = 0;
};

// The float64 truth of the official shape, as the measuring run made it.
struct TruthMade {
  double seconds = 0;
  int64_t bytes = 0;  // of GPU memory that the set takes
  std::vector<std::string> notes;
  std::string why;  // it could not be made
  // Of the baselines that were judged on it; a record keeps them with their times.
  std::map<std::string, BaselineAccuracy> accuracy = {};
};

struct BaselineRecord {
  std::string task_id, name, workload;
  MathMode math_mode = MathMode::fp32;
  std::string gpu, uuid, driver, torch;
  std::string measured;  // day and time
  double floor_ns = 0;
  std::string bound_by;
  bool admitted = false;
  std::string remark;  // of the admission
  TruthMade truth;
  std::vector<ControlTime> controls;
  std::vector<BaselineTime> times;
  bool cut = false;  // a build was given less than its time, since that of the whole was nearly up
};

// What PyTorch rounds the task's operands to in this way, and whether the math mode permits that. A
// callable of the user's is not known.
[[nodiscard]] BaselineAccuracy class_of(const std::string& kind, const Task& task);
// Whether cuDNN may round operands of the task to TF32: it has a float32 convolution or a recurrent
// layer. If not, "eager-fp32" is the same as "eager".
[[nodiscard]] bool has_cudnn_tf32(const Task& task);

// Whether candidates are compared with this baseline: its class keeps to the math mode, or its
// results pass the candidates' own gate. A record without a class (of an older version) counts,
// except for "eager-tf32" in fp32.
[[nodiscard]] bool in_math_mode(const std::string& kind, const BaselineAccuracy& accuracy,
                                MathMode mode);
[[nodiscard]] bool in_math_mode(const BaselineTime& time, MathMode mode);
// What holds at another shape too: failing counts more than not knowing, and that more than
// passing.
void keep_worse(BaselineAccuracy& to, const BaselineAccuracy& from);
// For a table: "fp32, 0.31 of the accepted error", "tf32 convolutions: fails this task's gate".
[[nodiscard]] std::string accuracy_text(const BaselineAccuracy& accuracy);
// The fastest one in the math mode; null if none has a time.
[[nodiscard]] const BaselineTime* best_baseline(const std::vector<BaselineTime>& times,
                                                MathMode mode);

// Cached times as they would be now, by what the control kernels take now; `why` and no times where
// these differ too much, or are others.
struct CarriedOver {
  std::vector<BaselineTime> times;
  double ratio = 1;  // of the controls' times, now to then
  std::string why;
};
[[nodiscard]] CarriedOver carried_over(const BaselineRecord& record,
                                       const std::vector<ControlTime>& now);

[[nodiscard]] Json to_json(const BaselineAccuracy& accuracy);
[[nodiscard]] Result<BaselineAccuracy> baseline_accuracy_from_json(const Json& json);
[[nodiscard]] Json to_json(const BaselineTime& time);
[[nodiscard]] Result<BaselineTime> baseline_time_from_json(const Json& json);
[[nodiscard]] Json to_json(const ControlTime& control);
[[nodiscard]] Result<ControlTime> control_time_from_json(const Json& json);
[[nodiscard]] Json to_json(const BaselineRecord& record);
[[nodiscard]] Result<BaselineRecord> baseline_record_from_json(const Json& json);

}  // namespace cutegen
