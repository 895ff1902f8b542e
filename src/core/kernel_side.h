// SPDX-License-Identifier: Apache-2.0
// KernelSide: the side file of a task that is a CUDA kernel (NAME.toml beside NAME.cu).
//
// Contract: read_kernel_side() reads the keys `reference` (the PyTorch module's file) and
// `[kernel]` (the launch), and converts the launch to plan.json. The torch worker reads the other
// keys of the side file. Errors name a line of the side file.
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
  std::string text;                           // text of the side file
  Json plan;                                  // plan.json with one step, the kernel's launch
  std::map<std::string, std::string> places;  // "line:column" of each JSON pointer
  // Name of the host function that launches the kernel, or empty. With a launcher, `launcher_args`
  // has the function's arguments, and the plan omits the fields that the function sets. If
  // `launcher_args` is null, each parameter receives the tensor of the same name.
  std::string launcher;
  Json launcher_args;
  // For each field of the plan that comes from the launcher: JSON pointer in the plan -> the place
  // in the source, "norm.cu:7:3".
  std::map<std::string, std::string> source_places;

  std::string kernel() const;  // name of the kernel
  // Converts a JSON pointer in the plan ("/steps/0/grid") to a place in the side file
  // ("norm.toml:7:3"), or in the source if the value comes from the launcher. For a pointer without
  // a place, returns the place of the nearest enclosing object.
  std::string place(std::string pointer) const;
  // Replaces an error's place in the plan by the place in the side file or in the source.
  Error placed(Error error) const;
};

bool is_kernel_file(const std::filesystem::path& file);  // whether the name ends in .cu
Result<KernelSide> read_kernel_side(const std::filesystem::path& kernel);

}  // namespace cutegen
