// SPDX-License-Identifier: Apache-2.0
// Task: what a kernel must compute.
//
// Contract: names, shapes and dtypes are the reference module's. Inputs have the parameter names of
// forward ("x"; list items "xs.0"), parameters and buffers their dotted path ("fc.weight"), outputs
// "out" or "out.0", "out.1". A mutated tensor holds its initial values before a call and its final
// values after it. shapes[0] is the official shape. task_id hashes the reference source, the side
// file and everything else that changes the meaning.
//
// Example: CG_TRY(Task t, read_json<Task>(j)); t.official().tensors.at("x")  // {4096, 393216}
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/units.h"
#include "core/graph.h"
#include "core/test_case.h"
#include "gpu/math_mode.h"

namespace cutegen {

enum class TensorRole { input, parameter, buffer, output };

struct TensorInfo {
  std::string name;
  TensorRole role = TensorRole::input;
  DType dtype = DType::f32;
  Shape shape;           // the tensor's shape at the task's official shape
  bool mutated = false;  // the reference writes it in place
  // For a floating-point output: the coarsest math mode among the values that it depends on, if
  // that differs from the task's math mode.
  std::optional<MathMode> math_mode = {};
  // If the task has TF32 convolutions: whether this fp32 output depends on none of them.
  bool without_convolution = false;
};

using Scalar = std::variant<bool, int64_t, double, std::string>;

struct ScalarInfo {
  std::string name;  // attribute: dotted path of the module ("eps", "act.negative_slope")
  Scalar value;
};

// `derived` stands for long shapes and for shapes that follow from a program's tiles.
enum class ShapeKind { official, small, odd, user, derived };

// The task at one set of sizes. `tensors` has every input, parameter, buffer and output.
struct ShapeCase {
  std::string name;  // "official", "small", "odd1"
  ShapeKind kind = ShapeKind::official;
  double weight = 1;
  std::vector<std::pair<std::string, int64_t>> constants;  // overridden module-level constants
  std::map<std::string, Shape> tensors;
  Flops flops;
  Bytes least_bytes;  // written outputs, plus the parts of inputs and parameters that must be read
  // For a proposed test: values of some inputs, which replace the input families.
  std::map<std::string, ValueRange> values = {};
};

inline constexpr const char* kElementwise = "elementwise";  // class of tasks without a reduction

struct Task {
  std::string id;                      // sha256
  std::string name;                    // file stem
  std::string file;                    // path as given
  std::string source;                  // text of the reference file
  std::vector<TensorInfo> tensors;     // inputs, parameters, buffers, outputs, in that order
  std::vector<ScalarInfo> attributes;  // attr(name)
  std::vector<ScalarInfo> arguments;   // arg(name): scalars among get_inputs()
  MathMode math_mode = MathMode::fp32;
  bool math_mode_asked = false;    // the user named the math mode; else the dtypes decide
  bool tf32_convolutions = false;  // fp32 as PyTorch ships: convolutions round operands to TF32
  bool train_mode = false;
  std::optional<double> tolerance;   // scales the accepted error; from the side file
  std::optional<double> rtol, atol;  // the user's bound: |y - t| <= atol + rtol |t|
  std::optional<std::string> baseline;
  std::vector<ShapeCase> shapes;
  Graph graph;
  std::string workload;            // "matmul", kElementwise, ...; fused: "matmul+elementwise"
  std::vector<std::string> notes;  // what the evaluator cannot judge on this task
  // The names of the tensors that forward() returns, in order. Set only if forward() returns a
  // tensor that it mutates, because such a result is not a separate output.
  std::vector<std::string> returns = {};

  const ShapeCase& official() const { return shapes.front(); }
  const TensorInfo* find(const std::string& name) const;
  std::vector<const TensorInfo*> with_role(TensorRole role) const;
};

// What a program must leave in memory: an output, or the final values of a mutated tensor.
inline bool is_result(const TensorInfo& tensor) {
  return tensor.role == TensorRole::output || tensor.mutated;
}
// All results: the outputs in order, then the mutated tensors by name.
std::vector<const TensorInfo*> results_of(const Task& task);

// The output's own math mode if it has one, else the task's.
MathMode mode_of(const Task& task, const TensorInfo& output);
// The math mode that sets the output's tolerance: its own, or tf32 if it is in fp32 and depends on
// a convolution that PyTorch computes in TF32.
MathMode accuracy_of(const Task& task, const TensorInfo& output);
// The math mode in words: "fp32, convolutions in tf32 (as PyTorch ships)".
std::string mode_text(const Task& task);

Names<TensorRole> enum_names(TensorRole);
Names<ShapeKind> enum_names(ShapeKind);
Result<MathMode> math_mode_from(const std::string& name);

Json scalar_json(const Scalar& scalar);
void fields(Fields& v, ShapeCase& shape);
void fields(Fields& v, Task& task);

}  // namespace cutegen
