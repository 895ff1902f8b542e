// SPDX-License-Identifier: Apache-2.0
// Attention stages: softmax(scale * q k^T + mask) v over the last axes of tensors, for one kernel.
//
// Contract: attention_stage() takes a node cutegen.attention (graph/attention.h). Its operands must
// be views of the task's tensors, or of values that earlier stages keep in scratch. Otherwise the
// result is an error, and `cut` names the operand that an earlier stage would have to keep. The
// stage writes one contiguous tensor.
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
  // `row` is the stride to the next query or key, `along` the stride along depth or width.
  Stride batch, head, row, along;
  Stride slice = {};              // stride along the sliced axis, if the operand is a slice
  int64_t index = 0, slices = 1;  // index and size along the sliced axis
};

struct Attention {
  AttentionNode node;
  Fused loads;  // holds the axes, in the order of AxisOf
  Attended q, k, v, out;
  // In the mask, `row` is the stride from one query to the next, and `along` from one key to the
  // next.
  std::optional<Attended> mask;
  std::vector<FusedOutput> outputs;

  // The axes of `loads`. The three axes from kSlices on are those along which q, k and v are
  // slices.
  enum AxisOf { kBatch, kHead, kKeyHead, kRow, kKey, kDepth, kWidth, kSlices };
  int64_t size(AxisOf axis) const { return loads.axes[size_t(axis)].size; }
  const std::string& extent(AxisOf axis) const { return loads.axes[size_t(axis)].extent; }
  DType element() const { return q.operand.dtype; }
};

struct AttentionAttempt {
  Result<Attention> attention;
  std::string cut;
};

// `output` describes the tensor that the stage writes, the node's value.
AttentionAttempt attention_stage(const Region& region, const Node& node,
                                 const Region::Output& output);

}  // namespace cutegen::recipes
