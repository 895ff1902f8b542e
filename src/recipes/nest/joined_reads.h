// SPDX-License-Identifier: Apache-2.0
// Joined reads: reductions read a joined tensor (cat) as one operand.
//
// Contract: a Builder writes one leaf for each operand of a cat(), and instructions that choose one
// of the leaves for each element (joins.cpp). The kernel would read all operands, element by
// element. join_reads() replaces these instructions by one leaf, whose operand lists the operands
// of the cat() (JoinedParts). The kernel then finds the right operand once for each vector, and
// reads a vector of this operand. The operands must be tensors or scratch values of one dtype that
// have the same axes along a row, and no index may select their elements. join_reads() leaves the
// choice as it is if the operands differ in this, or if the program writes one of them.
//
// Example: softmax(cat([x, y], 1), 1) -> one leaf with the operands x and y
#pragma once

#include "recipes/fuse/fused.h"

namespace cutegen::recipes {

// Changes a loop nest with reductions. Call it only for nests that the reduction recipe emits.
void join_reads(Fused& fused);

}  // namespace cutegen::recipes
