// SPDX-License-Identifier: Apache-2.0
// Attention: softmax(scale * q k^T + mask) v over the last axes of tensors, as one kernel computes
// it.
//
// Contract: attention_stage() takes a node cutegen.attention whose operands are views of the task's
// tensors or of kept values; otherwise `cut` names the operand that an earlier stage would have to
// keep. The stage writes one contiguous tensor. `along` is the axis of depth, width or keys.
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
  Stride batch, head, row, along;  // row: stride from one query or key to the next
  Stride slice = {};               // stride along the sliced axis
  int64_t index = 0, slices = 1;   // index and size along that axis
};

struct Attention {
  AttentionNode node;
  Fused loads;  // the axes of `loads` are numbered by AxisOf
  Attended q, k, v, out;
  // Its strides: row, from one query to the next; along, from one key to the next.
  std::optional<Attended> mask;
  std::vector<FusedOutput> outputs;

  // kSlices: an axis for each of q, k and v.
  enum AxisOf { kBatch, kHead, kKeyHead, kRow, kKey, kDepth, kWidth, kSlices };
  int64_t size(AxisOf axis) const { return loads.axes[size_t(axis)].size; }
  const std::string& extent(AxisOf axis) const { return loads.axes[size_t(axis)].extent; }
  DType element() const { return q.operand.dtype; }
};

struct AttentionAttempt {
  Result<Attention> attention;
  std::string cut;
};

// `output` is what the stage writes: the node's value.
AttentionAttempt attention_stage(const Region& region, const Node& node,
                                 const Region::Output& output);

}  // namespace cutegen::recipes
