// SPDX-License-Identifier: Apache-2.0
// PlanScope: supplies the values of the names in a plan's expressions, for one shape and one
// device.
//
// Contract: the constructor evaluates all symbols of the plan in order. A symbol has no value if it
// needs a constant of a module that is not compiled yet. An expression that uses a symbol without a
// value is an error. The constructor's arguments must outlive the PlanScope.
//
// Example: PlanScope scope({plan, task, shape, device}, nullptr); scope.tensor("w");
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/program.h"

namespace cutegen {

struct PlanContext {
  const Plan& plan;
  const Task& task;
  const ShapeCase& shape;
  const DeviceFacts& device;
};

class PlanScope final : public Scope {
 public:
  // facts: the facts about the compiled modules; null before compilation.
  PlanScope(PlanContext context, const std::vector<ModuleFacts>* facts);

  Result<Number> symbol(const std::string& name) const override;
  Result<int64_t> dim(const std::string& tensor, int64_t axis) const override;
  Result<int64_t> size(const std::string& tensor) const override;
  Result<int64_t> stride(const std::string& tensor, int64_t axis) const override;
  Result<Number> attribute(const std::string& name) const override;
  Result<Number> argument(const std::string& name) const override;
  Result<int64_t> module_constant(const std::string& name) const override;
  Result<int64_t> occupancy(const std::string& kernel) const override;

  // Converts a short name from the plan's `bind` to the task's tensor name, and returns any other
  // name unchanged.
  std::string task_name(const std::string& name) const;
  // Returns the values of the names in an expression, for error messages: "M=7, K=9".
  std::string values_of(const Expr& e) const;

 private:
  Result<const Shape*> shape_of(const std::string& tensor) const;
  Result<size_t> axis_of(const std::string& tensor, const Shape& shape, int64_t axis) const;

  PlanContext context_;
  const std::vector<ModuleFacts>* facts_;
  std::map<std::string, Result<Number>> symbols_;
  mutable bool in_occupancy_ = false;
};

}  // namespace cutegen
