// SPDX-License-Identifier: Apache-2.0
// Finds attention in a graph: a product, a masked softmax of its rows, and a second product.
//
// Contract: fuse_attention() replaces the nodes of each attention by one node cutegen.attention(q,
// k, v, mask) if q, k and v have the same 16-bit dtype, no other node reads an intermediate value,
// and the scale is positive. It does not change other nodes. read_attention() returns the operands
// and options of a cutegen.attention node.
//
// Example: softmax(q @ k.mT * 0.125, -1) @ v -> cutegen.attention(q, k, v, null)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph.h"

namespace cutegen::recipes {

// Says which part of a tensor the operand q, k or v is: the whole tensor, or tensor.select(axis,
// index) if `axis` is not -1.
struct AttentionSlice {
  int axis = -1;  // -1: the operand is the whole tensor
  int64_t index = 0;
};

// The operands and options of an attention. q has the axes batch, head, row, depth; k has batch,
// head, key, depth; v has batch, head, key, width. If `heads` is false, q, k and v have no head
// axis.
struct AttentionNode {
  std::string q, k, v, mask;  // names of values; `mask` may be empty
  AttentionSlice slice_q, slice_k, slice_v;
  double scale = 1;
  bool safe = false;     // a row whose keys are all masked gives zeros, not NaN
  bool turned = false;   // the axes of k are batch, head, depth, key
  bool grouped = false;  // several heads of q use the same head of k and v
  bool causal = false;   // row r attends only to the keys 0 ... r + diagonal
  int64_t diagonal = 0;
  bool hides = false;      // the mask is boolean, and true for keys to ignore
  bool heads = false;      // q, k and v have a head axis
  std::vector<int> order;  // the result's axes as stored: 0 batch, 1 head, 2 row, 3 width
};

Graph fuse_attention(Graph graph);
bool is_attention(const Node& node);
AttentionNode read_attention(const Node& node);

}  // namespace cutegen::recipes
