// SPDX-License-Identifier: Apache-2.0
// Moves the rearrangement of rows before the work on rows.
//
// Contract: if rolls, flips, views and transpositions rearrange whole rows of a norm's or softmax's
// result, earlier_moves() rearranges the operand instead. One loop nest can then read each row
// where it lies, and write the results in the final order. The pass changes only chains of values
// that nothing else reads, and only if they contain a roll, a flip, or a transposition after a
// view that splits axes (the windows of an image).
//
// Example: permute(view(roll(layer_norm(x)))) -> layer_norm(permute(view(roll(x))))
#pragma once

#include "core/graph.h"

namespace cutegen::recipes {

Graph earlier_moves(Graph graph);

}  // namespace cutegen::recipes
