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

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "core/task.h"
#include "core/verdict.h"

namespace cutegen {

struct BaselineTime {
  std::string kind;  // "eager", "eager-tf32", "compile", "compile-max", or MODULE:CALLABLE
  double time_ns = 0, low_ns = 0, high_ns = 0;
  int samples = 0;
  Origin origin = Origin::measured;
  double far = 0;      // from eager's result, over the largest value
  double build_s = 0;  // to open it: of torch.compile, to build it
  std::string why;     // there is no time
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

// Whether a way to run the module keeps to the math mode: float32 as PyTorch is set by default
// (products of whole floats; convolutions may use TF32 there) is fp32.
[[nodiscard]] bool in_math_mode(const std::string& kind, MathMode mode);
// The fastest one in the math mode; null where none has a time.
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

[[nodiscard]] Json to_json(const BaselineTime& time);
[[nodiscard]] Result<BaselineTime> baseline_time_from_json(const Json& json);
[[nodiscard]] Json to_json(const ControlTime& control);
[[nodiscard]] Result<ControlTime> control_time_from_json(const Json& json);
[[nodiscard]] Json to_json(const BaselineRecord& record);
[[nodiscard]] Result<BaselineRecord> baseline_record_from_json(const Json& json);

}  // namespace cutegen
