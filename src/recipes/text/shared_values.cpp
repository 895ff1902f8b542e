// SPDX-License-Identifier: Apache-2.0
#include "recipes/text/shared_values.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace cutegen::recipes {

SharedValues find_shared_values(const Fused& fused, const Code& code,
                                const std::vector<int>& results, const std::set<int>& leaves) {
  SharedValues shared;
  const auto is_shared = [&](int inst) {
    return leaves.contains(inst) || shared.once.contains(inst);
  };
  const auto is_same = [&](int inst) {
    return is_shared(inst) || fused.insts[size_t(inst)].kind == InstKind::constant;
  };
  std::set<int> read(results.begin(), results.end());
  for (int inst : code.needed(results, [](const Inst& i) { return i.kind != InstKind::leaf; })) {
    const Inst& i = fused.insts[size_t(inst)];
    if (i.kind != InstKind::pointwise) continue;
    if (std::any_of(i.inputs.begin(), i.inputs.end(), is_shared) &&
        std::all_of(i.inputs.begin(), i.inputs.end(), is_same))
      shared.once.insert(inst);
    else
      read.insert(i.inputs.begin(), i.inputs.end());
  }
  for (int inst : shared.once)
    if (read.contains(inst)) shared.read.push_back(inst);
  return shared;
}

std::set<int> inputs_of_results(const Fused& fused, const Code& code, const SharedValues& shared,
                                const std::vector<int>& results, bool once) {
  std::set<int> read;
  for (int inst : code.needed(results, [](const Inst&) { return true; })) {
    const std::vector<int>& inputs = fused.insts[size_t(inst)].inputs;
    if (shared.once.contains(inst) == once) read.insert(inputs.begin(), inputs.end());
  }
  if (!once) read.insert(results.begin(), results.end());
  return read;
}

const char* kept_type(const Inst& inst) {
  return inst.boolean ? "bool" : value_type(inst);
}

std::string shared_function(const std::string& function, const Fused& fused, const Code& code,
                            const SharedValues& shared, std::vector<std::string> params) {
  if (shared.empty()) return "";
  for (const auto& [word, expression] : fused.sizes) params.push_back("int64_t " + word);
  const std::set<int> results(shared.read.begin(), shared.read.end());
  std::string body;
  for (int inst : shared.once)
    body += "  " + (results.contains(inst)
                        ? fmt::format("{} = {};\n", code.id(inst), code.expression(inst))
                        : code.statement(inst));
  for (int inst : shared.read)
    params.push_back(fmt::format("{}& {}", kept_type(fused.insts[size_t(inst)]), code.id(inst)));
  return fmt::format(
      "// Computes what all elements of a vector share.\n"
      "__device__ __forceinline__ void {}({}) {{\n{}}}\n\n",
      function, join(params, ", "), body);
}

std::string shared_call(const std::string& function, const Fused& fused, const Code& code,
                        const SharedValues& shared, std::vector<std::string> values) {
  if (shared.empty()) return "";
  std::string text;
  for (const auto& [word, expression] : fused.sizes) values.push_back(word);
  for (int inst : shared.read) {
    text += fmt::format("{} {};\n", kept_type(fused.insts[size_t(inst)]), code.id(inst));
    values.push_back(code.id(inst));
  }
  return text + fmt::format("{}({});\n", function, join(values, ", "));
}

}  // namespace cutegen::recipes
