// SPDX-License-Identifier: Apache-2.0
// Reads the launch of a kernel from a host function (the launcher), without running it.
//
// Contract: read_launcher() accepts straight-line code with one launch, `if` around assignments,
// PyTorch's dtype dispatch macros, and checks. For a loop, a switch, a second launch, or a call of
// a function whose body is not in the file, read_launcher() returns an error that names the line. A
// value that read_launcher() cannot read causes an error only if the launch needs the value.
//
// Example: CG_TRY(HostLaunch launch, read_launcher(outline, {"launch", "silu.cu", arguments,
// ...}));
#pragma once

#include <array>
#include <string>
#include <vector>

#include "eval/source/host_expression.h"

namespace cutegen::eval {

// One parameter of the launcher, from the source.
struct LauncherParameterText {
  std::string name, type;  // type: the type's tokens, separated by blanks
  bool is_tensor = false, is_pointer = false, is_stream = false;
  Token at;
};
std::vector<LauncherParameterText> launcher_parameters(const SourceOutline& outline,
                                                       const SourceFunction& function);

struct HostLaunch {
  std::string kernel;
  std::vector<std::string> template_arguments;
  bool templated = false;
  HostValue grid, block, shared;  // HostValues of kind `sizes` or `unreadable`
  std::vector<HostValue> arguments;
  std::vector<HostValue> conditions;
  Token at, grid_at, block_at;  // places of launch, grid and block in the source
  std::vector<Token> argument_at;
  bool uses_half = false, uses_bfloat16 = false;
};

struct LauncherQuery {
  const SourceFunction* function = nullptr;
  std::map<std::string, HostValue> parameters;  // values of the launcher's parameters, by name
  // Names of the task's outputs, which the launcher may allocate and return.
  std::vector<std::string> outputs;
};

Result<HostLaunch> read_launcher(HostContext& context, const LauncherQuery& query);

}  // namespace cutegen::eval
