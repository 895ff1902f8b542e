// SPDX-License-Identifier: Apache-2.0
// Attention stages: an attention stage of a program computes softmax(scale * q k^T + mask) v over
// the last axes of tensors, with one kernel.
//
// Contract: attention_stage() takes a node cutegen.attention (graph/attention.h), whose operands
// must be views of the task's tensors, or of values that earlier stages store in scratch memory.
// Otherwise, the result is an error, and `cut` names the operand that an earlier stage would have
// to store. An attention stage writes one contiguous tensor.
//
// Example: scaled_dot_product_attention(q, k, v) -> q, k, v and out with their strides
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recipes/graph/attention.h"
#include "recipes/nest/nest.h"

namespace cutegen::recipes {

struct Attended {
  Operand operand;
  // `row` is the stride from a query or key to the next, `along` the stride along depth or width.
  Stride batch, head, row, along;
  Stride slice = {};              // only for slices: stride along the sliced axis
  int64_t index = 0, slices = 1;  // index along the sliced axis; size of this axis
};

struct Attention {
  AttentionNode node;
  Fused loads;  // has the axes, in the order of AxisOf
  Attended q, k, v, out;
  // In `mask`, `row` is the stride from a query to the next, and `along` from a key to the next.
  std::optional<Attended> mask;
  std::vector<FusedOutput> outputs;

  // The axes of `loads`. The axes kSlices, kSlices + 1 and kSlices + 2 are the sliced axes of q, k
  // and v.
  enum AxisOf { kBatch, kHead, kKeyHead, kRow, kKey, kDepth, kWidth, kSlices };
  int64_t size(AxisOf axis) const { return loads.axes[size_t(axis)].size; }
  const std::string& extent(AxisOf axis) const { return loads.axes[size_t(axis)].extent; }
  DType element() const { return q.operand.dtype; }
};

struct AttentionAttempt {
  Result<Attention> attention;
  std::string cut;
};

// `output` describes the tensor to which the stage writes the value of `node`.
AttentionAttempt attention_stage(const Region& region, const Node& node,
                                 const Region::Output& output);

}  // namespace cutegen::recipes
