// SPDX-License-Identifier: Apache-2.0
#include "engine/exchange/batch_entry.h"

#include <algorithm>

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "eval/api/foreign_file.h"

namespace cutegen::engine {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostEntries = 10'000, kMostText = size_t{8} << 20;
constexpr uintmax_t kMostBytes = uintmax_t{1} << 30;  // for all entries together

Result<Verdict> verdict_of(const Json& json, const fs::path& file, const std::string& name) {
  ObjectReader r(json, file.string() + "#");
  CG_TRY(std::string schema, r.string("schema"));
  if (schema != kEntrySchema)
    return user_error("this file is not a verdict of a batch: " + sanitize(schema, 60),
                      r.place("schema"),
                      "give the folder that `cutegen eval --batch` wrote (--out)");
  CG_TRY(std::string told, r.string("name"));
  if (told != name)
    return user_error("the verdict belongs to another entry: " + sanitize(told, 60),
                      r.place("name"));
  if (r.has("error")) {
    CG_TRY(Json error, r.object("error"));
    ObjectReader e(error, r.place("error"));
    CG_TRY(std::string message, e.string("message"));
    return user_error("the entry has no verdict: " + sanitize(message, 300), file.string(),
                      "repair the entry and judge the folder again");
  }
  CG_TRY(Json verdict, r.object("verdict"));
  return read_json<Verdict>(verdict);
}

}  // namespace

Result<std::vector<std::string>> batch_entries(const fs::path& verdicts) {
  std::error_code error;
  std::vector<std::string> out;
  uintmax_t bytes = 0;
  for (fs::directory_iterator at(verdicts, error), end; !error && at != end; at.increment(error)) {
    const fs::path path = at->path();
    if (path.extension() != ".json" || path.filename().string().starts_with(".")) continue;
    out.push_back(path.stem().string());
    std::error_code ignored;  // reading reports a missing file
    if (const uintmax_t size = fs::file_size(path, ignored); !ignored) bytes += size;
    if (out.size() > kMostEntries || bytes > kMostBytes)
      return user_error("the folder has too many entries", verdicts.string(), "split the folder");
  }
  if (error)
    return user_error("the folder cannot be read: " + error.message(), verdicts.string(),
                      "give the folder of the verdicts");
  if (out.empty())
    return user_error("the folder contains no verdict", verdicts.string(),
                      "write verdicts: cutegen eval --batch DIR --out DIR");
  std::sort(out.begin(), out.end());
  return out;
}

Result<BatchEntry> read_batch_entry(const fs::path& programs, const fs::path& verdicts,
                                    const std::string& name) {
  BatchEntry out{.name = name, .sha256 = {}, .program = {}, .verdict = {}};
  const fs::path file = verdicts / (name + ".json");
  CG_TRY(std::string text, read_file(file, kMostText));
  CG_TRY(Json json, parse_json(text, file.string(), kMostText));
  CG_TRY(out.verdict, verdict_of(json, file, name));
  if (eval::is_foreign(out.verdict))
    return user_error("a third-party solution is not a kernel program", file.string(),
                      "import only kernel programs");
  auto program = load_program(programs / name);
  if (!program)
    return user_error("the program's files are missing: " + program.error().text(),
                      (programs / name).string(), "give the folder of programs that was judged");
  out.program = std::move(*program);
  const std::string id = program_id(out.program);
  if (id != out.verdict.program_id)
    return user_error("the program in the folder is not the one that was judged",
                      (programs / name).string(), "judge the folder again");
  out.sha256 = sha256(id + canonical_json(to_json(out.verdict)));
  return out;
}

}  // namespace cutegen::engine
