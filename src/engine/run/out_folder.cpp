// SPDX-License-Identifier: Apache-2.0
#include "engine/run/out_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <set>

#include "base/file.h"

namespace cutegen::engine {
namespace fs = std::filesystem;
namespace {

// A folder beside `out`, so that the rename stays on one file system. Clears an old one.
fs::path sibling(const fs::path& out) {
  fs::path dir = out.has_filename() ? out : out.parent_path();
  return dir.parent_path() / ("." + dir.filename().string() + ".new");
}

// Exchanges `fresh` and `out`, so that the old folder ends up at `fresh`.
Result<void> put_in_place(const fs::path& fresh, const fs::path& out) {
  if (::rename(fresh.c_str(), out.c_str()) == 0) return {};  // `out` did not exist or was empty
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, out.c_str(), RENAME_EXCHANGE) != 0)
    return errno_error("cannot replace '" + out.string() + "'");
  return {};
}

Result<void> write_program(const fs::path& dir, const Candidate& candidate, const Verdict& verdict,
                           const Certificate* certificate) {
  CG_CHECK(private_dir(dir));
  CG_CHECK(save_program(candidate.program, dir));
  CG_CHECK(write_file(dir / "verdict.json", dump_json(to_json(verdict), 2) + "\n"));
  if (!certificate) return {};
  return write_file(dir / "certificate.json", dump_json(to_json(*certificate), 2) + "\n");
}

}  // namespace

Result<void> check_out_folder(const fs::path& out) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(out, error))) return {};
  auto refuse = [&](const std::string& why) {
    return user_error("'" + out.string() + "' " + why, "--out", "choose another folder");
  };
  if (fs::is_symlink(fs::symlink_status(out, error))) return refuse("is a symbolic link");
  if (!fs::is_directory(out, error)) return refuse("is not a folder");
  std::set<std::string> known{"plan.json", "verdict.json", "certificate.json"};
  if (auto program = load_program(out))
    for (const auto& [name, text] : program->sources) known.insert(name);
  for (const auto& entry : fs::directory_iterator(out, error))
    if (std::string name = entry.path().filename(); !known.count(name))
      return refuse("holds '" + name + "', which is not part of a kernel program");
  return {};
}

Result<void> save_out_folder(const fs::path& out, const Candidate& candidate,
                             const Verdict& verdict, const Certificate* certificate) {
  fs::path fresh = sibling(out);
  std::error_code error;
  fs::remove_all(fresh, error);
  CG_CHECK(write_program(fresh, candidate, verdict, certificate));
  CG_CHECK(put_in_place(fresh, out));
  fs::remove_all(fresh, error);
  return {};
}

}  // namespace cutegen::engine
