// SPDX-License-Identifier: Apache-2.0
// Functions that write the instructions of one operator into a Builder's loop nest.
//
// Contract: each function returns the instruction for the operator's result at the view. If the
// loop nest cannot compute the result, the function returns an error, and Builder::cut() may name a
// value to store in an earlier stage.
//
// Example: CG_TRY(int x, build_slice(builder, node, 0, view));
#pragma once

#include <optional>

#include "recipes/fuse/builder.h"
#include "recipes/graph/gathers.h"
#include "recipes/graph/pointwise.h"
#include "recipes/graph/reductions.h"

namespace cutegen::recipes {

Result<int> build_pointwise(Builder& builder, const Node& node, const Pointwise& p,
                            const View& view);
Result<int> build_reduction(Builder& builder, const Node& node, const Reduction& r,
                            const View& view);
Result<int> build_inside(Builder& builder, const Node& node, const View& view);
// Returns nothing for an operator that is neither a view nor a fill.
Result<std::optional<int>> build_view(Builder& builder, const Node& node, const View& view);
Result<int> build_slice(Builder& builder, const Node& node, size_t output, const View& view);
Result<int> build_join(Builder& builder, const Node& node, const View& view);
Result<int> build_gather(Builder& builder, const Node& node, const Gather& gather,
                         const View& view);

// Operators that cutegen's rewrites of the graph create (graph/decompose.h).
Result<int> build_shift(Builder& builder, const Node& node, const View& view);
Result<int> build_counting(Builder& builder, const Node& node, const View& view);
Result<int> build_affine(Builder& builder, const Node& node, const View& view);
Result<int> build_blocks(Builder& builder, const Node& node, const View& view);
Result<int> build_filled(Builder& builder, const Node& node, const View& view);
Result<int> build_values(Builder& builder, const Node& node, const View& view);

// Returns the instruction for reduction `r` of `x`; -1 if it does not cover this use. An operator
// that has a result for each element gives it for the element `at`.
int expand(NestWriter& nest, const Reduction& r, int x, int at);
// The View of an operand of shape `from` whose result, of shape `to`, has the View `view`.
View broadcast(const Shape& from, const Shape& to, const View& view);
std::optional<View> broadcast_reshaped(const Shape& from, const Shape& to, const View& view);

}  // namespace cutegen::recipes
