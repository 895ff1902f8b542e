// SPDX-License-Identifier: Apache-2.0
#include "eval/api/wanted_baselines.h"

#include "base/text.h"

namespace cutegen::eval {

Result<std::vector<torch::BaselineWanted>> baselines_named(const std::vector<std::string>& names) {
  std::vector<torch::BaselineWanted> out;
  bool own = false;
  for (const std::string& name : names) {
    const BaselineKind kind = baseline_kind(name);
    const bool known = kind != BaselineKind::callable;
    if (!known && name.find(':') == std::string::npos)
      return user_error(
          "unknown baseline '" + sanitize(name, 60) + "'", {},
          "give one of eager, eager-fp32, eager-tf32, compile, compile-max, or MODULE:CALLABLE");
    if (!known && own)
      return user_error("more than one MODULE:CALLABLE given", {}, "name one MODULE:CALLABLE");
    own = own || !known;
    out.push_back({.kind = kind, .target = known ? std::string() : name});
  }
  return out;
}

}  // namespace cutegen::eval
