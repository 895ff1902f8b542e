// SPDX-License-Identifier: Apache-2.0
// PlanScope: the values of names in a plan's expressions, for one shape on one device.
//
// Contract: evaluates symbols once, in order. A symbol that cannot be evaluated (it needs a
// constant of a module that is not compiled yet) is an error only if an expression uses it. The
// arguments must outlive the scope. Private to core.
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
  // facts: null while the modules are not compiled.
  PlanScope(PlanContext context, const std::vector<ModuleFacts>* facts);

  Result<Number> symbol(const std::string& name) const override;
  Result<int64_t> dim(const std::string& tensor, int64_t axis) const override;
  Result<int64_t> size(const std::string& tensor) const override;
  Result<int64_t> stride(const std::string& tensor, int64_t axis) const override;
  Result<Number> attribute(const std::string& name) const override;
  Result<Number> argument(const std::string& name) const override;
  Result<int64_t> module_constant(const std::string& name) const override;
  Result<int64_t> occupancy(const std::string& kernel) const override;

  // The task's tensor name for a plan's name (through `bind`), or the name itself.
  std::string task_name(const std::string& name) const;
  // "M=7, K=9": the values that an expression uses, for messages.
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
