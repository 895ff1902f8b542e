// SPDX-License-Identifier: Apache-2.0
// Plan version 1: how the device code of a kernel program is launched (plan.json).
//
// Contract: parse_plan accepts exactly the schema schemas/plan.v1.json. Its errors give place
// ("plan.json#/steps/0/grid") and remedy, and refuse reserved fields by name. check_plan validates
// a plan against a task (tensor names, attributes, axes). Neither looks at sources.
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
  bool zero = false;          // "init": "zero" (timed); false: poison
  bool weights_life = false;  // "life": "weights"
};

// The pixels of a tensor map in im2col mode. Each list has one entry per spatial dim, which are all
// dims but the first (channels) and the last (images); `steps` may be empty: all 1.
struct Im2colSpec {
  std::vector<Expr> lower, upper, steps;
};

struct TensorMapSpec {
  std::string name, tensor, spec;  // spec: the module's tma_spec constant
  std::vector<Expr> dims, strides;
  std::optional<Im2colSpec> im2col;  // else tile mode
};

struct ArgSpec {
  enum class Kind { map, tensor, i32, u32, i64, f32, f64 } kind = Kind::tensor;
  std::string name;  // the name in a map or tensor argument (inputs, parameters, outputs, scratch)
  Expr value;        // for the others
};

struct Step {
  std::string id;  // default: "s0", "s1", ... ("p0" in prepare)
  std::optional<Expr> when;
  bool is_fill = false;
  // a kernel launch
  std::string kernel;
  std::array<Expr, 3> grid{Expr(1), Expr(1), Expr(1)}, block{Expr(1), Expr(1), Expr(1)},
      cluster{Expr(1), Expr(1), Expr(1)};
  Expr shared_bytes;
  bool cooperative = false, pdl = false;
  std::vector<ArgSpec> args;
  // a fill
  std::string fill_tensor;
  double fill_value = 0;
};

// The dialect of the sources: with CuTe's headers, or plain CUDA.
enum class Dialect { cute, cuda };
Names<Dialect> enum_names(Dialect);
std::optional<Dialect> parse_dialect(std::string_view name);

// The most source files of a program.
inline constexpr size_t kMostSources = 256;

struct Plan {
  Dialect dialect = Dialect::cute;
  std::vector<std::string> arch{"sm_80+"};  // "sm_80+" or exact "sm_90a"
  std::vector<std::string> sources;
  std::vector<std::pair<std::string, std::string>> bind;  // short name -> the task's tensor
  std::vector<std::pair<std::string, Expr>> symbols;      // each may use earlier ones
  std::vector<std::pair<std::string, Expr>> defines;
  std::vector<Expr> requires_;
  std::vector<ScratchSpec> scratch;
  std::vector<TensorMapSpec> tensor_maps;
  std::vector<Step> prepare, steps;
};

Names<ArgSpec::Kind> enum_names(ArgSpec::Kind);
Result<Plan> parse_plan(const std::string& text, const std::string& name = "plan.json");
Result<Plan> plan_from_json(const Json& json, const std::string& name = "plan.json");
Json to_json(const Plan& plan);  // canonical form: fields in order, defaults omitted
// All problems of the plan with this task, one line each, with place and remedy.
std::vector<Error> check_plan(const Plan& plan, const Task& task);
// Checks for a plain file name that ends in .cu; the error names `where`.
Result<void> check_source_name(const std::string& name, const std::string& where);
std::string default_step_id(const std::string& list, size_t index);
const std::string& plan_schema();  // the text of plan.v1.json

}  // namespace cutegen
