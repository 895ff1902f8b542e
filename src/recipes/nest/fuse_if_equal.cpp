// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/fuse_if_equal.h"

#include <fmt/format.h>

#include <algorithm>

namespace cutegen::recipes {
namespace {

// Pointwise work on tensors of the task, which no stage has changed before.
bool is_simple(const Fused& fused) {
  const auto reads = [&](const std::string& tensor) {
    return std::any_of(fused.inputs.begin(), fused.inputs.end(),
                       [&](const Operand& input) { return input.tensor == tensor; });
  };
  return !fused.reduces() && !fused.scans() && !fused.special() &&
         std::none_of(fused.inputs.begin(), fused.inputs.end(),
                      [](const Operand& input) { return input.kept; }) &&
         std::none_of(fused.outputs.begin(), fused.outputs.end(), [&](const FusedOutput& output) {
           return output.operand.kept || output.operand.gathered() || reads(output.operand.tensor);
         });
}

}  // namespace

std::optional<Fused> fuse_if_equal(Region region) {
  const EqualSizes equal = fuse(region).equal;
  if (equal.empty()) return std::nullopt;
  region.equal.insert(region.equal.end(), equal.begin(), equal.end());
  Attempt a = fuse(region);
  if (!a.fused || !is_simple(*a.fused)) return std::nullopt;
  for (const auto& [first, other] : equal)
    a.fused->when += fmt::format("{}({} == {})", a.fused->when.empty() ? "" : "*", first, other);
  return std::move(*a.fused);
}

}  // namespace cutegen::recipes
