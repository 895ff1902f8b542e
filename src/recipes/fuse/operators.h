// SPDX-License-Identifier: Apache-2.0
// Functions that write the instructions of one operator into a Builder's loop nest.
//
// Contract: each function returns the instruction that computes the operator's result. `view` maps
// the result's axes to axes of the loop nest (nest_writer.h). If the loop nest cannot compute the
// result, the function returns an error, and Builder::cut() may name a value to store in an earlier
// stage.
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
// Returns nullopt for an operator that is neither a view nor a fill.
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

// Returns the instruction for reduction `r` of `x`, or -1 if expand() does not cover this use. If
// the operator has a result for each element (softmax), the instruction computes the result for the
// element `at`.
int expand(NestWriter& nest, const Reduction& r, int x, int at);
// Returns the View of an operand of shape `from` that an operator broadcasts to shape `to`. `view`
// is the View of the operator's result.
View broadcast(const Shape& from, const Shape& to, const View& view);
std::optional<View> broadcast_reshaped(const Shape& from, const Shape& to, const View& view);

}  // namespace cutegen::recipes
