// SPDX-License-Identifier: Apache-2.0
#include "engine/report/cost_text.h"

#include <fmt/format.h>

#include "engine/report/text_lines.h"
#include "search/structure.h"

namespace cutegen::engine {

std::string model_cost_text(const RunView& view) {
  const ModelCost& m = view.models;
  double cached = m.input ? 100.0 * double(m.cached) / double(m.input) : 0;
  std::string text = fmt::format("{}, {} tokens in ({:.0f}% cached), {} out",
                                 counted(m.calls, "call"), m.input, cached, m.output);
  if (m.usd > 0) text += fmt::format(", ${:.4f}", m.usd);
  if (m.unpriced) text += ", the price of some calls is unknown";
  if (view.tool_calls > 0) text += ", " + counted(view.tool_calls, "call") + " of tools";
  if (view.reasks > 0) text += ", " + counted(view.reasks, "answer") + " asked again";
  return text;
}

std::string cute_use_text(const KernelProgram& program) {
  search::CuteUse use = search::cute_use(program);
  if (!use.includes) return "not used";
  return fmt::format("{:.0f}% of the statements; {} TiledMMA, {} TiledCopy, {}, {}",
                     100 * use.share, use.tiled_mma, use.tiled_copy, counted(use.layouts, "layout"),
                     counted(use.tensors, "tensor"));
}

}  // namespace cutegen::engine
