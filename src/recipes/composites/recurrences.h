// SPDX-License-Identifier: Apache-2.0
// Recurrences: the sequential part of an LSTM, GRU or RNN layer, which computes the states step by
// step. Before the sequential part, a matrix product over all steps computes the contribution of
// the inputs.
//
// Contract: the Rule (expansion.h) covers aten.lstm.input, aten.gru.input, aten.rnn_tanh.input and
// aten.rnn_relu.input. For each layer, the Rule writes one product of all inputs per direction, and
// one node cutegen.recurrence(sides, first, first_cell, kind, batch_first, cell). `sides` has one
// entry per direction of the layer: [inputs, weight, bias or null]. The second direction of a
// bidirectional layer processes the steps from last to first. `first` and `first_cell` are the
// initial states of all layers and directions, or null. `cell` is the index of the layer's first
// direction in `first` and `first_cell`.
//
// A cutegen.recurrence has these results: the states of all steps, the last states [directions,
// batch, states] and, for an LSTM, the last cell states. The axes of the states of all steps have
// the same order as the axes of the inputs, and the last axis concatenates the directions. The
// tensors `inputs` are float32. All other tensors of the node have the layer's dtype: float32,
// float16 or bfloat16. The Rule does not apply if dropout is active, if an LSTM has projections, or
// if a layer has more than kMostStates states.
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
  // The operands of one direction of a layer. `bias` is empty if the layer has no bias.
  struct Side {
    std::string inputs, weight, bias;
  };
  std::vector<Side> sides;
  std::string first, first_cell;  // names of initial states; empty if the states are zero
  CellKind kind = CellKind::lstm;
  bool batch_first = false;  // the order of axes is batch, steps, states
  int64_t cell = 0;          // where the layer's states begin in `first`, along axis 0
  // The sizes of the axes, as expressions of the launch plan.
  std::string steps = {}, batch = {}, states = {};
  int64_t gates() const { return kind == CellKind::lstm ? 4 : kind == CellKind::gru ? 3 : 1; }
};

// Reads a node cutegen.recurrence. Returns nullopt for nodes of other operators.
std::optional<Recurrence> find_recurrence(const Node& node);

}  // namespace cutegen::recipes
