// SPDX-License-Identifier: Apache-2.0
#include "engine/report/rewrite_text.h"

#include <fmt/format.h>

#include "engine/report/text_lines.h"

namespace cutegen::engine {

std::vector<std::string> rewrite_lines(const RunView& view) {
  std::vector<std::string> lines;
  const RunStep* step = view.incumbent();
  if (!step && !view.steps.empty()) step = &view.steps.front();
  if (!step) return lines;
  for (const Rewrite& rewrite : step->candidate.edit.rewrites) {
    const std::string rule = clean(rewrite.rule, 60), effect = clean(rewrite.effect, 300);
    lines.push_back(
        rewrite.applied
            ? fmt::format("{}: {}", rule, effect)
            : fmt::format("not used: {0} would apply: {1} (choose it with --rewrites {0})", rule,
                          effect));
  }
  return lines;
}

std::string rewrites_text(const RunView& view) {
  std::string out;
  for (const std::string& text : rewrite_lines(view))
    out += line(out.empty() ? "rewrites" : "", text);
  return out;
}

}  // namespace cutegen::engine
