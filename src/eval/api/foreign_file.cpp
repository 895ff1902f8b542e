// SPDX-License-Identifier: Apache-2.0
#include "eval/api/foreign_file.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/utf8.h"

namespace cutegen::eval {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostSource = size_t{4} << 20;
constexpr const char* kPrefix = "foreign:";
constexpr size_t kMostFiles = 1000;
constexpr const char* kRemedy = "a third-party solution is one Python file with class ModelNew";

Result<torch::ForeignFile> read_answer(const fs::path& path) {
  auto text = read_file(path, kMostSource);
  if (!text) return user_error(text.error().message, path.string(), kRemedy);
  if (!is_utf8_text(*text)) return user_error("the file is not UTF-8 text", path.string(), kRemedy);
  return torch::ForeignFile{.name = path.filename().string(), .source = std::move(*text)};
}

}  // namespace

Result<std::optional<torch::ForeignFile>> find_foreign(const fs::path& path) {
  std::error_code error;
  if (path.extension() == ".py" && !fs::is_directory(path, error)) return read_answer(path);
  if (!fs::is_directory(path, error) || fs::exists(path / "plan.json", error)) return std::nullopt;
  std::optional<fs::path> found;
  size_t seen = 0;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    if (++seen > kMostFiles) break;
    const fs::path& file = at->path();
    if (file.extension() != ".py" || file.filename() == "task.py") continue;
    if (found)
      return user_error("the folder has several Python files", path.string(),
                        "give the file with ModelNew");
    found = file;
  }
  if (!found) return std::nullopt;
  return read_answer(*found);
}

bool is_foreign(const Verdict& verdict) {
  return verdict.program_id.starts_with(kPrefix);
}

std::string foreign_id(const torch::ForeignFile& answer) {
  return kPrefix + sha256(answer.source);
}

}  // namespace cutegen::eval
