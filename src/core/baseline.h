// SPDX-License-Identifier: Apache-2.0
// Baselines of a task: the time of PyTorch, or of other code that the user runs today, on one GPU.
//
// Contract: each time is for one call at the official shape with a cold L2: the median of a few
// runs with its 95% interval. A baseline without a time has a reason. A record also keeps the
// task's data from the measuring run and the times of the control kernels. carried_over() uses the
// control kernels to rescale the times for a later run. JSON form: schema cutegen.baselines.v1.
//
// Example:
//   if (const BaselineTime* b = best_baseline(record.times, task.math_mode)) use(b->time_ns);
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "core/task.h"
#include "core/verdict.h"

namespace cutegen {

// How a baseline runs the task: PyTorch's defaults, without TF32, with TF32 everywhere,
// torch.compile, the same with max-autotune, or the user's own code, MODULE:CALLABLE.
enum class BaselineKind { eager, eager_fp32, eager_tf32, compile, compile_max, callable };
Names<BaselineKind> enum_names(BaselineKind);
// The kind of the baseline with this name: "eager", ..., or MODULE:CALLABLE.
BaselineKind baseline_kind(const std::string& name);
// Whether the baseline runs PyTorch's eager mode (no torch.compile, no code of the user's own).
bool is_eager(BaselineKind kind);

// The precision of a baseline that rounds to TF32 in convolutions only.
inline constexpr const char* kTf32Convolutions = "tf32 convolutions";

// A baseline's accuracy, judged by the rule for candidates.
struct BaselineAccuracy {
  std::string precision;  // the name of a math mode, or kTf32Convolutions; empty: unknown
  bool coarser = false;   // the baseline rounds more coarsely than the task's math mode permits
  // Largest error / tolerance over the input sets on which it was judged.
  std::optional<double> share;
  std::optional<bool> passes;  // whether it is within the candidates' tolerance
  std::string why;             // why it does not pass, or why the evaluator could not judge it
};

struct BaselineTime {
  std::string kind;  // name of the baseline: "eager", ..., or MODULE:CALLABLE
  double time_ns = 0, low_ns = 0, high_ns = 0;
  int samples = 0;
  Origin origin = Origin::measured;
  double far = 0;      // largest difference from eager's result / eager's largest value
  double build_s = 0;  // seconds to open it; for torch.compile: to build it
  std::string why;     // why there is no time
  BaselineAccuracy accuracy = {};
  bool known() const { return why.empty() && time_ns > 0; }
};

// One of cutegen's own programs; its time tells how fast the GPU runs now.
struct ControlTime {
  std::string name, program_id;
  double time_ns = 0;
};

// How the measuring run computed the float64 truth at the official shape.
struct TruthMade {
  double seconds = 0;
  int64_t bytes = 0;  // GPU memory that the set takes
  std::vector<std::string> notes;
  std::string why;  // why the truth could not be computed
  // The accuracy of the baselines, judged with this truth. A record stores it with their times.
  std::map<BaselineKind, BaselineAccuracy> accuracy = {};
};

struct BaselineRecord {
  std::string task_id, name, workload;
  MathMode math_mode = MathMode::fp32;
  std::string gpu, uuid, driver, torch;
  std::string measured;  // date and time
  double floor_ns = 0;
  std::string bound_by;
  bool admitted = false;
  std::string remark;  // why the task was not admitted, or what the evaluator cannot judge on it
  TruthMade truth;
  std::vector<ControlTime> controls;
  std::vector<BaselineTime> times;
  bool cut = false;  // a build got less time than usual, because the total time was nearly used up
};

// The precision to which PyTorch rounds the task's operands in a baseline of this kind, and whether
// the math mode permits it. Unknown for the user's own callable.
BaselineAccuracy class_of(BaselineKind kind, const Task& task);
// Whether cuDNN may round the task's operands to TF32, which it does for float32 convolutions and
// recurrent layers. If not, "eager-fp32" equals "eager".
bool has_cudnn_tf32(const Task& task);

// Whether candidates compete with this baseline: its precision respects the math mode, or its
// results are within the candidates' tolerance. A record from an older version has no precision; it
// counts, except "eager-tf32" in fp32.
bool in_math_mode(BaselineKind kind, const BaselineAccuracy& accuracy, MathMode mode);
bool in_math_mode(const BaselineTime& time, MathMode mode);
// Merges the result of another shape and keeps the worse one: failed, then unknown, then passed.
void keep_worse(BaselineAccuracy& to, const BaselineAccuracy& from);
// For a table: "fp32, 0.31 of the accepted error", "tf32 convolutions: fails this task's
// tolerance".
std::string accuracy_text(const BaselineAccuracy& accuracy);
// The fastest baseline that in_math_mode() accepts; null if there is none with a time.
const BaselineTime* best_baseline(const std::vector<BaselineTime>& times, MathMode mode);

// Cached times, scaled by the present times of the control kernels. If the controls differ too much
// or are other programs, `times` is empty, and `why` says so.
struct CarriedOver {
  std::vector<BaselineTime> times;
  double ratio = 1;  // the controls' time now / their time then
  std::string why;
};
CarriedOver carried_over(const BaselineRecord& record, const std::vector<ControlTime>& now);

void fields(Fields& v, BaselineAccuracy& accuracy);
void fields(Fields& v, BaselineTime& time);
void fields(Fields& v, ControlTime& control);
void fields(Fields& v, BaselineRecord& record);

}  // namespace cutegen
