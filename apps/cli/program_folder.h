// SPDX-License-Identifier: Apache-2.0
// Reads a kernel program from a folder; errors name lines of its plan.json.
//
// Contract: errors of the plan carry "FOLDER/plan.json:LINE:COL" instead of a JSON pointer.
// Example: CG_TRY(ProgramFolder f, ProgramFolder::read("out")); f.program();
#pragma once

#include <filesystem>

#include "core/program.h"

namespace cutegen::cli {

class ProgramFolder {
 public:
  static Result<ProgramFolder> read(const std::filesystem::path& folder);
  const KernelProgram& program() const { return program_; }
  // The same error with its place as file, line and column.
  Error placed(Error error) const;

 private:
  std::filesystem::path folder_;
  std::string plan_text_;
  KernelProgram program_;
};

}  // namespace cutegen::cli
