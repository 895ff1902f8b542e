// SPDX-License-Identifier: Apache-2.0
// Parses the parameters of a kernel and finds their dtypes.
//
// Contract: for an unknown type, such as uint4 or a template, dtype_of() returns nullopt.
//
// Example: parameter_of("const half * __restrict__ x")  // type "half", one pointer, constant
#pragma once

#include <optional>
#include <string>

#include "core/plan.h"

namespace cutegen::eval {

struct KernelParameter {
  std::string type;
  int pointers = 0;
  bool constant = false;
};

KernelParameter parameter_of(const std::string& text);
std::optional<DType> dtype_of(const std::string& type);
// Returns the dtype of a scalar argument, or nullopt for tensors and tensor maps.
std::optional<DType> scalar_dtype(ArgSpec::Kind kind);

}  // namespace cutegen::eval
