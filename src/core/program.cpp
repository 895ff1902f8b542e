// SPDX-License-Identifier: Apache-2.0
// KernelProgram on disk, as JSON, and its id.
#include "core/program.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "core/codec.h"

namespace cutegen {
namespace {

constexpr size_t kMaxPlan = size_t{1} << 20;
constexpr size_t kMaxSource = size_t{1} << 20;

std::string normalised(std::string text) {
  return replace_all(replace_all(std::move(text), "\r\n", "\n"), "\r", "\n");
}

Result<void> check_source(const std::string& name, const std::string& text,
                          const std::string& where) {
  if (text.size() > kMaxSource)
    return user_error(
        fmt::format("'{}' has {} bytes; the limit is {}", name, text.size(), kMaxSource), where);
  if (text.find('\0') != std::string::npos)
    return user_error("'" + name + "' is not text", where, "remove the zero bytes");
  return {};
}

// The program's sources and the plan's list must be the same set.
Result<void> check_sources(const KernelProgram& program, const std::string& where) {
  for (const std::string& name : program.plan.sources)
    if (!program.sources.contains(name))
      return user_error("the plan lists the source '" + name + "', which does not exist", where);
  if (program.sources.size() == program.plan.sources.size()) return {};
  for (const auto& [name, text] : program.sources)
    if (std::find(program.plan.sources.begin(), program.plan.sources.end(), name) ==
        program.plan.sources.end())
      return user_error("'" + name + "' is not in the plan's sources", where);
  return {};
}

}  // namespace

Result<KernelProgram> load_program(const std::filesystem::path& dir) {
  std::error_code error;
  if (!std::filesystem::is_directory(dir, error))
    return user_error("'" + dir.string() + "' is not a folder", {},
                      "give the folder that holds plan.json and its sources");
  KernelProgram program;
  std::filesystem::path plan = dir / "plan.json";
  CG_TRY(std::string text, read_file(plan, kMaxPlan));
  CG_TRY(program.plan, parse_plan(text, plan.string()));
  for (size_t i = 0; i < program.plan.sources.size(); ++i) {
    const std::string& name = program.plan.sources[i];
    std::string where = fmt::format("{}#/sources/{}", plan.string(), i);
    CG_TRY(std::string source, codec::at(read_file(dir / name, kMaxSource), where));
    CG_CHECK(check_source(name, source, where));
    program.sources[name] = std::move(source);
  }
  return program;
}

Result<void> save_program(const KernelProgram& program, const std::filesystem::path& dir) {
  CG_CHECK(check_sources(program, dir.string()));
  CG_CHECK(private_dir(dir));
  for (const auto& [name, text] : program.sources) {
    CG_CHECK(check_source_name(name, dir.string()));
    CG_CHECK(write_file(dir / name, text));
  }
  return write_file(dir / "plan.json", dump_json(to_json(program.plan), 2) + "\n");
}

std::string program_id(const KernelProgram& program) {
  Hasher hasher;
  hasher.field("cutegen.program.v1").field(canonical_json(to_json(program.plan)));
  for (const auto& [name, text] : program.sources) hasher.field(name).field(normalised(text));
  return hasher.hex();
}

void fields(Fields& v, KernelProgram& p) {
  v.document("program#");
  v.schema("cutegen.program.v1");
  v.via("plan", p.plan, [](const Json& json) { return plan_from_json(json); });
  v("sources", p.sources);
  if (!v.reading()) return;
  for (const auto& [name, text] : p.sources)
    v.check(check_source(name, text, {}), "sources/" + name);
  v.check(check_sources(p, {}), "sources");
}

}  // namespace cutegen
