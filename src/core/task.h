// SPDX-License-Identifier: Apache-2.0
// Task: the computation that a kernel must perform: a PyTorch module with its inputs, shapes and
// accuracy.
//
// Contract: names, shapes and dtypes come from the reference module. An input has its name in
// forward() ("x"; a list's items "xs.0", "xs.1"). A parameter or buffer has its dotted path
// ("fc.weight"). Outputs are "out", or "out.0", "out.1". A mutated tensor has its initial values
// before a call and its final values after the call. shapes[0] is the official shape (the sizes in
// the task file). The task's id is a hash of the reference source, the side file and all other data
// that affects the results.
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
  Shape shape;           // at the task's official shape
  bool mutated = false;  // the reference changes the tensor in place
  // For a floating-point output: the coarsest math mode among the values from which the output is
  // computed. Not set if it equals the task's math mode.
  std::optional<MathMode> math_mode = {};
  // True if the task has TF32 convolutions, but this fp32 output depends on no convolution.
  bool without_convolution = false;
};

using Scalar = std::variant<bool, int64_t, double, std::string>;

struct ScalarInfo {
  std::string name;  // an attribute's dotted path in the module ("act.negative_slope")
  Scalar value;
};

// `derived`: cutegen chose the shape, because it is long or because it fits a program's tile sizes.
enum class ShapeKind { official, small, odd, user, derived };

// The task at particular sizes. `tensors` has the shape of every input, parameter, buffer and
// output.
struct ShapeCase {
  std::string name;  // "official", "small", "odd1"
  ShapeKind kind = ShapeKind::official;
  double weight = 1;
  std::vector<std::pair<std::string, int64_t>> constants;  // changed constants of the Python module
  std::map<std::string, Shape> tensors;
  Flops flops;
  Bytes least_bytes;  // outputs, plus the inputs and parameters that any program must read
  // For a proposed test: ranges for the values of some inputs. They replace the input
  // distributions.
  std::map<std::string, ValueRange> values = {};
};

// Task::workload of tasks without a reduction
inline constexpr const char* kElementwise = "elementwise";

struct Task {
  std::string id;                      // sha256
  std::string name;                    // file name without extension
  std::string file;                    // path as given
  std::string source;                  // text of the reference file
  std::vector<TensorInfo> tensors;     // first inputs, then parameters, buffers and outputs
  std::vector<ScalarInfo> attributes;  // scalar attributes of the module, used as attr(name)
  std::vector<ScalarInfo> arguments;   // scalars that get_inputs() returns, used as arg(name)
  MathMode math_mode = MathMode::fp32;
  bool math_mode_asked = false;    // the user chose the math mode; else it follows from the dtypes
  bool tf32_convolutions = false;  // PyTorch's default: fp32, but convolutions may use TF32
  bool train_mode = false;
  std::optional<double> tolerance;   // factor of the accepted error, from the side file
  std::optional<double> rtol, atol;  // the user's limit: |y - truth| <= atol + rtol |truth|
  std::optional<std::string> baseline;
  std::vector<ShapeCase> shapes;
  Graph graph;
  std::string workload;  // kinds of operators: "matmul", kElementwise, "matmul+elementwise"
  std::vector<std::string> notes;  // limits of judging this task, for the user
  // The names of the tensors that forward() returns, in order. Set only if forward() returns a
  // mutated tensor, because this tensor is then not among the outputs.
  std::vector<std::string> returns = {};

  const ShapeCase& official() const { return shapes.front(); }
  const TensorInfo* find(const std::string& name) const;
  std::vector<const TensorInfo*> with_role(TensorRole role) const;
};

// True if a program must write the tensor: an output, or a mutated tensor.
inline bool is_result(const TensorInfo& tensor) {
  return tensor.role == TensorRole::output || tensor.mutated;
}
// All tensors with is_result(): the outputs in order, then the mutated tensors by name.
std::vector<const TensorInfo*> results_of(const Task& task);

// Returns the output's math mode if it is set, else the task's.
MathMode mode_of(const Task& task, const TensorInfo& output);
// Returns the math mode for the output's tolerance. It is mode_of(). But for an fp32 output that
// depends on a convolution in TF32, it is tf32.
MathMode accuracy_of(const Task& task, const TensorInfo& output);
// Describes the task's math mode: "fp32, convolutions in tf32 (as PyTorch ships)".
std::string mode_text(const Task& task);

Names<TensorRole> enum_names(TensorRole);
Names<ShapeKind> enum_names(ShapeKind);
Result<MathMode> math_mode_from(const std::string& name);

Json scalar_json(const Scalar& scalar);
void fields(Fields& v, ShapeCase& shape);
void fields(Fields& v, Task& task);

}  // namespace cutegen
