// SPDX-License-Identifier: Apache-2.0
// Translates a plan to a C++ function that queues its launches. Only src/exporter may use this
// file.
//
// Contract: PlanWriter::text() returns the text of the C++ function, and adds to `given` the
// tensors, sizes and scalars of the task that the function needs as arguments. The export contains
// only the modules for the exported shapes. If the sizes need a module that is not in the export,
// or if a condition in the plan's `requires` is false, the C++ function launches nothing and sets
// `taken` to false.
//
// Example: PlanWriter w(source, program, modules, given, "program"); CG_TRY(auto text, w.text());
#pragma once

#include <set>

#include "core/expr_cpp.h"
#include "exporter/exporter.h"

namespace cutegen::exporter {

// The tensors, sizes (axes of tensors) and scalars of a task that a plan uses.
struct GivenNames {
  std::set<std::string> tensors, attributes, arguments;
  std::set<std::pair<std::string, size_t>> sizes;

  static std::string tensor(const std::string& name) { return "t_" + plain_name(name); }
  static std::string size(const std::string& name, size_t axis) {
    return "d_" + plain_name(name) + "_" + std::to_string(axis);
  }
  static std::string scalar(const std::string& name) { return "v_" + plain_name(name); }
};

// A source file that was compiled with particular values of its defines.
struct SourceModule {
  ModuleBuild build;
  ModuleFacts facts;
  // Namespace of the module's code in the written file; empty: the global namespace, in which
  // kernels keep their names.
  std::string space;
  // For each kernel: the namespace in the source that contains the kernel, such as "::ours".
  std::map<std::string, std::string> scopes = {};
  std::string kernel(const std::string& name) const {
    const auto scope = scopes.find(name);
    return space + (scope == scopes.end() ? "" : scope->second) + "::" + name;
  }
};

// Translates expressions of a plan to C++, and records in `given` the tensors, sizes and scalars
// that the expressions use.
class PlanNames {
 public:
  PlanNames(const Task& task, const Plan& plan, GivenNames& given)
      : task_(task), plan_(plan), given_(given) {}
  Result<std::string> cpp(const Expr& expression) const;
  Result<std::string> three(const std::array<Expr, 3>& expressions) const;
  Result<const TensorInfo*> tensor(const std::string& name) const;
  // Returns C++ for the address of a tensor of the task.
  Result<std::string> pointer(const std::string& name) const;
  // Returns C++ for the number of elements of a tensor from axis `first_axis` to the last axis.
  std::string count(const TensorInfo& tensor, size_t first_axis) const;

 private:
  Result<std::string> leaf_text(const ExprLeaf& leaf) const;
  Result<std::string> scalar_text(const std::vector<ScalarInfo>& known, std::set<std::string>& used,
                                  const std::string& name) const;

  const Task& task_;
  const Plan& plan_;
  GivenNames& given_;
};

// Writes the C++ code that selects a compiled module of each source by the values of the plan's
// defines.
class PlanModules {
 public:
  PlanModules(const Plan& plan, const std::vector<SourceModule>& modules)
      : plan_(plan), modules_(modules) {}
  // Returns C++ code that declares define_NAME and module_NUMBER. The C++ code returns from its
  // function if no module has the values of the defines.
  Result<std::string> choice(const PlanNames& names) const;
  // Returns C++ that declares k_NAME for each constant that a source exports. If several sources
  // export a constant of the same name, the first source determines the value, as in the evaluator.
  std::string constants() const;
  // Returns C++ for the address of the kernel in the selected module.
  Result<std::string> kernel(const std::string& name) const;

 private:
  std::vector<const SourceModule*> of(const std::string& source) const;
  std::string chooser(const std::string& source) const;

  const Plan& plan_;
  const std::vector<SourceModule>& modules_;
};

class PlanWriter {
 public:
  PlanWriter(const Task& task, const KernelProgram& program,
             const std::vector<SourceModule>& modules, GivenNames& given, std::string function)
      : plan_(program.plan),
        names_(task, plan_, given),
        modules_(plan_, modules),
        function_(std::move(function)) {}
  // Sets a C++ condition; if the condition is false, the written function launches nothing.
  void demand(std::string condition) { demanded_ = std::move(condition); }
  Result<std::string> text();

 private:
  const ScratchSpec* scratch_of(const std::string& name) const;
  Result<std::string> symbols(bool late);
  Result<std::string> conditions() const;
  Result<std::string> scratch() const;
  Result<std::string> steps(const std::vector<Step>& list, bool first) const;
  Result<std::string> launch(const Step& step, bool first) const;
  Result<std::string> fill(const std::string& buffer, double value) const;
  Result<std::string> argument(const ArgSpec& arg, size_t number) const;
  Result<std::string> pointer(const std::string& buffer) const;

  const Plan& plan_;
  const PlanNames names_;
  const PlanModules modules_;
  const std::string function_;
  std::optional<std::string> demanded_;
};

}  // namespace cutegen::exporter
