// SPDX-License-Identifier: Apache-2.0
// Finds attention in a graph: a product, a masked softmax of its rows, and a second product.
//
// Contract: fuse_attention() replaces each such part by one node cutegen.attention(q, k, v, mask),
// if q, k and v have one 16-bit type, no other node reads an intermediate value, and the scale is
// positive. read_attention() returns what the node computes. The rest of the graph does not change.
//
// Example: softmax(q @ k.mT * 0.125, -1) @ v -> cutegen.attention(q, k, v, null)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph.h"

namespace cutegen::recipes {

// A factor that is a slice of a tensor with one more axis: the slice at `index` of `axis`.
struct AttentionSlice {
  int axis = -1;  // -1: the factor is the whole tensor
  int64_t index = 0;
};

// The axes of q are batch, head, row, depth; of k and v: batch, head, key, depth or width. Without
// heads, tensors have three axes.
struct AttentionNode {
  std::string q, k, v, mask;  // mask: may be empty
  AttentionSlice slice_q, slice_k, slice_v;
  double scale = 1;
  bool safe = false;     // rows without keys are zero, not NaN
  bool turned = false;   // k is transposed: depth comes before keys
  bool grouped = false;  // several heads of q share one of k and v
  bool causal = false;   // a row sees keys up to row + diagonal
  int64_t diagonal = 0;
  bool hides = false;      // a boolean mask is true for keys to ignore
  bool heads = false;      // q, k and v have an axis of heads
  std::vector<int> order;  // the result's axes in memory: 0 batch, 1 head, 2 row, 3 width
};

Graph fuse_attention(Graph graph);
bool is_attention(const Node& node);
AttentionNode read_attention(const Node& node);

}  // namespace cutegen::recipes
