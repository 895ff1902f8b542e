// SPDX-License-Identifier: Apache-2.0
#include "eval/source/start_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/file.h"
#include "base/text.h"
#include "core/kernel_side.h"
#include "eval/source/kernel_parameter.h"
#include "eval/source/launched_kernel.h"
#include "eval/source/lint.h"

namespace cutegen::eval {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostSource = 1 << 20;

class Reader {
 public:
  Reader(fs::path kernel, KernelSide side, const Task& task)
      : kernel_(std::move(kernel)), side_(std::move(side)), task_(task) {}

  Result<KernelProgram> read() {
    CG_TRY(text_, read_file(kernel_, kMostSource));
    if (!side_.launcher.empty()) {
      CG_TRY(text_, read_launched_kernel(side_, task_, kernel_, text_));
    }
    auto plan = plan_from_json(side_.plan, "side");
    if (!plan) return fail(side_.placed(plan.error()));
    plan_ = std::move(*plan);
    CG_TRY(Signature kernel, find());
    CG_CHECK(check_parameters(kernel));
    if (auto wrong = check_plan(plan_, task_); !wrong.empty())
      return fail(side_.placed(wrong.front()));
    if (!kernel.external) CG_CHECK(declare_external(kernel));
    KernelProgram program;
    program.sources[kernel_.filename().string()] = text_;
    program.plan = std::move(plan_);
    CG_CHECK(check_policy(program));
    return program;
  }

 private:
  std::string at(int line, int column) const {
    return fmt::format("{}:{}:{}", kernel_.string(), line, column);
  }

  Result<Signature> find() const {
    const std::string name = side_.kernel();
    std::vector<std::string> known;
    for (Signature& s : kernel_signatures(scan_source(text_))) {
      if (s.name == name && s.templated)
        return user_error(fmt::format("'{}' is a template, and nothing says its arguments", name),
                          at(s.line, s.column),
                          "make it a __device__ function, and call it from an extern \"C\" "
                          "__global__ function with its types");
      if (s.name == name) return std::move(s);
      known.push_back(std::move(s.name));
    }
    const auto near = nearest(name, known);
    return user_error(fmt::format("{} has no kernel '{}'", kernel_.filename().string(), name),
                      side_.place("/steps/0/kernel"),
                      near            ? "did you mean '" + *near + "'?"
                      : known.empty() ? "declare it extern \"C\" __global__ void"
                                      : "its kernels: " + join(known, ", "));
  }

  Result<void> check_parameters(const Signature& kernel) const {
    const std::vector<ArgSpec>& args = plan_.steps.front().args;
    if (args.size() != kernel.parameters.size())
      return user_error(fmt::format("the kernel '{}' has {}, the side file gives {}", kernel.name,
                                    counted(kernel.parameters.size(), "parameter"),
                                    counted(args.size(), "argument")),
                        side_.place("/steps/0/args"),
                        "give them in order: " + join(kernel.parameters, ", "));
    for (size_t i = 0; i < args.size(); ++i)
      if (auto why = mismatch(args[i], kernel.parameters[i]); !why.empty())
        return user_error(why, side_.place(fmt::format("/steps/0/args/{}", i)),
                          fmt::format("parameter {} of '{}' at {} is '{}'", i + 1, kernel.name,
                                      at(kernel.line, kernel.column), kernel.parameters[i]));
    return {};
  }

  static std::string counted(size_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  }

  const TensorInfo* tensor(const std::string& name) const {
    for (const auto& [alias, target] : plan_.bind)
      if (alias == name) return task_.find(target);
    return task_.find(name);
  }

  // Why an argument does not fit its parameter. A type that cutegen does not know, such as uint4,
  // fits any tensor.
  std::string mismatch(const ArgSpec& arg, const std::string& text) const {
    const KernelParameter p = parameter_of(text);
    const auto known = dtype_of(p.type);
    if (const auto scalar = scalar_dtype(arg.kind)) {
      if (p.pointers > 0)
        return fmt::format("{} is a number, the kernel's parameter is a pointer", arg.value.text());
      if (known && *known != *scalar)
        return fmt::format("{} is {}, the kernel's parameter is {}", arg.value.text(),
                           to_string(*scalar), to_string(*known));
      return {};
    }
    if (arg.kind == ArgSpec::Kind::map) return {};
    if (p.pointers == 0)
      return fmt::format("'{}' is a tensor, the kernel's parameter is a value", arg.name);
    const TensorInfo* info = tensor(arg.name);
    if (!info) return {};  // check_plan reports that the tensor does not exist
    if (known && *known != info->dtype)
      return fmt::format("'{}' is {}, the kernel's parameter points to {}", arg.name,
                         to_string(info->dtype), to_string(*known));
    if (p.constant && is_result(*info))
      return fmt::format("the kernel must write '{}', but its parameter is const", arg.name);
    return {};
  }

  // The plan names a kernel as the compiled module does, so the kernel needs extern "C".
  Result<void> declare_external(const Signature& kernel) {
    size_t line = 0;
    for (int i = 1; i < kernel.global_line && line != std::string::npos; ++i) {
      line = text_.find('\n', line);
      if (line != std::string::npos) ++line;
    }
    const size_t begin = line == std::string::npos || kernel.global_line == 0
                             ? std::string::npos
                             : line + size_t(kernel.global_column - 1);
    constexpr std::string_view kGlobal = "__global__";
    if (begin == std::string::npos || begin > text_.size() ||
        text_.compare(begin, kGlobal.size(), kGlobal) != 0)
      return user_error(fmt::format("the kernel '{}' is not extern \"C\"", kernel.name),
                        at(kernel.line, kernel.column),
                        "begin its declaration with extern \"C\" __global__");
    text_.insert(begin, "extern \"C\" ");
    return {};
  }

  Result<void> check_policy(const KernelProgram& program) const {
    const auto found = lint_program(program);
    if (found.empty()) return {};
    Error error = found.front().error;
    if (error.where.find('#') != std::string::npos) return fail(side_.placed(std::move(error)));
    error.where = (kernel_.parent_path() / error.where).string();
    const bool header = error.message.find("header") != std::string::npos;
    error.remedy +=
        header ? "; copy what the kernel uses of others into this file"
               : "; leave host code out of this file, or name the function that launches the "
                 "kernel: launcher = \"NAME\" in the side file";
    return fail(std::move(error));
  }

  const fs::path kernel_;
  KernelSide side_;
  const Task& task_;
  Plan plan_;
  std::string text_;
};

}  // namespace

Result<KernelProgram> start_program(const fs::path& kernel, const Task& task) {
  CG_TRY(KernelSide side, read_kernel_side(kernel));
  return Reader(kernel, std::move(side), task).read();
}

}  // namespace cutegen::eval
