// SPDX-License-Identifier: Apache-2.0
// A plan's values for one shape on one device: modules to compile, then launches with numbers.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/launch_limits.h"
#include "core/plan_scope.h"
#include "core/program.h"

namespace cutegen {
namespace {

constexpr int64_t kMaxScratchBytes = int64_t{64} << 30;
constexpr size_t kTensorMapBytes = 128;

// Adds the place to an error that names none.
template <class T>
Result<T> placed(Result<T> result, const std::string& where) {
  if (!result && result.error().where.empty()) result.error().where = where;
  return result;
}

Result<bool> holds(const Expr& e, const PlanScope& scope) {
  CG_TRY(Number value, e.evaluate(scope));
  return std::visit([](auto v) { return v != 0; }, value);
}

Result<void> check_requires(const Plan& plan, const ShapeCase& shape, const PlanScope& scope) {
  for (size_t i = 0; i < plan.requires_.size(); ++i) {
    const Expr& e = plan.requires_[i];
    std::string where = fmt::format("plan.json#/requires/{}", i);
    CG_TRY(bool ok, placed(holds(e, scope), where));
    if (ok) continue;
    std::string values = scope.values_of(e);
    return unsupported_error(fmt::format("shape '{}' does not meet '{}'{}", shape.name, e.text(),
                                         values.empty() ? "" : " (" + values + ")"),
                             where);
  }
  return {};
}

Result<std::string> define_text(const Number& value) {
  if (const int64_t* i = std::get_if<int64_t>(&value)) return std::to_string(*i);
  double d = std::get<double>(value);
  if (std::isnan(d)) return user_error("a define must not be NaN");
  if (std::isinf(d))  // NVRTC has no builtin for infinity
    return std::string(d > 0 ? "" : "-") + "__builtin_bit_cast(float,0x7f800000)";
  std::string text = fmt::format("{}", float(d));
  if (!std::isfinite(float(d))) return user_error("the value does not fit in a float");
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + "f";
}

Result<int64_t> scratch_bytes(const ScratchSpec& s, const PlanScope& scope) {
  Shape shape;
  for (const Expr& e : s.shape) {
    CG_TRY(int64_t n, e.integer(scope));
    shape.push_back(n);
  }
  CG_TRY(int64_t count, element_count(shape));
  int64_t bytes = 0;
  if (__builtin_mul_overflow(count, int64_t(size_of(s.dtype)), &bytes))
    return user_error("scratch '" + s.name + "' overflows");
  return bytes;
}

Result<std::vector<ScratchBuffer>> resolve_scratch(const Plan& plan, const PlanScope& scope) {
  std::vector<ScratchBuffer> out;
  int64_t total = 0;
  for (size_t i = 0; i < plan.scratch.size(); ++i) {
    const ScratchSpec& s = plan.scratch[i];
    std::string where = fmt::format("plan.json#/scratch/{}/shape", i);
    ScratchBuffer buffer{
        .name = s.name, .bytes = 0, .zero = s.zero, .weights_life = s.weights_life};
    CG_TRY(buffer.bytes, placed(scratch_bytes(s, scope), where));
    if (buffer.bytes > kMaxScratchBytes - total)
      return user_error(
          fmt::format("scratch '{}' of {} takes the total over the limit of {}", s.name,
                      human(Bytes{buffer.bytes}), human(Bytes{kMaxScratchBytes})),
          where);
    total += buffer.bytes;
    out.push_back(std::move(buffer));
  }
  return out;
}

// Accepts the name of a tensor of the task or of a scratch buffer.
Result<void> check_buffer(const PlanContext& context, const PlanScope& scope,
                          const std::string& name, const std::string& where) {
  std::vector<std::string> known;
  known.reserve(context.plan.scratch.size());
  for (const ScratchSpec& s : context.plan.scratch) known.push_back(s.name);
  for (const auto& [alias, target] : context.plan.bind) known.push_back(alias);
  for (const auto& [tensor, shape] : context.shape.tensors) known.push_back(tensor);
  const std::string real = scope.task_name(name);
  bool scratch = false;
  for (const ScratchSpec& s : context.plan.scratch) scratch = scratch || s.name == real;
  if (scratch || context.shape.tensors.contains(real)) return {};
  auto near = nearest(name, known);
  return user_error("neither the task nor the scratch has '" + name + "'", where,
                    near ? "did you mean '" + *near + "'?" : "");
}

DType dtype_of(const PlanContext& context, const std::string& name) {
  if (const TensorInfo* tensor = context.task.find(name)) return tensor->dtype;
  for (const ScratchSpec& s : context.plan.scratch) {
    if (s.name == name) return s.dtype;
  }
  return DType::f32;
}

Result<const EntryFacts*> find_entry(const std::vector<ModuleFacts>& facts,
                                     const std::string& kernel, const std::string& where,
                                     size_t& module) {
  const EntryFacts* found = nullptr;
  std::vector<std::string> known;
  for (size_t m = 0; m < facts.size(); ++m)
    for (const EntryFacts& e : facts[m].entries) {
      known.push_back(e.name);
      if (e.name != kernel) continue;
      if (found)
        return user_error("two sources define the kernel '" + kernel + "'", where,
                          "give them different names");
      found = &e;
      module = m;
    }
  if (found) return found;
  auto near = nearest(kernel, known);
  std::string remedy = near ? "did you mean '" + *near + "'?"
                       : known.empty()
                           ? "declare it extern \"C\" __global__"
                           : "the sources define " + fmt::format("{}", fmt::join(known, ", "));
  return user_error("no kernel '" + kernel + "' in the sources", where, remedy);
}

template <class T>
LaunchArg value_arg(T value) {
  LaunchArg out;
  out.bytes.resize(sizeof value);
  std::memcpy(out.bytes.data(), &value, sizeof value);
  return out;
}

// Resolves the arguments of kernels of one module.
class Arguments {
 public:
  Arguments(const PlanContext& context, const PlanScope& scope, const ModuleFacts& module)
      : context_(context), scope_(scope), module_(module) {}

  Result<LaunchArg> resolve(const ArgSpec& a, const std::string& where) const {
    switch (a.kind) {
      case ArgSpec::Kind::tensor:
        CG_CHECK(check_buffer(context_, scope_, a.name, where));
        return LaunchArg{.buffer = scope_.task_name(a.name), .bytes = {}};
      case ArgSpec::Kind::map:
        return tensor_map(a.name);
      case ArgSpec::Kind::i32:
        return integer<int32_t>(a.value, "an i32");
      case ArgSpec::Kind::u32:
        return integer<uint32_t>(a.value, "a u32");
      case ArgSpec::Kind::i64:
        return integer<int64_t>(a.value, "an i64");
      case ArgSpec::Kind::f32:
        return real<float>(a.value);
      case ArgSpec::Kind::f64:
        return real<double>(a.value);
    }
    CG_ASSERT(false);
    return LaunchArg{};
  }

 private:
  template <class T>
  Result<LaunchArg> integer(const Expr& e, const char* type) const {
    CG_TRY(int64_t value, e.integer(scope_));
    if (!std::in_range<T>(value))
      return user_error(fmt::format("'{}' is {}, which does not fit in {}", e.text(), value, type));
    return value_arg(T(value));
  }

  template <class T>
  Result<LaunchArg> real(const Expr& e) const {
    CG_TRY(Number value, e.evaluate(scope_));
    double d = std::visit([](auto v) { return double(v); }, value);
    T narrow = T(d);
    if (std::isfinite(d) && !std::isfinite(narrow))
      return user_error(fmt::format("'{}' is {}, which does not fit", e.text(), d));
    return value_arg(narrow);
  }

  Result<LaunchArg> tensor_map(const std::string& name) const {
    for (size_t i = 0; i < context_.plan.tensor_maps.size(); ++i) {
      const TensorMapSpec& m = context_.plan.tensor_maps[i];
      if (m.name != name) continue;
      std::string where = "plan.json#/tensor_maps/" + name;
      CG_CHECK(check_buffer(context_, scope_, m.tensor, where + "/tensor"));
      auto spec = module_.tma_specs.find(m.spec);
      if (spec == module_.tma_specs.end())
        return unsupported_error(fmt::format("tensor maps are not available on {} (no spec '{}' in "
                                             "the module)",
                                             context_.device.name, m.spec),
                                 where + "/spec");
      return placed(describe_map(m, spec->second), where);
    }
    return user_error("no tensor map '" + name + "'", {}, "define it in 'tensor_maps'");
  }

  Result<void> describe_pixels(const Im2colSpec& m, std::vector<int64_t>& words) const {
    for (const auto* list : {&m.lower, &m.upper, &m.steps})
      for (const Expr& e : *list) {
        CG_TRY(int64_t n, e.integer(scope_));
        words.push_back(n);
      }
    if (m.steps.empty()) words.insert(words.end(), m.lower.size(), 1);
    return {};
  }

  Result<LaunchArg> describe_map(const TensorMapSpec& m, const std::vector<uint32_t>& spec) const {
    std::vector<int64_t> words{int64_t(m.dims.size())};
    for (const Expr& e : m.dims) {
      CG_TRY(int64_t n, e.integer(scope_));
      if (n <= 0) return user_error(fmt::format("dim '{}' is {}", e.text(), n));
      words.push_back(n);
    }
    for (const Expr& e : m.strides) {
      CG_TRY(int64_t n, e.integer(scope_));
      if (n <= 0) return user_error(fmt::format("stride '{}' is {}", e.text(), n));
      words.push_back(n);
    }
    words.insert(words.end(), spec.begin(), spec.end());
    if (m.im2col) CG_CHECK(describe_pixels(*m.im2col, words));
    LaunchArg out{.buffer = scope_.task_name(m.tensor), .bytes = {}};
    out.bytes.resize(words.size() * sizeof(int64_t));
    std::memcpy(out.bytes.data(), words.data(), out.bytes.size());
    return out;
  }

  const PlanContext& context_;
  const PlanScope& scope_;
  const ModuleFacts& module_;
};

// Resolves the steps of a plan. Each call of resolve_plan uses its own instance.
class Resolver {
 public:
  Resolver(PlanContext context, const std::vector<ModuleFacts>& facts)
      : context_(context), facts_(facts), scope_(context, &facts) {}

  Result<ResolvedPlan> run() {
    const Plan& plan = context_.plan;
    CG_CHECK(check_requires(plan, context_.shape, scope_));
    ResolvedPlan out;
    CG_TRY(out.scratch, resolve_scratch(plan, scope_));
    CG_TRY(out.prepare, steps(plan.prepare, "prepare"));
    CG_TRY(out.steps, steps(plan.steps, "steps"));
    return out;
  }

 private:
  using Steps = std::vector<std::variant<Launch, Fill>>;

  Result<Steps> steps(const std::vector<Step>& list, const char* key) {
    Steps out;
    for (size_t i = 0; i < list.size(); ++i) {
      const Step& s = list[i];
      where_ = fmt::format("plan.json#/{}/{}", key, i);
      if (s.when) {
        CG_TRY(bool wanted, placed(holds(*s.when, scope_), where_ + "/when"));
        if (!wanted) continue;
      }
      if (s.is_fill) {
        CG_CHECK(check_buffer(context_, scope_, s.fill_tensor, where_ + "/fill"));
        const std::string name = scope_.task_name(s.fill_tensor);
        out.emplace_back(Fill{.step = s.id,
                              .buffer = name,
                              .value = s.fill_value,
                              .dtype = dtype_of(context_, name)});
      } else {
        CG_TRY(Launch launch, this->launch(s));
        out.emplace_back(std::move(launch));
      }
    }
    return out;
  }

  Result<Launch> launch(const Step& s) {
    Launch out{.step = s.id, .kernel = s.kernel, .cooperative = s.cooperative, .pdl = s.pdl};
    CG_TRY(const EntryFacts* entry, find_entry(facts_, s.kernel, where_ + "/kernel", out.module));
    CG_TRY(out.grid, triple(s.grid, "grid"));
    CG_TRY(out.block, triple(s.block, "block"));
    CG_TRY(out.cluster, triple(s.cluster, "cluster"));
    CG_TRY(out.shared_bytes, placed(s.shared_bytes.integer(scope_), where_ + "/shared_bytes"));
    CG_CHECK(check_launch(out, *entry, context_.device, where_));
    CG_TRY(out.args, arguments(s, *entry, out.module));
    return out;
  }

  Result<std::array<int64_t, 3>> triple(const std::array<Expr, 3>& exprs, const char* key) const {
    std::array<int64_t, 3> out{};
    for (size_t i = 0; i < 3; ++i) {
      std::string where = fmt::format("{}/{}/{}", where_, key, i);
      CG_TRY(out[i], placed(exprs[i].integer(scope_), where));
      if (out[i] <= 0)
        return user_error(fmt::format("{} of {} ('{}') at shape '{}'", key, out[i], exprs[i].text(),
                                      context_.shape.name),
                          where,
                          "it must be positive; skip an empty step with \"when\": \"... > 0\"");
    }
    return out;
  }

  Result<std::vector<LaunchArg>> arguments(const Step& s, const EntryFacts& entry, size_t module) {
    if (s.args.size() != entry.params.size())
      return user_error(fmt::format("'{}' takes {} argument(s), the plan gives {}", s.kernel,
                                    entry.params.size(), s.args.size()),
                        where_ + "/args");
    const Arguments arguments(context_, scope_, facts_[module]);
    std::vector<LaunchArg> out;
    for (size_t i = 0; i < s.args.size(); ++i) {
      std::string where = fmt::format("{}/args/{}", where_, i);
      CG_TRY(LaunchArg arg, placed(arguments.resolve(s.args[i], where), where));
      bool map = s.args[i].kind == ArgSpec::Kind::map;
      size_t size = map ? kTensorMapBytes : arg.buffer.empty() ? arg.bytes.size() : 8;
      if (size != entry.params[i].size)
        return user_error(fmt::format("argument {} of '{}' has {} bytes, the plan gives {}", i,
                                      s.kernel, entry.params[i].size, size),
                          where, "check the type and the order of the arguments");
      out.push_back(std::move(arg));
    }
    return out;
  }

  PlanContext context_;
  const std::vector<ModuleFacts>& facts_;
  PlanScope scope_;
  std::string where_;  // the current step
};

// "sm_90a" -> 90
int arch_number(const std::string& arch) {
  int n = 0;
  for (size_t i = 3; i < arch.size() && arch[i] >= '0' && arch[i] <= '9' && n < 10'000; ++i)
    n = 10 * n + (arch[i] - '0');
  return n;
}

}  // namespace

std::string ModuleBuild::key() const {
  std::string out = source;
  for (const auto& [name, value] : defines) out.append("|").append(name).append("=").append(value);
  return out;
}

Result<std::vector<ModuleBuild>> module_builds(const KernelProgram& program, const Task& task,
                                               const ShapeCase& shape, const DeviceFacts& device) {
  const Plan& plan = program.plan;
  PlanScope scope({.plan = plan, .task = task, .shape = shape, .device = device}, nullptr);
  CG_CHECK(check_requires(plan, shape, scope));
  std::vector<std::pair<std::string, std::string>> defines;
  for (const auto& [name, e] : plan.defines) {
    std::string where = "plan.json#/defines/" + name;
    CG_TRY(Number value, placed(e.evaluate(scope), where));
    CG_TRY(std::string text, placed(define_text(value), where));
    defines.emplace_back(name, std::move(text));
  }
  std::vector<ModuleBuild> out;
  out.reserve(plan.sources.size());
  for (const std::string& source : plan.sources)
    out.push_back({.source = source, .defines = defines});
  return out;
}

Result<ResolvedPlan> resolve_plan(const KernelProgram& program, const Task& task,
                                  const ShapeCase& shape, const DeviceFacts& device,
                                  const std::vector<ModuleFacts>& facts) {
  CG_ASSERT(facts.size() == program.plan.sources.size());
  return Resolver({.plan = program.plan, .task = task, .shape = shape, .device = device}, facts)
      .run();
}

Result<std::string> choose_arch(const Plan& plan, const DeviceFacts& device) {
  std::string base = device.arch.substr(0, device.arch.find_last_of("0123456789") + 1);
  std::string wanted;
  for (const std::string& a : plan.arch) {
    if (a == device.arch || a == base) return a;
    if (a.ends_with("+") && arch_number(a) <= arch_number(device.arch)) return device.arch;
    wanted += (wanted.empty() ? "" : ", ") + a;
  }
  return unsupported_error(
      fmt::format("the plan is for {}; {} is {}", wanted, device.name, device.arch),
      "plan.json#/arch");
}

}  // namespace cutegen
