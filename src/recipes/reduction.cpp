// SPDX-License-Identifier: Apache-2.0
#include "recipes/reduction.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "recipes/nest.h"
#include "recipes/passes.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kMaxCached = 64;  // elements a thread may keep in registers

int64_t get(const Json& params, const char* name) {
  return params.at(name).get<int64_t>();
}

bool has_element_output(const Fused& fused) {
  for (const FusedOutput& output : fused.outputs)
    for (int axis : output.operand.axes)
      if (axis >= 0 && fused.axes[static_cast<size_t>(axis)].reduced) return true;
  return false;
}

// Steps that a thread takes along the reduced axis, at the official shape.
int64_t steps_of_thread(const Nest& nest, const Json& params) {
  int64_t vector = get(params, "vector");
  if (nest.reduced_inside) {
    if (nest.reduced.back().size % vector != 0) vector = 1;
    int64_t per_step = get(params, "width") * vector;
    return (nest.length() + per_step - 1) / per_step;
  }
  int64_t teams = std::max<int64_t>(1, get(params, "threads") / get(params, "columns"));
  return (nest.length() + teams - 1) / teams;
}

struct Kernel {
  const Fused& fused;
  Nest nest;
  Code code;
  Passes passes;
  std::vector<std::pair<std::string, std::string>> strides;  // argument, expression

  Kernel(const Fused& f, PassOptions options)
      : fused(f), nest(make_nest(f)), code(f), passes(f, code, options) {}

  [[nodiscard]] bool row() const { return nest.reduced_inside; }

  // Strides of an operand over `loops`, innermost first. `vectors`: the innermost loop is counted
  // in vectors; `element` then gets the stride between elements of a vector.
  std::string strides_over(const Operand& operand, const std::vector<Loop>& loops, char prefix,
                           bool vectors, std::string* element) {
    std::vector<std::string> list;
    for (size_t i = loops.size(); i-- > 0;) {
      Stride s = stride(fused, operand, loops[i]);
      std::string text = s.move == Move::none ? "Int<0>{}" : "Int<1>{}";
      if (s.move == Move::stride) {
        text = code.word(fmt::format("{}_{}{}", fused.names.at(operand.tensor), prefix, i));
        strides.emplace_back(text, s.expression);
      }
      if (vectors && i + 1 == loops.size()) {
        *element = text;
        if (s.move == Move::next) text = "Int<kVector>{}";
        if (s.move == Move::stride) text += " * kVector";
      }
      list.push_back(text);
    }
    return tuple_of("make_stride", list);
  }

  // (element of the vector, step along the reduced axis) of this thread's row or columns.
  std::string tensor(const Operand& operand, const std::string& name) {
    std::string element = "Int<0>{}";
    std::string along = strides_over(operand, nest.reduced, 'r', row(), &element);
    std::string across = strides_over(operand, nest.kept, 'k', !row(), &element);
    return fmt::format(
        "Tensor {} = make_tensor(make_gmem_ptr({} + make_layout(across, {})({})),\n"
        "    make_layout(make_shape(Int<kVector>{{}}, along), make_stride({}, {})));\n",
        name, fused.names.at(operand.tensor), across, row() ? "row" : "column", element, along);
  }
};

std::string shape_text(const std::vector<Loop>& loops, char prefix, bool vectors) {
  std::vector<std::string> list;
  for (size_t i = loops.size(); i-- > 0;)
    list.push_back(
        fmt::format("{}{}{}", prefix, i, vectors && i + 1 == loops.size() ? " / kVector" : ""));
  return tuple_of("make_shape", list);
}

std::string source(const Task& task, Kernel& k, const Json& params) {
  bool row = k.row(), cached = get(params, "cached") != 0;
  std::map<std::string, std::string> t;
  t["title"] = title(task, k.fused);
  t["threads"] = params.at("threads").dump();
  if (row)
    t["width"] = params.at("width").dump();
  else
    t["columns"] = params.at("columns").dump();
  t["constants"] = cached
                       ? fmt::format("constexpr int kItems = {};  // vectors kept in registers\n",
                                     steps_of_thread(k.nest, params))
                       : fmt::format("constexpr int kUnroll = {};\n", get(params, "unroll"));
  std::string elements, loads, tensors;
  for (int index : k.passes.operands(Level::element)) {
    const std::string& name = k.passes.input_tensor(static_cast<size_t>(index));
    elements += fmt::format("float {}[kVector];\n", name.substr(2));
    loads += fmt::format("cutegen::load({}(_, j), e.{});\n", name, name.substr(2));
  }
  for (Level level : {Level::element, Level::row})
    for (int index : k.passes.operands(level)) {
      auto i = static_cast<size_t>(index);
      tensors += k.tensor(k.fused.inputs[i], k.passes.input_tensor(i));
    }
  for (size_t i = 0; i < k.fused.outputs.size(); ++i)
    tensors += k.tensor(k.fused.outputs[i].operand, k.passes.output_tensor(i));
  t["body"] = indent(k.passes.text(), 2);
  t["words"] = std::to_string(k.passes.words());
  t["elements"] = indent(elements, 2);
  t["loads"] = indent(loads, 4);
  t["tensors"] = indent(tensors, 2);
  t["along"] = shape_text(k.nest.reduced, 'r', row);
  t["across"] = shape_text(k.nest.kept, 'k', !row);
  std::vector<std::string> declarations, sizes;
  for (const Parameter& p : parameters(k.fused)) declarations.push_back(p.declaration);
  for (size_t i = 0; i < k.nest.kept.size(); ++i) sizes.push_back(fmt::format("int64_t k{}", i));
  for (size_t i = 0; i < k.nest.reduced.size(); ++i) sizes.push_back(fmt::format("int64_t r{}", i));
  for (const auto& [name, expression] : k.strides) sizes.push_back("int64_t " + name);
  t["params"] = join(declarations, ", ");
  t["sizes"] = join(sizes, ", ");
  return fill(row ? "kernels/reduction/row.cu" : "kernels/reduction/column.cu", t);
}

Json plan_of(const Kernel& k, const Json& params) {
  bool row = k.row();
  int64_t threads = get(params, "threads"), vector = get(params, "vector");
  Json plan{{"cutegen", 1}, {"dialect", "cute"}};
  plan["arch"] = Json::array({"sm_80+"});
  plan["sources"] = Json::array({"kernel.cu"});
  Json bind = bindings(k.fused.names);
  if (!bind.empty()) plan["bind"] = bind;
  Json symbols = Json::object(), args = Json::array();
  for (const Parameter& p : parameters(k.fused)) args.push_back({{"tensor", p.name}});
  auto add = [&](const std::vector<Loop>& loops, const char* prefix) {
    std::string product;
    for (size_t i = 0; i < loops.size(); ++i) {
      std::string name = prefix + std::to_string(i);
      symbols[name] = loops[i].extent;
      product += (i ? "*" : "") + name;
      args.push_back({{"i64", name}});
    }
    return product;
  };
  std::string rows = add(k.nest.kept, "k"), length = add(k.nest.reduced, "r");
  const auto& inner = row ? k.nest.reduced : k.nest.kept;
  std::string last = (row ? "r" : "k") + std::to_string(inner.size() - 1);
  symbols["rows"] = rows;
  symbols["length"] = length;
  symbols["vector"] =
      vector == 1 ? "1" : fmt::format("{} % {} == 0 ? {} : 1", last, vector, vector);
  for (const auto& [name, expression] : k.strides) args.push_back({{"i64", expression}});
  plan["symbols"] = symbols;
  plan["defines"] = Json::object({{"VECTOR", "vector"}});
  int64_t side = row ? get(params, "width") : threads / get(params, "columns");
  if (get(params, "cached") != 0)
    plan["requires"] =
        Json::array({fmt::format("ceil_div(length,{}{}) <= {}", side, row ? "*vector" : "",
                                 steps_of_thread(k.nest, params))});
  std::string grid = row ? fmt::format("ceil_div(rows,{})", threads / side)
                         : fmt::format("ceil_div(rows/vector,{})", get(params, "columns"));
  Json step{{"id", "reduction"}, {"kernel", "reduction"}, {"when", "rows > 0"}};
  step["grid"] = Json::array({grid, 1, 1});
  step["block"] = Json::array({threads, 1, 1});
  step["args"] = args;
  plan["steps"] = Json::array({step});
  return plan;
}

}  // namespace

std::vector<RecipeParameter> reduction_parameters(const Fused& fused) {
  Nest nest = make_nest(fused);
  int64_t innermost = nest.reduced_inside ? nest.reduced.back().size : nest.kept.back().size;
  std::vector<RecipeParameter> list{{"vector",
                                     "neighbouring elements that a thread moves in one access",
                                     vector_widths(fused, innermost)}};
  bool several_passes = fused.max_depth() > 1 || has_element_output(fused);
  if (several_passes)
    list.push_back({"cached", "1: keep what was read in registers between the passes", {1, 0}});
  if (find_max_and_sum(fused))
    list.push_back({"online", "1: maximum and sum of exponentials in one pass", {1, 0}});
  if (nest.reduced_inside) {
    std::vector<int64_t> widths{256, 32, 512, 128, 64, 1024};
    if (nest.length() <= 1024) widths = {32, 64, 128, 256};
    if (nest.length() > 65536) widths = {512, 1024, 256, 128};
    list.push_back({"width", "threads that share a row", widths});
  } else {
    list.push_back(
        {"columns", "threads side by side on neighbouring columns", {32, 64, 128, 256, 16}});
  }
  list.push_back({"unroll", "steps of a pass that are in flight", {4, 2, 8, 1}});
  list.push_back({"threads", "threads of a CTA", {256, 512, 128, 1024}});
  return list;
}

Json reduction_safe(const Fused& fused) {
  Json params{{"vector", 1}, {"cached", 0}, {"online", 0}};
  if (make_nest(fused).reduced_inside)
    params["width"] = 256;
  else
    params["columns"] = 32;
  params["unroll"] = 1;
  params["threads"] = 256;
  return params;
}

bool reduction_legal(const Fused& fused, const Json& params) {
  Nest nest = make_nest(fused);
  int64_t threads = get(params, "threads"),
          side = get(params, nest.reduced_inside ? "width" : "columns");
  if (side > threads || threads % side != 0) return false;
  if (get(params, "online") != 0 && !find_max_and_sum(fused)) return false;
  if (get(params, "cached") == 0) return true;
  int64_t operands = std::max<int64_t>(1, static_cast<int64_t>(fused.inputs.size()));
  return steps_of_thread(nest, params) * get(params, "vector") * operands <= kMaxCached;
}

Result<KernelProgram> reduction_program(const Task& task, const Fused& fused, const Json& params) {
  bool row = make_nest(fused).reduced_inside;
  Kernel kernel(fused, {!row, get(params, "cached") != 0, get(params, "online") != 0});
  KernelProgram program;
  program.sources["kernel.cu"] = source(task, kernel, params);
  CG_TRY(program.plan, plan_from_json(plan_of(kernel, params)));
  return program;
}

}  // namespace cutegen::recipes
