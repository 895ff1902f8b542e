// SPDX-License-Identifier: Apache-2.0
// Task: what a kernel must compute.
//
// Contract: names, shapes and dtypes are those of the reference module. Tensor names: inputs by the
// parameter names of forward ("x"; list items "xs.0"), parameters and buffers by their dotted path
// ("fc.weight"), outputs "out" or "out.0", "out.1". A mutated tensor holds its initial values
// before a call and its final ones after it. shapes[0] is the official one. task_id is a hash of
// the reference source, the side file and everything that changes the meaning.
//
// Example: CG_TRY(Task t, task_from_json(j)); t.official().tensors.at("x")  // {4096, 393216}
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/units.h"
#include "core/graph.h"

namespace cutegen {

enum class MathMode { fp32, tf32, fp16, bf16 };
enum class TensorRole { input, parameter, buffer, output };

struct TensorInfo {
  std::string name;
  TensorRole role = TensorRole::input;
  DType dtype = DType::f32;
  Shape shape;           // at the official shape
  bool mutated = false;  // the reference writes it in place
  // Of a floating output: the coarsest rounding on the way to it, where that is not the task's
  // mode.
  std::optional<MathMode> math_mode = {};
};

using Scalar = std::variant<bool, int64_t, double, std::string>;

struct ScalarInfo {
  std::string name;  // attribute: dotted path of the module ("eps", "act.negative_slope")
  Scalar value;
};

enum class ShapeKind { official, small, odd, user, derived };  // derived: from a program's tiles

// One size of the task. `tensors` has every input, parameter, buffer and output.
struct ShapeCase {
  std::string name;  // "official", "small", "odd1"
  ShapeKind kind = ShapeKind::official;
  double weight = 1;
  std::vector<std::pair<std::string, int64_t>> constants;  // module-level constants overridden
  std::map<std::string, Shape> tensors;
  Flops flops;
  Bytes least_bytes;  // outputs written once, and of inputs and parameters what is read at all
};

struct Task {
  std::string id;                      // sha256
  std::string name;                    // file stem
  std::string file;                    // path as given
  std::string source;                  // text of the reference file
  std::vector<TensorInfo> tensors;     // inputs, parameters, buffers, outputs, in that order
  std::vector<ScalarInfo> attributes;  // attr(name)
  std::vector<ScalarInfo> arguments;   // arg(name): scalars among get_inputs()
  MathMode math_mode = MathMode::fp32;
  bool math_mode_asked = false;    // the user named it; else it follows from the dtypes
  bool tf32_convolutions = false;  // fp32 as PyTorch ships: convolutions round operands to TF32
  bool train_mode = false;
  std::optional<double> tolerance;  // scales the accepted error ratio; from the side file
  std::optional<double> rtol,
      atol;  // a bound of the user's beside ours: |y - t| <= atol + rtol |t|
  std::optional<std::string> baseline;
  std::vector<ShapeCase> shapes;
  Graph graph;
  std::string
      workload;  // "matmul", "elementwise", ... (see design; fused variants "matmul+elementwise")
  std::vector<std::string> notes;  // marks: what limits the judgement of this task
  // Names in the order of forward()'s results, given only if it returns a tensor that it mutates:
  // that result is no output of its own.
  std::vector<std::string> returns = {};

  [[nodiscard]] const ShapeCase& official() const { return shapes.front(); }
  [[nodiscard]] const TensorInfo* find(const std::string& name) const;
  [[nodiscard]] std::vector<const TensorInfo*> with_role(TensorRole role) const;
};

// What a program must leave in memory: an output, or a mutated tensor with its final values.
[[nodiscard]] inline bool is_result(const TensorInfo& tensor) {
  return tensor.role == TensorRole::output || tensor.mutated;
}
// All of them: the outputs in their order, then the mutated tensors by name.
[[nodiscard]] std::vector<const TensorInfo*> results_of(const Task& task);

// Of a floating output: its own mode, else the task's.
[[nodiscard]] MathMode mode_of(const Task& task, const TensorInfo& output);
// The mode for a reader: "fp32, convolutions in tf32 (as PyTorch ships)".
[[nodiscard]] std::string mode_text(const Task& task);

[[nodiscard]] const char* to_string(MathMode mode);
[[nodiscard]] const char* to_string(TensorRole role);
[[nodiscard]] const char* to_string(ShapeKind kind);
[[nodiscard]] Result<MathMode> math_mode_from(const std::string& name);

[[nodiscard]] Json to_json(const Task& task);
[[nodiscard]] Result<Task> task_from_json(const Json& json);

}  // namespace cutegen
