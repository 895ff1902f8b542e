// SPDX-License-Identifier: Apache-2.0
// Recurrences: what remains of a recurrent layer after the product of all its inputs.
//
// Contract: the rule for aten.lstm.input, aten.gru.input, aten.rnn_tanh.input and
// aten.rnn_relu.input writes, for each layer and direction, a product of all inputs and a node
// cutegen.recurrence(inputs, weight, bias, first, first_cell, kind, reversed, batch_first, cell).
// The operands from `bias` on may be null; `first` has the initial states of all cells. The results
// are the states of all steps (axes as those of the inputs), the last state and, of an LSTM, the
// last cell. The inputs are float32; all else has the layer's dtype, float32, float16 or bfloat16.
// Dropout must not act.
//
// Example: find_recurrence(node)->gates() == 4 for an LSTM
#pragma once

#include <array>
#include <optional>
#include <string>

#include "core/graph.h"

namespace cutegen::recipes {

inline constexpr const char* kRecurrence = "cutegen.recurrence";
inline constexpr int64_t kMostStates = 4096;  // of a kernel that keeps them in shared memory

enum class CellKind { lstm, gru, tanh, relu };

struct Recurrence {
  std::array<std::string, 5> operands;  // inputs, weight, bias, first, first_cell; empty: none
  CellKind kind = CellKind::lstm;
  bool reversed = false;     // the last step comes first
  bool batch_first = false;  // the axes are batch, steps, states
  int64_t cell = 0;          // its layer and direction, in PyTorch's order
  // Plan expressions.
  std::string steps = {}, batch = {}, states = {};
  int64_t gates() const { return kind == CellKind::lstm ? 4 : kind == CellKind::gru ? 3 : 1; }
};

// Nothing for other operators.
std::optional<Recurrence> find_recurrence(const Node& node);

}  // namespace cutegen::recipes
