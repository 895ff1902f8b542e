// SPDX-License-Identifier: Apache-2.0
// The program that `cutegen new` writes: it compiles and launches, and computes nothing yet.
#include <fmt/format.h>

#include "base/text.h"
#include "recipes/emit/recipes.h"
#include "recipes/graph/names.h"
#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {
namespace {

// Returns the C++ type of a tensor's elements, for every dtype that a task may have.
std::string element_type(DType dtype) {
  std::string type = recipes::device_type(dtype);
  if (!type.empty()) return type;
  switch (dtype) {
    case DType::f64:
      return "double";
    case DType::f8e4m3:
      return "float_e4m3_t";
    case DType::f8e5m2:
      return "float_e5m2_t";
    case DType::i64:
      return "int64_t";
    case DType::i32:
      return "int32_t";
    case DType::i16:
      return "int16_t";
    case DType::i8:
      return "int8_t";
    case DType::u64:
      return "uint64_t";
    case DType::u32:
      return "uint32_t";
    case DType::u16:
      return "uint16_t";
    default:
      return "uint8_t";
  }
}

struct Text {
  recipes::Names words;
  std::vector<std::string> params, notes, bodies;
  Json args = Json::array(), symbols = Json::object();
};

std::string describe(const TensorInfo& tensor, const std::string& name) {
  return fmt::format("//   {}: {} {}, {} {}{}", name, to_string(tensor.role),
                     sanitize(tensor.name, 120), to_string(tensor.dtype), to_string(tensor.shape),
                     tensor.mutated ? ", mutated: it holds its initial values" : "");
}

// Adds a tensor: a pointer, its sizes as symbols and, for a result, a store of a placeholder.
void add(Text& text, const TensorInfo& tensor, const std::string& name) {
  bool output = is_result(tensor);
  text.notes.push_back(describe(tensor, name));
  text.params.push_back(fmt::format("{}{}* __restrict__ {}", output ? "" : "const ",
                                    element_type(tensor.dtype), name));
  text.args.push_back({{"tensor", name}});
  std::vector<std::string> sizes;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    std::string size = text.words.unique(fmt::format("{}_d{}", name, i));
    sizes.push_back(size);
    text.symbols[size] = fmt::format("dim({},{})", name, i);
    text.params.push_back("int64_t " + size);
    text.args.push_back({{"i64", size}});
  }
  if (!output) return;
  std::string count = sizes.empty() ? "1" : join(sizes, " * ");
  text.bodies.push_back(
      fmt::format("  Tensor g_{0} = make_tensor(make_gmem_ptr({0}), make_layout(int64_t({1})));\n"
                  "  for (int64_t i = first; i < size(g_{0}); i += step) g_{0}(i) = {2}(0);  // "
                  "not the answer\n",
                  name, count, element_type(tensor.dtype)));
}

}  // namespace

Result<KernelProgram> skeleton(const Task& task) {
  Text text;
  auto names = recipes::short_names(task);
  std::vector<std::string> counts;
  for (const auto& [tensor, name] : names) (void)text.words.unique(name);
  for (const TensorInfo& tensor : task.tensors) {
    add(text, tensor, names.at(tensor.name));
    if (is_result(tensor)) counts.push_back(fmt::format("size({})", names.at(tensor.name)));
  }
  if (counts.empty()) return user_error("the task has no output", task.file);
  std::string most = counts[0];
  for (size_t i = 1; i < counts.size(); ++i) most = fmt::format("max({},{})", most, counts[i]);

  KernelProgram program;
  program.sources["kernel.cu"] = fmt::format(
      "// SPDX-License-Identifier: Apache-2.0\n"
      "// A skeleton for {}: it compiles and launches, but it writes zeros. Nothing here\n"
      "// computes the task yet; `cutegen eval` will say so.\n//\n{}\n"
      "#include <cute/tensor.hpp>\n\nusing namespace cute;\n\n"
      "extern \"C\" __global__ void __launch_bounds__(256)\nkernel({}) {{\n"
      "  const int64_t first = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;\n"
      "  const int64_t step = int64_t(gridDim.x) * blockDim.x;\n{}}}\n",
      sanitize(task.name, 80), join(text.notes, "\n"), join(text.params, ",\n       "),
      join(text.bodies, ""));
  Json plan{{"cutegen", 1}, {"dialect", "cute"}};
  plan["arch"] = Json::array({"sm_80+"});
  plan["sources"] = Json::array({"kernel.cu"});
  Json bind = recipes::bindings(names);
  if (!bind.empty()) plan["bind"] = bind;
  text.symbols["most"] = most;
  plan["symbols"] = text.symbols;
  Json step{{"id", "kernel"}, {"kernel", "kernel"}, {"when", "most > 0"}};
  step["grid"] = Json::array({"min(ceil_div(most,256),gpu.sms*8)", 1, 1});
  step["block"] = Json::array({256, 1, 1});
  step["args"] = text.args;
  plan["steps"] = Json::array({step});
  CG_TRY(program.plan, plan_from_json(plan));
  return program;
}

}  // namespace cutegen::recipes
