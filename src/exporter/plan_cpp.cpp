// SPDX-License-Identifier: Apache-2.0
#include "exporter/plan_cpp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "device/fill.h"

namespace cutegen::exporter {
namespace {

Result<size_t> axis_of(const TensorInfo& tensor, int64_t axis) {
  const auto rank = int64_t(tensor.shape.size());
  if (axis < -rank || axis >= rank)
    return user_error(fmt::format("'{}' has no axis {}", tensor.name, axis));
  return size_t(axis < 0 ? axis + rank : axis);
}

// Converts the value of a define, such as "1e-05f", to a C++ number.
std::string define_number(const std::string& text) {
  const bool real = text.find_first_of(".e") != std::string::npos;
  return real ? text : "INT64_C(" + text + ")";
}

const char* number_type(ArgSpec::Kind kind) {
  switch (kind) {
    case ArgSpec::Kind::i32:
      return "int32_t";
    case ArgSpec::Kind::u32:
      return "uint32_t";
    case ArgSpec::Kind::i64:
      return "int64_t";
    case ArgSpec::Kind::f32:
      return "float";
    default:
      return "double";
  }
}

const std::string& task_name(const Plan& plan, const std::string& name) {
  for (const auto& [alias, target] : plan.bind)
    if (alias == name) return target;
  return name;
}

// Whether an expression uses a constant of the modules, directly or through a symbol that does.
bool needs_modules(const Expr& expression, const std::set<std::string>& late) {
  const auto all = expression.mentions();
  return std::ranges::any_of(
      all, [&](const std::string& m) { return m.starts_with("k:") || late.contains(m); });
}

}  // namespace

Result<const TensorInfo*> PlanNames::tensor(const std::string& name) const {
  if (const TensorInfo* tensor = task_.find(task_name(plan_, name))) return tensor;
  return user_error("the plan names '" + name + "', which is no tensor of the task");
}

Result<std::string> PlanNames::pointer(const std::string& name) const {
  CG_TRY(const TensorInfo* info, tensor(name));
  given_.tensors.insert(info->name);
  return "g." + GivenNames::tensor(info->name);
}

std::string PlanNames::count(const TensorInfo& tensor, size_t first_axis) const {
  std::string out = "INT64_C(1)";
  for (size_t axis = first_axis; axis < tensor.shape.size(); ++axis) {
    given_.sizes.emplace(tensor.name, axis);
    out += " * g." + GivenNames::size(tensor.name, axis);
  }
  return "(" + out + ")";
}

Result<std::string> PlanNames::scalar_text(const std::vector<ScalarInfo>& known,
                                           std::set<std::string>& used,
                                           const std::string& name) const {
  for (const ScalarInfo& s : known)
    if (s.name == name) {
      used.insert(name);
      return "g." + GivenNames::scalar(name);
    }
  return user_error("the task has no scalar '" + name + "'");
}

Result<std::string> PlanNames::leaf_text(const ExprLeaf& leaf) const {
  using Kind = ExprLeaf::Kind;
  switch (leaf.kind) {
    case Kind::symbol:
      return leaf.name == "gpu.sms" ? std::string("multiprocessors()") : "s_" + leaf.name;
    case Kind::attribute:
      return scalar_text(task_.attributes, given_.attributes, leaf.name);
    case Kind::argument:
      return scalar_text(task_.arguments, given_.arguments, leaf.name);
    case Kind::constant:
      return "k_" + leaf.name;
    case Kind::occupancy:
      return unsupported_error("the plan uses occupancy(" + leaf.name +
                                   "), which the launcher does not compute; --to torch and cpp do",
                               "plan.json");
    case Kind::dim:
    case Kind::stride:
    case Kind::size:
      break;
  }
  CG_TRY(const TensorInfo* info, tensor(leaf.name));
  if (leaf.kind == Kind::size) return count(*info, 0);
  CG_TRY(size_t axis, axis_of(*info, leaf.axis));
  if (leaf.kind == Kind::stride) return count(*info, axis + 1);
  given_.sizes.emplace(info->name, axis);
  return "g." + GivenNames::size(info->name, axis);
}

Result<std::string> PlanNames::cpp(const Expr& expression) const {
  return cpp_text(expression, [this](const ExprLeaf& leaf) { return leaf_text(leaf); });
}

Result<std::string> PlanNames::three(const std::array<Expr, 3>& expressions) const {
  std::string out;
  for (const Expr& e : expressions) {
    CG_TRY(std::string value, cpp(e));
    out += (out.empty() ? "" : ", ") + value;
  }
  return "{" + out + "}";
}

std::vector<const SourceModule*> PlanModules::of(const std::string& source) const {
  std::vector<const SourceModule*> out;
  for (const SourceModule& m : modules_)
    if (m.build.source == source) out.push_back(&m);
  return out;
}

std::string PlanModules::chooser(const std::string& source) const {
  auto at = std::ranges::find(plan_.sources, source);
  return fmt::format("module_{}", at - plan_.sources.begin());
}

Result<std::string> PlanModules::choice(const PlanNames& names) const {
  std::string out;
  for (const auto& [name, expression] : plan_.defines) {
    CG_TRY(std::string value, names.cpp(expression));
    out += fmt::format("  [[maybe_unused]] const auto define_{} = {};\n", name, value);
  }
  for (const std::string& source : plan_.sources) {
    const std::string variable = chooser(source);
    out += fmt::format("  int {} = -1;\n", variable);
    const auto all = of(source);
    for (size_t i = 0; i < all.size(); ++i) {
      std::string holds;
      for (const auto& [name, value] : all[i]->build.defines)
        if (value.find('f') == std::string::npos)
          holds += fmt::format("{}define_{} == {}", holds.empty() ? "" : " && ", name,
                               define_number(value));
        else
          holds +=
              fmt::format("{}float(define_{}) == {}", holds.empty() ? "" : " && ", name, value);
      out += fmt::format("  {}if ({}) {} = {};\n", i ? "else " : "", holds.empty() ? "true" : holds,
                         variable, i);
    }
    out += fmt::format("  if ({} < 0) return cudaSuccess;\n", variable);
  }
  return out;
}

std::string PlanModules::constants() const {
  std::string out;
  std::set<std::string> done;
  for (const std::string& source : plan_.sources) {
    std::map<std::string, std::string> values;
    const auto all = of(source);
    for (size_t i = 0; i < all.size(); ++i)
      for (const auto& [name, value] : all[i]->facts.constants)
        values[name] += fmt::format("{} == {} ? INT64_C({}) : ", chooser(source), i, value);
    for (const auto& [name, text] : values)
      if (done.insert(name).second)
        out += fmt::format("  [[maybe_unused]] const int64_t k_{} = {}INT64_C(0);\n", name, text);
  }
  return out;
}

Result<std::string> PlanModules::kernel(const std::string& name) const {
  for (const std::string& source : plan_.sources) {
    const auto all = of(source);
    if (all.empty() || std::ranges::find(all[0]->facts.entries, name, &EntryFacts::name) ==
                           all[0]->facts.entries.end())
      continue;
    std::string out;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i + 1 < all.size()) out += fmt::format("{} == {} ? ", chooser(source), i);
      out += fmt::format("reinterpret_cast<const void*>(&{}){}", all[i]->kernel(name),
                         i + 1 < all.size() ? " : " : "");
    }
    return out;
  }
  return user_error("no exported module has the kernel '" + name + "'");
}

const ScratchSpec* PlanWriter::scratch_of(const std::string& name) const {
  auto at = std::ranges::find(plan_.scratch, name, &ScratchSpec::name);
  return at == plan_.scratch.end() ? nullptr : &*at;
}

Result<std::string> PlanWriter::symbols(bool late) {
  std::string out;
  std::set<std::string> after;
  for (const auto& [name, expression] : plan_.symbols) {
    if (needs_modules(expression, after)) after.insert(name);
    if (after.contains(name) != late) continue;
    CG_TRY(std::string value, names_.cpp(expression));
    out += fmt::format("  [[maybe_unused]] const auto s_{} = {};\n", name, value);
  }
  return out;
}

Result<std::string> PlanWriter::conditions() const {
  std::string out;
  if (demanded_) out = fmt::format("  if (!{}) return cudaSuccess;\n", *demanded_);
  for (const Expr& e : plan_.requires_) {
    CG_TRY(std::string value, names_.cpp(e));
    out += fmt::format("  if (!({})) return cudaSuccess;\n", value);
  }
  return out;
}

Result<std::string> PlanWriter::scratch() const {
  if (plan_.scratch.empty()) return std::string();
  std::string out = "  int64_t scratch_bytes = 0;\n", zeros;
  for (const ScratchSpec& s : plan_.scratch) {
    std::string count = "INT64_C(1)";
    for (const Expr& e : s.shape) {
      CG_TRY(std::string size, names_.cpp(e));
      count += " * " + size;
    }
    out += fmt::format(
        "  const int64_t count_{0} = {1}, at_{0} = scratch_bytes;\n"
        "  scratch_bytes += aligned(count_{0} * {2});\n",
        s.name, count, size_of(s.dtype));
    if (s.zero)
      zeros += fmt::format(
          "  if (cudaError_t bad = cudaMemsetAsync(scratch.base + at_{0}, 0, size_t(count_{0} * "
          "{1}), stream)) return bad;\n",
          s.name, size_of(s.dtype));
  }
  return out +
         "  Scratch scratch(stream);\n"
         "  if (cudaError_t bad = cudaMallocAsync(reinterpret_cast<void**>(&scratch.base), "
         "size_t(most(scratch_bytes, INT64_C(1))), stream)) return bad;\n" +
         zeros;
}

Result<std::string> PlanWriter::pointer(const std::string& buffer) const {
  if (scratch_of(buffer)) return "static_cast<void*>(scratch.base + at_" + buffer + ")";
  return names_.pointer(buffer);
}

Result<std::string> PlanWriter::argument(const ArgSpec& arg, size_t number) const {
  if (arg.kind == ArgSpec::Kind::map)
    return unsupported_error("the plan uses the tensor map '" + arg.name +
                                 "', which the launcher does not encode; --to torch and cpp do",
                             "plan.json");
  if (arg.kind == ArgSpec::Kind::tensor) {
    CG_TRY(std::string at, pointer(arg.name));
    return fmt::format("    void* const a{} = {};\n", number, at);
  }
  CG_TRY(std::string value, names_.cpp(arg.value));
  const char* type = number_type(arg.kind);
  return fmt::format("    const {0} a{1} = static_cast<{0}>({2});\n", type, number, value);
}

Result<std::string> PlanWriter::launch(const Step& step, bool first) const {
  std::string out, all;
  for (size_t i = 0; i < step.args.size(); ++i) {
    CG_TRY(std::string one, argument(step.args[i], i));
    out += one;
    all += fmt::format("{}&a{}", i ? ", " : "", i);
  }
  CG_TRY(std::string kernel, modules_.kernel(step.kernel));
  CG_TRY(std::string grid, names_.three(step.grid));
  CG_TRY(std::string block, names_.three(step.block));
  CG_TRY(std::string cluster, names_.three(step.cluster));
  CG_TRY(std::string shared, names_.cpp(step.shared_bytes));
  return out + fmt::format(
                   "    const void* arguments[] = {{{}}};\n"
                   "    const Launch l{{{}, {}, {}, {}, {}, {}}};\n"
                   "    if (cudaError_t bad = queue({}, l, arguments, stream)) return bad;\n",
                   all.empty() ? "nullptr" : all, grid, block, cluster, shared, step.cooperative,
                   step.pdl && !first, kernel);
}

Result<std::string> PlanWriter::fill(const std::string& buffer, double value) const {
  CG_TRY(std::string at, pointer(buffer));
  DType dtype = DType::u8;
  std::string count;
  if (const ScratchSpec* s = scratch_of(buffer)) {
    dtype = s->dtype;
    count = "count_" + buffer;
  } else {
    CG_TRY(const TensorInfo* tensor, names_.tensor(buffer));
    dtype = tensor->dtype;
    count = names_.count(*tensor, 0);
  }
  std::byte pattern[8] = {};
  const size_t bytes = size_of(dtype);
  CG_CHECK(device::fill_bytes(std::span(pattern, bytes), dtype, value));
  uint64_t bits = 0;
  std::memcpy(&bits, pattern, bytes);
  return fmt::format(
      "    if (cudaError_t bad = fill<uint{}_t>({}, UINT64_C({}), {}, stream)) return bad;\n",
      8 * bytes, at, bits, count);
}

Result<std::string> PlanWriter::steps(const std::vector<Step>& list, bool first) const {
  std::string out;
  for (const Step& s : list) {
    std::string when;
    if (s.when) {
      CG_TRY(std::string value, names_.cpp(*s.when));
      when = fmt::format("if ({}) ", value);
    }
    CG_TRY(std::string body, s.is_fill ? fill(s.fill_tensor, s.fill_value) : launch(s, first));
    out += fmt::format("  {}{{  // {}\n{}  }}\n", when, s.id, body);
    first = false;
  }
  return out;
}

Result<std::string> PlanWriter::text() {
  CG_TRY(std::string early, symbols(false));
  CG_TRY(std::string holds, conditions());
  CG_TRY(std::string modules, modules_.choice(names_));
  CG_TRY(std::string late, symbols(true));
  CG_TRY(std::string memory, scratch());
  CG_TRY(std::string prepare, steps(plan_.prepare, true));
  CG_TRY(std::string own, steps(plan_.steps, plan_.prepare.empty()));
  return fmt::format("inline cudaError_t {}(const Given& g, cudaStream_t stream, bool& taken) {{\n",
                     function_) +
         early + holds + modules + modules_.constants() + late + "  taken = true;\n" + memory +
         prepare + own + "  return cudaSuccess;\n}\n";
}

}  // namespace cutegen::exporter
