// SPDX-License-Identifier: Apache-2.0
// KernelSide: the side file of a task that is a CUDA kernel (NAME.toml beside NAME.cu).
//
// Contract: reads the keys `reference` and `[kernel]`; the torch worker reads the others. Returns
// the file of the PyTorch module, and the launch as plan.json. Errors name a line of the side file.
//
// Example:
//   CG_TRY(KernelSide side, read_kernel_side("norm.cu")); parse_plan(side.plan.dump());
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/json.h"
#include "base/result.h"

namespace cutegen {

struct KernelSide {
  std::filesystem::path file, reference;
  std::string text;                           // the side file
  Json plan;                                  // plan.json with the one launch of the kernel
  std::map<std::string, std::string> places;  // JSON pointer in the plan -> "line:column"
  // The host function that launches the kernel, or empty. If it is set, `launcher_args` holds the
  // function's arguments (null: the tensors named like its parameters), and the plan omits what the
  // function determines.
  std::string launcher;
  Json launcher_args;
  // JSON pointer in the plan -> "norm.cu:7:3", for the parts of the plan that come from the
  // launcher.
  std::map<std::string, std::string> source_places;

  std::string kernel() const;  // the kernel's name
  // "norm.toml:7:3" for "/steps/0/grid". If the pointer is missing, the place of the nearest
  // object.
  std::string place(std::string pointer) const;
  // The error with its place in the plan changed to a line of the side file.
  Error placed(Error error) const;
};

bool is_kernel_file(const std::filesystem::path& file);  // NAME.cu
Result<KernelSide> read_kernel_side(const std::filesystem::path& kernel);

}  // namespace cutegen
