// SPDX-License-Identifier: Apache-2.0
#include "torch/interpreter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "base/file.h"
#include "base/text.h"

namespace cutegen::torch {
namespace {

namespace fs = std::filesystem;

std::string choose_python(const std::string& asked) {
  if (!asked.empty()) return asked;
  if (const char* env = std::getenv("CUTEGEN_PYTHON"); env && *env) return env;
  std::error_code error;
  if (auto share = share_dir()) {
    fs::path venv = *share / ".venv" / "bin" / "python";
    if (fs::exists(venv, error)) return venv.string();
  }
  return "python3";
}

}  // namespace

// Looks up a name without a slash in PATH.
Result<std::string> find_interpreter(const std::string& asked) {
  const std::string name = choose_python(asked);
  if (name.find('/') != std::string::npos) {
    if (::access(name.c_str(), X_OK) == 0) return fs::absolute(name).string();
  } else {
    const char* path = std::getenv("PATH");
    for (const std::string& dir : split(path ? path : "/usr/bin:/bin", ':')) {
      std::string at = (dir.empty() ? "." : dir) + "/" + name;
      if (::access(at.c_str(), X_OK) == 0) return fs::absolute(at).string();
    }
  }
  return user_error("no Python interpreter '" + name + "'", {},
                    "run make setup, or name one that has torch: --python PATH");
}

Result<fs::path> find_worker(const fs::path& asked) {
  if (!asked.empty()) return fs::absolute(asked);
  CG_TRY(fs::path share, share_dir());
  return share / "python" / "cutegen_worker";
}

std::string last_line(const std::string& text) {
  std::string last;
  for (const std::string& line : split(text, '\n'))
    if (!trim(line).empty()) last = std::string(trim(line));
  return sanitize(last, kQuoted);
}

}  // namespace cutegen::torch
