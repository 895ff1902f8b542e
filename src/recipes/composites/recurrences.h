// SPDX-License-Identifier: Apache-2.0
// Recurrences: the sequential part of an LSTM, GRU or RNN layer, which computes the states step by
// step. A matrix product over all steps computes the contribution of the inputs beforehand.
//
// Contract: the rule for aten.lstm.input, aten.gru.input, aten.rnn_tanh.input and
// aten.rnn_relu.input writes, for each layer, one product of all inputs per direction, and one node
// cutegen.recurrence(sides, first, first_cell, kind, batch_first, cell). `sides` has one entry per
// direction: [inputs, weight, bias or null]. The second direction processes the steps from last to
// first. `first` and `first_cell` are the initial states of all layers and directions, or null.
// `cell` is the index of the layer's first direction in these tensors.
//
// The node has these results: the states of all steps, the last states [directions, batch, states]
// and, for an LSTM, the last cell states. The first result has its axes in the same order as the
// inputs, and its last axis concatenates the directions. The inputs of the node are float32. All
// other tensors have the layer's dtype: float32, float16 or bfloat16. The rule does not apply if
// dropout is active.
//
// Example: find_recurrence(node)->gates() == 4 for an LSTM
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph.h"

namespace cutegen::recipes {

inline constexpr const char* kRecurrence = "cutegen.recurrence";
inline constexpr int64_t kMostStates = 4096;  // kernels keep a row of states in shared memory

enum class CellKind { lstm, gru, tanh, relu };

struct Recurrence {
  // The operands of one direction of a layer. If there is no bias, its name is empty.
  struct Side {
    std::string inputs, weight, bias;
  };
  std::vector<Side> sides;
  std::string first, first_cell;  // names of initial states; empty if they are zero
  CellKind kind = CellKind::lstm;
  bool batch_first = false;  // the axes are batch, steps, states
  int64_t cell = 0;          // index of the layer's first direction in `first`
  // The sizes of the axes, as plan expressions.
  std::string steps = {}, batch = {}, states = {};
  int64_t gates() const { return kind == CellKind::lstm ? 4 : kind == CellKind::gru ? 3 : 1; }
};

// Returns nullopt if the node is not a cutegen.recurrence.
std::optional<Recurrence> find_recurrence(const Node& node);

}  // namespace cutegen::recipes
