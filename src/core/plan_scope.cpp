// SPDX-License-Identifier: Apache-2.0
#include "core/plan_scope.h"
#include "core/launch_limits.h"

#include <fmt/format.h>

#include <algorithm>

namespace cutegen {
namespace {

std::string did_you_mean(const std::string& word, const std::vector<std::string>& options) {
  auto near = nearest(word, options);
  return near ? "did you mean '" + *near + "'?" : "";
}

Result<Number> number_of(const std::vector<ScalarInfo>& list, const std::string& name,
                         const char* what) {
  std::vector<std::string> known;
  for (const ScalarInfo& s : list) {
    if (s.name == name) {
      if (const bool* b = std::get_if<bool>(&s.value)) return Number(int64_t{*b});
      if (const int64_t* i = std::get_if<int64_t>(&s.value)) return Number(*i);
      if (const double* d = std::get_if<double>(&s.value)) return Number(*d);
      return user_error(fmt::format("{} '{}' is a string, not a number", what, name));
    }
    known.push_back(s.name);
  }
  return user_error(fmt::format("the task has no {} '{}'", what, name), {},
                    did_you_mean(name, known));
}

}  // namespace

PlanScope::PlanScope(PlanContext context, const std::vector<ModuleFacts>* facts)
    : context_(context), facts_(facts) {
  for (const auto& [name, expr] : context_.plan.symbols) {
    auto value = expr.evaluate(*this);
    if (!value && value.error().where.empty()) value.error().where = "plan.json#/symbols/" + name;
    symbols_.emplace(name, std::move(value));
  }
}

Result<Number> PlanScope::symbol(const std::string& name) const {
  if (name == "gpu.sms") return Number(context_.device.sms);
  if (auto it = symbols_.find(name); it != symbols_.end()) return it->second;
  std::vector<std::string> known;
  known.reserve(context_.plan.symbols.size());
  for (const auto& [n, e] : context_.plan.symbols) known.push_back(n);
  if (std::find(known.begin(), known.end(), name) != known.end())
    return user_error("symbol '" + name + "' is used before it is defined", {},
                      "put it first in 'symbols'");
  return user_error("unknown symbol '" + name + "'", {}, did_you_mean(name, known));
}

std::string PlanScope::task_name(const std::string& name) const {
  for (const auto& [alias, target] : context_.plan.bind)
    if (alias == name) return target;
  return name;
}

Result<const Shape*> PlanScope::shape_of(const std::string& tensor) const {
  auto it = context_.shape.tensors.find(task_name(tensor));
  if (it != context_.shape.tensors.end()) return &it->second;
  std::vector<std::string> known;
  known.reserve(context_.shape.tensors.size() + context_.plan.bind.size());
  for (const auto& [name, shape] : context_.shape.tensors) known.push_back(name);
  for (const auto& [alias, target] : context_.plan.bind) known.push_back(alias);
  return user_error("the task has no tensor '" + tensor + "'", {}, did_you_mean(tensor, known));
}

Result<size_t> PlanScope::axis_of(const std::string& tensor, const Shape& shape,
                                  int64_t axis) const {
  auto rank = int64_t(shape.size());
  if (axis < -rank || axis >= rank)
    return user_error(
        fmt::format("'{}' has {} dimension(s), so there is no axis {}", tensor, rank, axis));
  return size_t(axis < 0 ? axis + rank : axis);
}

Result<int64_t> PlanScope::dim(const std::string& tensor, int64_t axis) const {
  CG_TRY(const Shape* shape, shape_of(tensor));
  CG_TRY(size_t i, axis_of(tensor, *shape, axis));
  return (*shape)[i];
}

Result<int64_t> PlanScope::size(const std::string& tensor) const {
  CG_TRY(const Shape* shape, shape_of(tensor));
  return element_count(*shape);
}

// Tensors are contiguous: the stride of an axis is the product of the sizes after it.
Result<int64_t> PlanScope::stride(const std::string& tensor, int64_t axis) const {
  CG_TRY(const Shape* shape, shape_of(tensor));
  CG_TRY(size_t i, axis_of(tensor, *shape, axis));
  return element_count(Shape(shape->begin() + long(i) + 1, shape->end()));
}

Result<Number> PlanScope::attribute(const std::string& name) const {
  return number_of(context_.task.attributes, name, "attribute");
}

Result<Number> PlanScope::argument(const std::string& name) const {
  return number_of(context_.task.arguments, name, "scalar argument");
}

Result<int64_t> PlanScope::module_constant(const std::string& name) const {
  if (!facts_)
    return user_error("k(" + name + ") is known only after compiling", {},
                      "do not use it in 'defines' or 'requires'");
  std::vector<std::string> known;
  for (const ModuleFacts& m : *facts_) {
    if (auto it = m.constants.find(name); it != m.constants.end()) return it->second;
    for (const auto& [n, value] : m.constants) known.push_back(n);
  }
  std::string near = did_you_mean(name, known);
  return user_error("no module has an integer constant '" + name + "'", {},
                    near.empty() ? "declare it as extern \"C\" __device__ const int" : near);
}

Result<int64_t> PlanScope::occupancy(const std::string& kernel) const {
  if (in_occupancy_)
    return user_error("occupancy(" + kernel + ") depends on itself", {},
                      "block and shared_bytes must not use occupancy");
  auto is_it = [&](const Step& s) { return !s.is_fill && s.kernel == kernel; };
  const auto& steps = context_.plan.steps;
  auto step = std::find_if(steps.begin(), steps.end(), is_it);
  if (step == steps.end())
    return user_error("no step launches a kernel '" + kernel + "'", {}, "see occupancy(...)");
  struct Guard {
    bool& flag;
    ~Guard() { flag = false; }
  } guard{in_occupancy_ = true};
  int64_t threads = 1;
  for (const Expr& e : step->block) {
    CG_TRY(int64_t n, e.integer(*this));
    if (n <= 0 || n > context_.device.max_threads_per_block)
      return user_error(fmt::format("block size {} in occupancy({})", n, kernel));
    threads *= n;
  }
  CG_TRY(int64_t shared, step->shared_bytes.integer(*this));
  if (shared < 0 || shared > int64_t{1} << 40)
    return user_error(fmt::format("shared_bytes {} in occupancy({})", shared, kernel));
  const DeviceFacts& d = context_.device;
  int64_t blocks = std::min(d.max_blocks_per_sm, d.max_threads_per_sm / threads);
  if (d.shared_bytes_per_sm > 0)
    blocks = std::min(blocks, d.shared_bytes_per_sm / (shared + kReservedSharedBytes));
  return std::max<int64_t>(1, blocks);
}

std::string PlanScope::values_of(const Expr& e) const {
  std::string out;
  auto add = [&](const std::string& name, const Result<Number>& value) {
    if (!value) return;
    out += out.empty() ? "" : ", ";
    out += std::visit([&](auto v) { return fmt::format("{} = {}", name, v); }, *value);
  };
  for (const std::string& name : e.mentions()) {
    if (name.starts_with("tensor:")) {
      auto shape = shape_of(name.substr(7));
      if (shape) out += (out.empty() ? "" : ", ") + name.substr(7) + " is " + to_string(**shape);
    } else if (name.starts_with("attr:")) {
      add(name.substr(5), attribute(name.substr(5)));
    } else if (name.starts_with("arg:")) {
      add(name.substr(4), argument(name.substr(4)));
    } else if (name.find(':') == std::string::npos) {
      add(name, symbol(name));
    }
  }
  return out;
}

}  // namespace cutegen
