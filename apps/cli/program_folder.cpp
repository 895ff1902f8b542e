// SPDX-License-Identifier: Apache-2.0
#include "cli/program_folder.h"

#include "base/file.h"
#include "core/json_place.h"

namespace cutegen::cli {

Error ProgramFolder::placed(Error error) const {
  Error out = with_place(std::move(error), plan_text_);
  // Only places inside the folder have this form: "plan.json:3:5", "kernel.cu:7:1".
  if (!out.where.empty() && out.where.find('/') == std::string::npos)
    out.where = (folder_ / out.where).string();
  return out;
}

Result<ProgramFolder> ProgramFolder::read(const std::filesystem::path& folder) {
  ProgramFolder out;
  out.folder_ = folder;
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored))
    return user_error(std::filesystem::exists(folder, ignored)
                          ? "expected the folder of a program, found a file"
                          : "the folder does not exist",
                      folder.string(), "give a folder with plan.json and its sources");
  CG_TRY(out.plan_text_, read_file(folder / "plan.json", size_t{4} << 20));
  auto program = load_program(folder);
  if (!program) return fail(out.placed(program.error()));
  out.program_ = std::move(*program);
  return out;
}

}  // namespace cutegen::cli
