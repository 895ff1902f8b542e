// SPDX-License-Identifier: Apache-2.0
// Task: the computation that a kernel must perform: a PyTorch module with its inputs, shapes and
// accuracy.
//
// Contract: names, shapes and dtypes come from the reference module. The name of an input is its
// name in forward() ("x"; for the items of a list "xs.0", "xs.1"). The name of a parameter or
// buffer is its dotted path ("fc.weight"). A single output has the name "out"; several outputs have
// the names "out.0", "out.1", and so on. The element shapes[0] is the official shape (the sizes in
// the task file). The task's id is a hash of the reference source, the side file (NAME.toml) and
// all other data that affects the results.
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
  Shape shape;           // the tensor's shape at the official sizes
  bool mutated = false;  // the reference module changes the tensor in place
  // For a floating-point output: the least accurate math mode of the values from which the
  // reference computes the output. Unset if it is the task's math mode.
  std::optional<MathMode> math_mode = {};
  // True if the task has TF32 convolutions, but this fp32 output depends on no convolution.
  bool without_convolution = false;
};

using Scalar = std::variant<bool, int64_t, double, std::string>;

struct ScalarInfo {
  std::string name;  // dotted path of an attribute in the module ("act.negative_slope")
  Scalar value;
};

// `derived`: cutegen chose the shape, to test one long dimension or the tile sizes of a program.
enum class ShapeKind { official, small, odd, user, derived };

// The task at particular sizes. ShapeCase::tensors has the shape of every input, parameter, buffer
// and output.
struct ShapeCase {
  std::string name;  // "official", "small", "odd1"
  ShapeKind kind = ShapeKind::official;
  double weight = 1;
  std::vector<std::pair<std::string, int64_t>> constants;  // new values of module constants
  std::map<std::string, Shape> tensors;
  Flops flops;
  Bytes least_bytes;  // size of the outputs and of the tensors that any program must read
  // Set only for a test that a model proposed: the value ranges of some inputs. For these inputs,
  // the ranges replace the input distributions.
  std::map<std::string, ValueRange> values = {};
};

// The value of Task::workload for tasks without a reduction.
inline constexpr const char* kElementwise = "elementwise";

struct Task {
  std::string id;                      // sha256
  std::string name;                    // file name without extension
  std::string file;                    // path as given
  std::string source;                  // text of the reference's source file
  std::vector<TensorInfo> tensors;     // sorted by role: inputs, parameters, buffers, outputs
  std::vector<ScalarInfo> attributes;  // the module's scalar attributes: attr(name) in plans
  std::vector<ScalarInfo> arguments;   // scalars that get_inputs() returns: arg(name) in plans
  MathMode math_mode = MathMode::fp32;
  bool math_mode_asked = false;    // whether the user chose the math mode
  bool tf32_convolutions = false;  // math mode fp32, but convolutions may use TF32
  bool train_mode = false;
  std::optional<double> tolerance;   // factor for the accepted error, from the side file
  std::optional<double> rtol, atol;  // user's error limit: |y - truth| <= atol + rtol |truth|
  std::optional<std::string> baseline;
  std::vector<ShapeCase> shapes;
  Graph graph;
  std::string workload;  // kinds of operators: "matmul", kElementwise, "matmul+elementwise"
  std::vector<std::string> notes;  // notes for the user, such as checks that cutegen cannot make
  // The names of the tensors that forward() returns, in order. Set only if forward() returns a
  // mutated tensor, because a mutated tensor is not among the outputs.
  std::vector<std::string> returns = {};

  const ShapeCase& official() const { return shapes.front(); }
  const TensorInfo* find(const std::string& name) const;
  std::vector<const TensorInfo*> with_role(TensorRole role) const;
};

// True if a program must write the tensor, because it is an output or a mutated tensor.
inline bool is_result(const TensorInfo& tensor) {
  return tensor.role == TensorRole::output || tensor.mutated;
}
// Returns all tensors that a program must write: the outputs in order, then the mutated tensors by
// name.
std::vector<const TensorInfo*> results_of(const Task& task);

// Returns the output's math mode if set, else the task's math mode.
MathMode mode_of(const Task& task, const TensorInfo& output);
// Returns the math mode for the output's tolerance: tf32 for an fp32 output that depends on a TF32
// convolution, otherwise mode_of().
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
