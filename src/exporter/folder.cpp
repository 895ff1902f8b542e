// SPDX-License-Identifier: Apache-2.0
// Writes the folder of an export completely or not at all.
#include <fcntl.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "exporter/exporter.h"

namespace cutegen::exporter {
namespace fs = std::filesystem;
namespace {

// Whether the folder may be replaced: it is an earlier export or empty.
bool is_ours(const fs::path& out) {
  std::error_code error;
  if (fs::is_empty(out, error)) return true;
  auto text = read_file(out / "launches.json", size_t{256} << 20);
  if (!text) return false;
  auto json = parse_json(*text, "launches.json", size_t{256} << 20);
  return json && json->is_object() && json->value("schema", "") == "cutegen.launches.v1";
}

Result<void> check_free(const fs::path& out, bool force) {
  std::error_code error;
  const fs::file_status found = fs::symlink_status(out, error);
  if (!fs::exists(found)) return {};
  if (!fs::is_directory(found))
    return user_error("'" + out.string() + "' exists and is not a folder", "--out",
                      "choose another folder");
  if (!is_ours(out))
    return user_error("the folder '" + out.string() + "' exists and contains no export", "--out",
                      "choose another folder");
  if (force || fs::is_empty(out, error)) return {};
  return user_error("the folder '" + out.string() + "' already exists", "--out",
                    "choose another folder, or replace it with --force");
}

Result<void> write_all(const fs::path& folder, const ExportFiles& files) {
  std::error_code error;
  for (const auto& [name, text] : files) {
    const fs::path at = folder / name;
    fs::create_directories(at.parent_path(), error);
    if (error) return world_error("cannot make '" + at.parent_path().string() + "'");
    std::ofstream file(at, std::ios::binary);  // its permissions follow the user's umask
    file.write(text.data(), std::streamsize(text.size())).flush();
    if (!file) return errno_error("cannot write '" + at.string() + "'");
  }
  return {};
}

}  // namespace

Result<void> write_export(const std::string& folder, const ExportFiles& files, bool force) {
  fs::path out(folder);
  if (!out.has_filename()) out = out.parent_path();
  CG_CHECK(check_free(out, force));
  std::error_code error;
  if (!out.parent_path().empty() && !fs::is_directory(out.parent_path(), error))
    return user_error("the folder does not exist: '" + out.parent_path().string() + "'", "--out",
                      "make it first, or choose another");
  const fs::path fresh = out.parent_path() / ("." + out.filename().string() + ".new");
  fs::remove_all(fresh, error);
  auto written = write_all(fresh, files);
  if (written && fs::exists(out, error)) {
    if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, out.c_str(), RENAME_EXCHANGE) != 0)
      written = errno_error("cannot replace '" + out.string() + "'");
  } else if (written && ::rename(fresh.c_str(), out.c_str()) != 0) {
    written = errno_error("cannot make '" + out.string() + "'");
  }
  fs::remove_all(fresh, error);
  return written;
}

}  // namespace cutegen::exporter
