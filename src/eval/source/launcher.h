// SPDX-License-Identifier: Apache-2.0
// Reads the launch of a kernel from a host function, without running it.
//
// Contract: reads straight-line code with one launch, `if` around assignments, dtype dispatch of
// PyTorch, and checks. A loop, a switch, a second launch or a call that cutegen cannot see is an
// error with its line. A value that cutegen cannot read is an error only if the launch needs it.
//
// Example: CG_TRY(HostLaunch launch, read_launcher(outline, {"launch", "silu.cu", arguments,
// ...}));
#pragma once

#include <array>
#include <string>
#include <vector>

#include "eval/source/host_expression.h"

namespace cutegen::eval {

// One parameter of the launcher, and what it stands for in the task.
struct LauncherParameterText {
  std::string name, type;  // type: its tokens with blanks
  bool is_tensor = false, is_pointer = false, is_stream = false;
  Token at;
};
std::vector<LauncherParameterText> launcher_parameters(const SourceOutline& outline,
                                                       const SourceFunction& function);

struct HostLaunch {
  std::string kernel;
  std::vector<std::string> template_arguments;
  bool templated = false;
  HostValue grid, block, shared;  // each has the kind `sizes`, or is unreadable
  std::vector<HostValue> arguments;
  std::vector<HostValue> conditions;
  Token at, grid_at, block_at;  // places of the launch, and of grid and block
  std::vector<Token> argument_at;
  bool uses_half = false, uses_bfloat16 = false;
};

struct LauncherQuery {
  const SourceFunction* function = nullptr;
  std::map<std::string, HostValue> parameters;  // values by the names of the launcher's parameters
  // The task's outputs, which the launcher may allocate and return.
  std::vector<std::string> outputs;
};

Result<HostLaunch> read_launcher(HostContext& context, const LauncherQuery& query);

}  // namespace cutegen::eval
