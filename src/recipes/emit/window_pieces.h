// SPDX-License-Identifier: Apache-2.0
// The device functions of a kernel with a window: what comes before each reduction over the
// channels, and before the outputs.
//
// Contract: a Piece computes its targets for one element from the window's result. Values of the
// row (reductions, and what depends only on them) are given: a kernel computes them once a place,
// by the piece rows(). If all later work needs only what a reduction takes, these values replace
// the window's result. Pieces are in the order of the reductions; the last one computes the
// outputs.
//
// Example: softmax(conv(x) + b): x + b; exp(x - highest); x * inverse, where x has been replaced
#pragma once

#include <string>
#include <vector>

#include "recipes/emit/emit.h"

namespace cutegen::recipes {

// The stage's reductions, all over the channels of one place, in the order of their passes.
std::vector<int> row_reductions(const Fused& fused);

struct Piece {
  std::string name;
  std::vector<int> targets = {}, leaves = {}, rows = {}, body = {};  // rows: given once a place
  int source = -1;        // what it takes of the window: its result, or what has replaced it
  bool counts = false;    // takes the number of channels
  bool replaces = false;  // its result is what later pieces take
};

class Pieces {
 public:
  Pieces(const Fused& fused, Code& code);
  const std::vector<int>& reductions() const { return reductions_; }
  // The piece before a reduction, or before the outputs.
  const Piece& piece(size_t index) const { return pieces_[index]; }
  const Piece& last() const { return pieces_.back(); }
  // What computes those of a piece's values of the row that are no results of reductions.
  const Piece& rows(size_t index) const { return rows_[index]; }
  // Whether the outputs have one value for all channels of a place.
  bool by_row() const;
  // Writes the functions of all pieces.
  std::string functions();
  // Calls a piece's function. `rows` is the text before the name of a row's value; if it is empty,
  // the values are read where reduce() keeps them.
  std::string call(const Piece& piece, const std::vector<std::string>& leaves,
                   const std::string& rows, const std::vector<std::string>& results) const;
  // The result of a reduction at the current place.
  std::string row_text(int reduction) const;

 private:
  const Inst& at(int inst) const { return fused_.insts[static_cast<size_t>(inst)]; }
  bool hoisted(const Inst& inst) const;
  std::vector<int> beneath(const std::vector<int>& targets, int source, bool hoists) const;
  bool replaces(size_t index, int taken, int source) const;
  Piece piece(const std::string& name, const std::vector<int>& targets, int source,
              bool hoists) const;
  Piece rows_piece(const Piece& piece);
  std::string function(const Piece& piece, const std::vector<std::string>& results) const;

  const Fused& fused_;
  const WindowLeaf& leaf_;
  Code& code_;
  std::vector<int> results_, reductions_;
  std::vector<Piece> pieces_, rows_;
};

}  // namespace cutegen::recipes
