// SPDX-License-Identifier: Apache-2.0
// Plan: the launches of a kernel program's device code, read from plan.json (version 1).
//
// Contract: parse_plan() accepts exactly the schema schemas/plan.v1.json. An error gives the place
// ("plan.json#/steps/0/grid") and the remedy. If the plan uses a reserved field, the error names
// this field. The function check_plan() compares a plan's tensor names, attributes and axes with
// the task. Neither parse_plan() nor check_plan() reads the device code.
//
// Example: CG_TRY(Plan p, parse_plan(text)); CG_CHECK(check_plan(p, task));
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/expr.h"
#include "core/task.h"

namespace cutegen {

struct ScratchSpec {
  std::string name;
  DType dtype = DType::u8;
  std::vector<Expr> shape;
  bool zero = false;          // true: a run begins with zeros in the buffer; false: with a pattern
  bool weights_life = false;  // the buffer keeps its content until a parameter changes
};

// The pixel box of a tensor map in im2col mode. Each list has one entry for every dimension except
// the first (channels) and the last (images). If `steps` is empty, all steps are 1.
struct Im2colSpec {
  std::vector<Expr> lower, upper, steps;
};

struct TensorMapSpec {
  std::string name, tensor, spec;  // spec: name of a tma_spec constant in the source
  std::vector<Expr> dims, strides;
  std::optional<Im2colSpec> im2col;  // not set: the map is in tile mode
};

struct ArgSpec {
  enum class Kind { map, tensor, i32, u32, i64, f32, f64 } kind = Kind::tensor;
  std::string name;  // for map and tensor: the name of the tensor map or tensor
  Expr value;        // for scalar kinds: the value
};

struct Step {
  std::string id;  // default: "s0", "s1", ... in `steps`; "p0", ... in `prepare`
  std::optional<Expr> when;
  bool is_fill = false;
  // The fields from `kernel` to `args` are set only if the step is a kernel launch.
  std::string kernel;
  std::array<Expr, 3> grid{Expr(1), Expr(1), Expr(1)}, block{Expr(1), Expr(1), Expr(1)},
      cluster{Expr(1), Expr(1), Expr(1)};
  Expr shared_bytes;
  bool cooperative = false, pdl = false;
  std::vector<ArgSpec> args;
  // `fill_tensor` and `fill_value` are set only if the step is a fill.
  std::string fill_tensor;
  double fill_value = 0;
};

// The language of the sources. `cute`: CUDA with CuTe's headers. `cuda`: plain CUDA. `cute_strict`:
// like `cute`, but without inline mma instructions and hand-written swizzles, so that CuTe computes
// all matrix products and all permuted layouts of shared memory.
enum class Dialect { cute, cuda, cute_strict };
inline bool uses_cute(Dialect dialect) {
  return dialect != Dialect::cuda;
}
Names<Dialect> enum_names(Dialect);
std::optional<Dialect> parse_dialect(std::string_view name);

// The largest number of source files in a program.
inline constexpr size_t kMostSources = 256;

struct Plan {
  Dialect dialect = Dialect::cute;
  std::vector<std::string> arch{"sm_80+"};  // "sm_80+" includes newer GPUs, "sm_90a" does not
  std::vector<std::string> sources;
  std::vector<std::pair<std::string, std::string>> bind;  // (short name, name of the task's tensor)
  std::vector<std::pair<std::string, Expr>> symbols;      // a symbol may use earlier symbols
  std::vector<std::pair<std::string, Expr>> defines;
  std::vector<Expr> requires_;
  std::vector<ScratchSpec> scratch;
  std::vector<TensorMapSpec> tensor_maps;
  std::vector<Step> prepare, steps;
};

Names<ArgSpec::Kind> enum_names(ArgSpec::Kind);
Result<Plan> parse_plan(const std::string& text, const std::string& name = "plan.json");
Result<Plan> plan_from_json(const Json& json, const std::string& name = "plan.json");
Json to_json(const Plan& plan);  // canonical JSON: fixed order of fields, no defaults
// Returns every error of the plan for this task. Each error is one line with place and remedy.
std::vector<Error> check_plan(const Plan& plan, const Task& task);
// Returns an error at `where` unless the name is a plain file name (no folder) that ends in .cu.
Result<void> check_source_name(const std::string& name, const std::string& where);
std::string default_step_id(const std::string& list, size_t index);
const std::string& plan_schema();  // text of schemas/plan.v1.json

}  // namespace cutegen
