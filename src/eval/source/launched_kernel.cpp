// SPDX-License-Identifier: Apache-2.0
#include "eval/source/launched_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "eval/source/device_source.h"
#include "eval/source/kernel_parameter.h"
#include "eval/source/launcher.h"

namespace cutegen::eval {
namespace {

using Kind = HostValue::Kind;

constexpr const char* kArgs = "/steps/0/args";
constexpr const char* kReplace =
    "write the launch into [kernel] of the side file instead: name, args, grid, block";

const char* scalar_key(DType dtype) {
  switch (dtype) {
    case DType::i32:
    case DType::u32:
    case DType::i64:
    case DType::f32:
    case DType::f64:
      return to_string(dtype);
    default:
      return nullptr;
  }
}

Error with_remedy(Error error, const std::string& remedy) {
  if (error.remedy.empty()) error.remedy = remedy;
  return error;
}

// What the launcher's parameters stand for: the entries of `args`, or their own names.
class LauncherArguments {
 public:
  LauncherArguments(const KernelSide& side, const Task& task, std::string file)
      : side_(side), task_(task), file_(std::move(file)) {}

  const TensorInfo* tensor(const std::string& name) const {
    const Json bind = side_.plan.value("bind", Json::object());
    const bool bound = bind.is_object() && bind.contains(name) && bind[name].is_string();
    return task_.find(bound ? bind[name].get<std::string>() : name);
  }

  Result<void> bind(const SourceOutline& outline, LauncherQuery& query) const {
    std::vector<LauncherParameterText> wanted;
    std::vector<std::string> texts;
    for (LauncherParameterText& p : launcher_parameters(outline, *query.function)) {
      if (p.is_stream) {
        query.parameters[p.name] = host_unreadable(
            {.kind = ErrorKind::user, .message = "this is a stream", .where = at(p.at)});
        continue;
      }
      texts.push_back(p.type + " " + p.name);
      wanted.push_back(std::move(p));
    }
    const Json& args = side_.launcher_args;
    if (args.is_null()) {
      for (const LauncherParameterText& p : wanted) query.parameters[p.name] = named_alike(p);
      return {};
    }
    if (args.size() != wanted.size())
      return user_error(fmt::format("the launcher '{}' has {} parameter{}, the side file gives {}",
                                    query.function->name, wanted.size(),
                                    wanted.size() == 1 ? "" : "s", args.size()),
                        side_.place(kArgs), "give them in order: " + join(texts, ", "));
    for (size_t i = 0; i < wanted.size(); ++i) {
      CG_TRY(query.parameters[wanted[i].name], given(wanted[i], args[i], i));
    }
    return {};
  }

 private:
  std::string at(const Token& token) const {
    return fmt::format("{}:{}:{}", file_, token.line, token.column);
  }

  // A parameter without an entry is the tensor, attribute or argument of its name.
  HostValue named_alike(const LauncherParameterText& p) const {
    if (p.is_tensor || p.is_pointer) {
      if (const TensorInfo* info = tensor(p.name)) return tensor_value(p, info->name);
    } else {
      for (const auto& [function, list] :
           {std::pair{"attr", &task_.attributes}, std::pair{"arg", &task_.arguments}})
        for (const ScalarInfo& s : *list)
          if (s.name == p.name)
            return number(fmt::format("{}({})", function, s.name),
                          std::holds_alternative<double>(s.value));
    }
    return host_unreadable(
        {.kind = ErrorKind::user,
         .message = fmt::format("the task has nothing named '{}'", p.name),
         .where = at(p.at),
         .remedy = "list what the launcher's parameters are: args = [...] in [kernel]"});
  }

  static HostValue tensor_value(const LauncherParameterText& p, const std::string& name) {
    HostValue out{.kind = p.is_pointer ? Kind::pointer : Kind::tensor};
    out.tensor = name;
    return out;
  }

  static HostValue number(const std::string& text, bool real) {
    HostValue out = plan_value(text);
    if (real) out.kind = Kind::real, out.number.reset();
    return out;
  }

  Result<HostValue> given(const LauncherParameterText& p, const Json& arg, size_t i) const {
    const std::string where = side_.place(fmt::format("{}/{}", kArgs, i));
    const std::string remedy =
        fmt::format("parameter {} of '{}' is '{} {}'", i + 1, side_.launcher, p.type, p.name);
    const bool wants_tensor = p.is_tensor || p.is_pointer;
    if (!arg.is_object() || arg.size() != 1)
      return user_error("an argument is a tensor's name or one number", where, remedy);
    const auto& [key, value] = *arg.items().begin();
    if (key == "tensor" && value.is_string()) {
      const auto name = value.get<std::string>();
      if (!tensor(name))
        return user_error(fmt::format("the task has no tensor '{}'", name), where, remedy);
      if (!wants_tensor)
        return user_error(
            fmt::format("'{}' is a tensor, the launcher's parameter is a value", name), where,
            remedy);
      return tensor_value(p, name);
    }
    auto parsed = Expr::from_json(value, where);
    if (!parsed) return fail(with_remedy(parsed.error(), remedy));
    if (wants_tensor)
      return user_error(
          fmt::format("{} is a number, the launcher's parameter is a tensor", parsed->text()),
          where, remedy);
    const auto dtype = dtype_from_name(key);
    if (!dtype || !scalar_key(*dtype))
      return user_error(fmt::format("'{}' is no kind of a number", sanitize(key, 40)), where,
                        "one of i32, u32, i64, f32, f64");
    return number(parsed->text(), is_floating(*dtype));
  }

  const KernelSide& side_;
  const Task& task_;
  const std::string file_;
};

class LaunchedKernel {
 public:
  LaunchedKernel(KernelSide& side, const Task& task, std::string file, const std::string& text)
      : side_(side),
        task_(task),
        file_(std::move(file)),
        text_(text),
        outline_(outline_of(text)),
        arguments_(side, task, file_) {}

  Result<std::string> run() {
    CG_TRY(const SourceFunction* function, find());
    HostContext context{.outline = outline_, .file = file_, .tensor = [this](const auto& name) {
                          return arguments_.tensor(name);
                        }};
    if (const Json& defines = side_.plan.value("defines", Json::object()); defines.is_object())
      for (const auto& [name, value] : defines.items()) context.defines[name] = text_of(value);
    LauncherQuery query{.function = function};
    CG_CHECK(arguments_.bind(outline_, query));
    for (const TensorInfo* output : task_.with_role(TensorRole::output))
      query.outputs.push_back(output->name);
    auto launch = read_launcher(context, query);
    if (!launch) return fail(with_remedy(launch.error(), kReplace));
    CG_CHECK(write_plan(*launch));
    auto source = device_source(text_, outline_, *launch, file_);
    if (!source) return fail(with_remedy(source.error(), kReplace));
    return source;
  }

 private:
  static std::string text_of(const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  }

  std::string at(const Token& token) const {
    return fmt::format("{}:{}:{}", file_, token.line, token.column);
  }

  Result<const SourceFunction*> find() const {
    const std::string& name = side_.launcher;
    const auto found = outline_.defined(name);
    std::vector<std::string> known;
    for (const SourceFunction& f : outline_.functions)
      if (f.body != 0 && !f.device && !f.global) known.push_back(f.name);
    if (found.empty()) {
      const auto near = nearest(name, known);
      return user_error(fmt::format("{} has no host function '{}'", file_, name),
                        side_.place("/launcher"),
                        near            ? "did you mean '" + *near + "'?"
                        : known.empty() ? "write the launch into the side file"
                                        : "its host functions: " + join(known, ", "));
    }
    const Token& first = outline_.tokens[found.front()->begin];
    if (found.size() > 1)
      return user_error(fmt::format("'{}' is defined more than once", name), at(first), kReplace);
    if (found.front()->device || found.front()->global)
      return user_error(fmt::format("'{}' is no host function", name), side_.place("/launcher"),
                        "name the host function that launches the kernel");
    if (found.front()->templated)
      return user_error(fmt::format("the launcher '{}' is a template", name), at(first), kReplace);
    return found.front();
  }

  Result<void> write_plan(const HostLaunch& launch) {
    Json& step = side_.plan["steps"][0];
    if (step.contains("kernel") && step["kernel"] != launch.kernel)
      return user_error(fmt::format("the launcher '{}' launches '{}', not '{}'", side_.launcher,
                                    launch.kernel, text_of(step["kernel"])),
                        side_.place("/steps/0/kernel"), "remove 'name' or correct it");
    step["kernel"] = launch.kernel;
    side_.source_places["/steps/0/kernel"] = at(launch.at);
    CG_CHECK(write_sizes("grid", launch.grid, launch.grid_at));
    CG_CHECK(write_sizes("block", launch.block, launch.block_at));
    if (!step.contains("shared_bytes") && launch.shared.text != "0") {
      CG_TRY(step["shared_bytes"], number_json(launch.shared, launch.at, own_key("shared_bytes")));
      side_.source_places["/steps/0/shared_bytes"] = at(launch.at);
    }
    CG_CHECK(write_arguments(launch));
    Json& conditions = side_.plan["requires"];
    if (conditions.is_null()) conditions = Json::array();
    for (const HostValue& condition : launch.conditions) {
      side_.source_places[fmt::format("/requires/{}", conditions.size())] = at(launch.at);
      conditions.push_back(condition.text);
    }
    if (conditions.empty()) side_.plan.erase("requires");
    return {};
  }

  static std::string own_key(const char* key) {
    return fmt::format("write {} = \"...\" into [kernel] of the side file", key);
  }

  Result<Json> number_json(const HostValue& value, const Token& token,
                           const std::string& remedy) const {
    if (value.kind == Kind::unreadable) return fail(with_remedy(value.why, remedy));
    if (value.kind != Kind::integer) return user_error("this is no integer", at(token), remedy);
    return value.number ? Json(*value.number) : Json(value.text);
  }

  Result<void> write_sizes(const char* key, const HostValue& value, const Token& token) {
    Json& step = side_.plan["steps"][0];
    if (step.contains(key)) return {};
    if (value.kind == Kind::unreadable) return fail(with_remedy(value.why, own_key(key)));
    if (value.kind != Kind::sizes)
      return user_error(fmt::format("the {} is no dim3", key), at(token), own_key(key));
    Json sizes = Json::array();
    for (const HostValue& one : value.sizes) {
      CG_TRY(Json number, number_json(one, token, own_key(key)));
      sizes.push_back(std::move(number));
    }
    step[key] = std::move(sizes);
    side_.source_places[fmt::format("/steps/0/{}", key)] = at(token);
    return {};
  }

  Result<void> write_arguments(const HostLaunch& launch) {
    const auto kernels = kernel_signatures(scan_source(text_));
    const auto kernel = std::ranges::find(kernels, launch.kernel, &Signature::name);
    if (kernel == kernels.end())
      return user_error(fmt::format("{} has no kernel '{}'", file_, launch.kernel), at(launch.at),
                        "copy the kernel into this file");
    if (kernel->parameters.size() != launch.arguments.size())
      return user_error(
          fmt::format("the kernel '{}' has {} parameters, the launch gives {}", kernel->name,
                      kernel->parameters.size(), launch.arguments.size()),
          at(launch.at), kReplace);
    Json args = Json::array();
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      CG_TRY(Json one, argument(launch.arguments[i], kernel->parameters[i], launch.argument_at[i]));
      side_.source_places[fmt::format("{}/{}", kArgs, i)] = at(launch.argument_at[i]);
      args.push_back(std::move(one));
    }
    side_.source_places[kArgs] = at(launch.at);
    side_.plan["steps"][0]["args"] = std::move(args);
    return {};
  }

  Result<Json> argument(const HostValue& value, const std::string& parameter,
                        const Token& token) const {
    if (value.kind == Kind::unreadable) return fail(with_remedy(value.why, kReplace));
    if (value.kind == Kind::pointer) return Json{{"tensor", value.tensor}};
    if (value.kind != Kind::integer && value.kind != Kind::real)
      return user_error("cutegen passes only tensors' pointers and numbers to a kernel", at(token),
                        kReplace);
    const auto dtype = dtype_of(parameter_of(parameter).type);
    const char* key = dtype ? scalar_key(*dtype) : nullptr;
    if (!key || parameter_of(parameter).pointers > 0)
      return user_error(
          fmt::format("cutegen cannot pass a number to the parameter '{}'", parameter), at(token),
          "numbers are int, unsigned, long long, float or double");
    if (value.kind == Kind::real && !is_floating(*dtype))
      return user_error(fmt::format("{} is floating point, the kernel's parameter is '{}'",
                                    value.text, parameter),
                        at(token), kReplace);
    return Json{{key, value.number ? Json(*value.number) : Json(value.text)}};
  }

  KernelSide& side_;
  const Task& task_;
  const std::string file_;
  const std::string& text_;
  const SourceOutline outline_;
  const LauncherArguments arguments_;
};

}  // namespace

Result<std::string> read_launched_kernel(KernelSide& side, const Task& task,
                                         const std::filesystem::path& kernel,
                                         const std::string& text) {
  return LaunchedKernel(side, task, kernel.string(), text).run();
}

}  // namespace cutegen::eval
