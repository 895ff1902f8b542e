// SPDX-License-Identifier: Apache-2.0
// Baselines of a task: the times of PyTorch, or of other code that the user runs today, on one GPU.
//
// Contract: each time is the median of a few calls at the official shape (the sizes in the task
// file) with a cold L2, and has a 95% interval. If a baseline has no time, BaselineTime::why gives
// the reason. A BaselineRecord also contains data of the task, and the times of control kernels:
// fixed programs that show how fast the GPU runs. With the control kernels' times, carried_over()
// rescales the baseline times for a later run. JSON form: schema cutegen.baselines.v1.
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

// How a baseline runs the task: in eager mode with PyTorch's defaults, without TF32, or with TF32
// everywhere; with torch.compile; with torch.compile in mode max-autotune; or by the user's
// function, MODULE:CALLABLE.
enum class BaselineKind { eager, eager_fp32, eager_tf32, compile, compile_max, callable };
Names<BaselineKind> enum_names(BaselineKind);
// Converts a baseline's name to its kind. Any name other than "eager", "eager-fp32" and so on is a
// MODULE:CALLABLE, of kind `callable`.
BaselineKind baseline_kind(const std::string& name);
// True for the three kinds that run PyTorch in eager mode.
bool is_eager(BaselineKind kind);

// Value of BaselineAccuracy::precision if a baseline rounds to TF32 in convolutions only.
inline constexpr const char* kTf32Convolutions = "tf32 convolutions";

// The accuracy of a baseline, judged by the same rule as candidates.
struct BaselineAccuracy {
  std::string precision;  // a math mode's name or kTf32Convolutions; empty if unknown
  bool coarser = false;   // the baseline rounds more than the task's math mode permits
  // The largest ratio error / tolerance over all judged input sets.
  std::optional<double> share;
  std::optional<bool> passes;  // whether the baseline's errors are within the candidates' tolerance
  std::string why;             // why the baseline fails, or why the evaluator could not judge it
};

struct BaselineTime {
  std::string kind;  // name of the baseline: "eager", ..., or MODULE:CALLABLE
  double time_ns = 0, low_ns = 0, high_ns = 0;
  int samples = 0;
  Origin origin = Origin::measured;
  double far = 0;      // largest difference from eager's result, relative to eager's largest value
  double build_s = 0;  // seconds to set up the baseline, including torch.compile
  std::string why;     // reason if the baseline has no time; else empty
  BaselineAccuracy accuracy = {};
  bool known() const { return why.empty() && time_ns > 0; }
};

// The time of a control kernel, a fixed program of cutegen that shows how fast the GPU runs now.
struct ControlTime {
  std::string name, program_id;
  double time_ns = 0;
};

// The cost of computing the truth (the result in float64) at the official shape, and problems that
// occurred.
struct TruthMade {
  double seconds = 0;
  int64_t bytes = 0;  // GPU memory of the inputs and the truth
  std::vector<std::string> notes;
  std::string why;  // reason if the truth could not be computed
  // The baselines' accuracy against the truth; in JSON, BaselineTime contains this accuracy.
  std::map<BaselineKind, BaselineAccuracy> accuracy = {};
};

struct BaselineRecord {
  std::string task_id, name, workload;
  MathMode math_mode = MathMode::fp32;
  std::string gpu, uuid, driver, torch;
  std::string measured;  // date and time of the measurement
  double floor_ns = 0;
  std::string bound_by;
  bool admitted = false;
  // why the task was not admitted (a degenerate solution, such as zeros, passed all tests), or what
  // the evaluator cannot judge for this task
  std::string remark;
  TruthMade truth;
  std::vector<ControlTime> controls;
  std::vector<BaselineTime> times;
  // a baseline had less time than usual to build, because the total time limit was near
  bool cut = false;
  int policy_version = 0;  // of the rules that judged the accuracy; 0: unknown (an older record)
};

// Returns the precision to which PyTorch rounds operands in this kind of baseline, and whether the
// task's math mode permits this rounding. For a user's callable, the precision is unknown.
BaselineAccuracy class_of(BaselineKind kind, const Task& task);
// True if cuDNN may round operands to TF32, because the task has float32 convolutions or recurrent
// layers. For any other task, the baselines "eager-fp32" and "eager" are equal.
bool has_cudnn_tf32(const Task& task);

// True if candidates compete with this baseline: the math mode permits the baseline's precision, or
// the baseline's results are within the candidates' tolerance. If a record of an older version
// lacks the precision, every baseline competes, except "eager-tf32" in math mode fp32.
bool in_math_mode(BaselineKind kind, const BaselineAccuracy& accuracy, MathMode mode);
bool in_math_mode(const BaselineTime& time, MathMode mode);
// Merges the accuracy at another shape into `to`. The worse result counts; the order from worst to
// best is failed, unknown, passed.
void keep_worse(BaselineAccuracy& to, const BaselineAccuracy& from);
// Returns text for a table: "fp32, 0.31 of the accepted error" or "tf32 convolutions: fails this
// task's tolerance".
std::string accuracy_text(const BaselineAccuracy& accuracy);
// Returns the fastest baseline that in_math_mode() accepts, or null if no such baseline has a time.
const BaselineTime* best_baseline(const std::vector<BaselineTime>& times, MathMode mode);

// Cached baseline times, scaled to the present speed of the GPU. If the speed has changed too much,
// or the same control kernels were not timed again, `times` is empty, and `why` gives the reason.
struct CarriedOver {
  std::vector<BaselineTime> times;
  double ratio = 1;  // present times of the control kernels / their recorded times
  std::string why;
};
// If another version of the judging rules judged the accuracies, removes them and says so in `why`.
// The times stay.
void drop_accuracy_of_other_policy(BaselineRecord& record);
CarriedOver carried_over(const BaselineRecord& record, const std::vector<ControlTime>& now);

void fields(Fields& v, BaselineAccuracy& accuracy);
void fields(Fields& v, BaselineTime& time);
void fields(Fields& v, ControlTime& control);
void fields(Fields& v, BaselineRecord& record);

}  // namespace cutegen
