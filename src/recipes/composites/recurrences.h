// SPDX-License-Identifier: Apache-2.0
// Recurrences: what remains of a recurrent layer after the product of all its inputs.
//
// Contract: the rule for aten.lstm.input, aten.gru.input, aten.rnn_tanh.input and
// aten.rnn_relu.input writes, for each layer, a product of all inputs for each direction, and one
// node cutegen.recurrence(sides, first, first_cell, kind, batch_first, cell). A side is a
// direction: [inputs, weight, bias or null]; the second side walks backwards. `first` has the
// initial states of all cells, or is null; `cell` is the layer's first cell. The results are the
// states of all steps (axes as in the inputs; the last axis joins the states of the sides), the
// last states [sides, batch, states] and, of an LSTM, the last cells. The inputs are float32; all
// else has the layer's dtype: float32, float16 or bfloat16. Dropout must not act.
//
// Example: find_recurrence(node)->gates() == 4 for an LSTM
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph.h"

namespace cutegen::recipes {

inline constexpr const char* kRecurrence = "cutegen.recurrence";
inline constexpr int64_t kMostStates = 4096;  // of a kernel that keeps them in shared memory

enum class CellKind { lstm, gru, tanh, relu };

struct Recurrence {
  // The operands of a direction; an empty name: none.
  struct Side {
    std::string inputs, weight, bias;
  };
  std::vector<Side> sides;
  std::string first, first_cell;  // an empty name: zero
  CellKind kind = CellKind::lstm;
  bool batch_first = false;  // the axes are batch, steps, states
  int64_t cell = 0;          // of the first side, in PyTorch's order
  // Plan expressions.
  std::string steps = {}, batch = {}, states = {};
  int64_t gates() const { return kind == CellKind::lstm ? 4 : kind == CellKind::gru ? 3 : 1; }
};

// Nothing for other operators.
std::optional<Recurrence> find_recurrence(const Node& node);

}  // namespace cutegen::recipes
