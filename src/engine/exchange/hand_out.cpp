// SPDX-License-Identifier: Apache-2.0
#include "engine/exchange/hand_out.h"

#include <algorithm>
#include <set>

#include "base/file.h"
#include "core/kernel_side.h"

namespace cutegen::engine {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostHandoutText = size_t{4} << 20;

Result<void> check_folder(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(folder, error))) return {};
  if (fs::is_directory(folder, error) && fs::is_empty(folder, error)) return {};
  return user_error("the folder is not empty", folder.string(), "give a new folder");
}

// Puts the best step first, then orders by time. Keeps only the first step of each program.
std::vector<const RunStep*> chosen(const RunView& view, size_t most) {
  std::vector<const RunStep*> out;
  for (const RunStep& step : view.steps)
    if (!step.imported && step.verdict && step.verdict->status == Status::correct)
      out.push_back(&step);
  auto rank = [&](const RunStep* s) {
    return std::make_pair(s->candidate.id != view.best, s->time_ns().value_or(1e300));
  };
  std::stable_sort(out.begin(), out.end(),
                   [&](const RunStep* a, const RunStep* b) { return rank(a) < rank(b); });
  std::set<std::string> seen;
  std::erase_if(
      out, [&](const RunStep* s) { return !seen.insert(program_id(s->candidate.program)).second; });
  if (out.size() > most) out.resize(most);
  return out;
}

Result<void> copy_into(const fs::path& file, const fs::path& folder) {
  CG_TRY(std::string text, read_file(file, kMostHandoutText));
  return write_file(folder / file.filename(), text);
}

// Writes the Python file of the task, which must be the one that the run began with.
Result<void> write_module(const RunView& view, const fs::path& file, const fs::path& folder) {
  auto text = read_file(file, kMostHandoutText);
  if (!text || *text != view.task->task.source)
    return user_error(text ? "the task file has changed since the run began"
                           : "the task file does not exist any more: " + text.error().message,
                      file.string(), "restore it");
  return write_file(folder / file.filename(), *text);
}

// The journal does not contain the side file, so all files must still exist.
Result<fs::path> write_task(const RunView& view, const fs::path& folder) {
  const fs::path file = view.settings.file;
  fs::path to = folder / file.filename();
  if (is_kernel_file(file)) {
    CG_TRY(KernelSide side, read_kernel_side(file));
    if (side.reference.parent_path() != side.file.parent_path())
      return user_error("the reference lies in another folder", side.reference.string(),
                        "put it beside the kernel, so that the files can be handed out together");
    CG_CHECK(write_module(view, side.reference, folder));
    CG_CHECK(copy_into(side.file, folder));
    CG_CHECK(copy_into(file, folder));
    return to;
  }
  CG_CHECK(write_module(view, file, folder));
  fs::path side = file;
  side.replace_extension(".toml");
  std::error_code error;
  if (fs::exists(side, error)) CG_CHECK(copy_into(side, folder));
  return to;
}

}  // namespace

Result<HandedOut> hand_out(const RunView& view, const fs::path& folder, size_t most) {
  const auto steps = chosen(view, most);
  if (!view.task || steps.empty())
    return user_error("the run has no correct program to hand out", {},
                      "cutegen show says why; cutegen resume continues the run");
  CG_CHECK(check_folder(folder));
  CG_CHECK(private_dir(folder));
  HandedOut out;
  CG_TRY(out.task, write_task(view, folder));
  for (const RunStep* step : steps) {
    CG_CHECK(save_program(step->candidate.program, folder / step->candidate.id));
    out.candidates.push_back(step->candidate.id);
  }
  return out;
}

}  // namespace cutegen::engine
