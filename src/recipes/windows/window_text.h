// SPDX-License-Identifier: Apache-2.0
// Source text that the kernels of the windows recipe share: sizes and strides, and the epilogue,
// which is the work after a convolution or pooling (the window).
//
// Contract: geometry() lists the sizes and strides of the input, the result and the weights for
// three axes. Missing axes come first and have size 1. Tail writes the epilogue: the device
// function `compute` for one element, and the statements that call it at the position (n, channel,
// p0, p1, p2) with the window's result, `window`. Tail::By::place is for kernels that compute the
// epilogue of many channels of a position together. There `at`, a Place, has the position's offset
// in each tensor, and the statements read channel `c` relative to it. Such a stage may reduce over
// the channels: then passes() comes before finish(). If by_row(), finish() computes one value for
// all channels of a position.
//
// Pieces are the device functions of the epilogue: one before each reduction over the channels, and
// one before the outputs. The functions have two kinds of parameters. The values of a row (results
// of reductions, and values that depend only on these) are computed once per position, by
// Pieces::rows(). The values of a channel are computed once per tile, by Pieces::of_channel(). If
// later work needs the window's result only through the operand of a reduction, that operand
// replaces it: softmax(conv(x) + b) keeps v = conv(x) + b, then exp(v - highest).
//
// Addresses writes the text that reads operands. With by_place, `at` has the offset of channel0,
// and the text reads channel `channel_of` relative to it. Three functions describe all text that
// was written so far: numbers() lists the strides that it uses, offsets() the members of Place with
// their values, and requirements() the conditions on strides that the plan must state.
//
// Example: Tail tail(fused); tail.compute(); tail.finish(); tail.numbers()
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "recipes/text/kernel_text.h"

namespace cutegen::recipes {

// Numbers that a kernel takes as arguments, with their plan expressions.
using Numbers = std::vector<std::pair<std::string, std::string>>;

Numbers geometry(const Fused& fused);
// The number of groups as a plan expression.
std::string groups_text(const Fused& fused);
// Channels of a group: output channels at the official shape; input and output channels as plan
// expressions.
int64_t out_of_group(const Fused& fused);
std::string in_of_group_text(const Fused& fused);
std::string out_of_group_text(const Fused& fused);
// The largest offset of an element within one image.
std::string last_of_image(const Fused& fused);
// Element `axis` of a list that is extended to three axes: `list` has the last ones, and the first
// ones are `missing`.
int64_t padded(const Shape& list, size_t axis, int64_t missing);
// Adds numbers to the arguments; returns their declarations.
std::string add_numbers(Json& args, const Numbers& numbers);

// Fills a template that is part of a kernel's file, and drops its licence line.
std::string fragment(const std::string& path, const std::map<std::string, std::string>& values);

// The stage's reductions, all over the channels of one position, in the order of their passes.
std::vector<int> row_reductions(const Fused& fused);

// A device function that computes values of one element.
struct Piece {
  std::string name;
  std::vector<int> targets = {}, leaves = {}, body = {};
  std::vector<int> rows = {}, channels = {};  // parameters, per position and per channel
  int source = -1;        // the window's result, or the value that replaced it; -1: not needed
  bool counts = false;    // whether the function takes the number of channels
  bool replaces = false;  // later pieces take its result instead of the window's
};

// The device functions of the epilogue. channels: the values that differ only from channel to
// channel.
class Pieces {
 public:
  Pieces(const Fused& fused, Code& code, std::vector<int> channels);
  const std::vector<int>& reductions() const { return reductions_; }
  // The piece before a reduction, or before the outputs.
  const Piece& piece(size_t index) const { return pieces_[index]; }
  const Piece& last() const { return pieces_.back(); }
  // The function that computes the values of a row which a piece needs, except results of
  // reductions.
  const Piece& rows(size_t index) const { return rows_[index]; }
  // The function that computes the values of a channel. If there are none, it has no targets.
  const Piece& of_channel() const { return of_channel_; }
  // Whether the outputs have one value for all channels of a position.
  bool by_row() const;
  // Writes the functions of all pieces.
  std::string functions();
  // The statement that calls a piece's function. `rows` is the text before the name of a row's
  // value; if it is empty, the statement reads the values where reduce() keeps them.
  std::string call(const Piece& piece, const std::vector<std::string>& leaves,
                   const std::string& rows, const std::vector<std::string>& results) const;
  // The result of a reduction at the current position.
  std::string row_text(int reduction) const;

 private:
  const Inst& at(int inst) const { return fused_.insts[size_t(inst)]; }
  bool hoisted(const Inst& inst) const;
  std::vector<int> beneath(const std::vector<int>& targets, int source, bool hoists) const;
  bool replaces(size_t index, int taken, int source) const;
  Piece piece(const std::string& name, const std::vector<int>& targets, int source,
              bool hoists) const;
  bool given(int inst, bool hoists) const;
  Piece rows_piece(const Piece& piece);
  std::string function(const Piece& piece, const std::vector<std::string>& results) const;

  const Fused& fused_;
  const WindowLeaf& leaf_;
  Code& code_;
  std::vector<int> results_, reductions_, channels_;
  std::vector<Piece> pieces_, rows_;
  Piece of_channel_;
};

// Whether an operand differs from position to position. If not (a bias, for example), it stays in
// the L1 cache, and reading it in advance would only cost registers.
bool differs(const Operand& o);

// The text that reads the kernel's operands.
class Addresses {
 public:
  Addresses(const Fused& fused, Code& code, bool by_place)
      : fused_(fused), code_(code), by_place_(by_place) {}
  std::string element(const Operand& o, const std::string& word, const char* channel_of);
  // The element at `channel` and, if it has more axes, at n, p0, p1 and p2.
  std::string element_here(const Operand& o, const std::string& word);
  const Numbers& numbers() const { return numbers_; }
  const Numbers& offsets() const { return offsets_; }
  const std::vector<std::string>& requirements() const { return requirements_; }

 private:
  // `offset`: the member of Place. `channel`: the channels' stride, or empty.
  struct Address {
    std::string offset, channel;
  };
  std::string element_by_place(const Operand& o, const std::string& word, const char* channel_of);
  std::string axis_text(int axis, const char* channel) const;
  void add_start(const Operand& o, const std::string& word, std::vector<std::string>& terms);
  std::string step_text(const Operand& o, size_t axis) const;

  const Fused& fused_;
  Code& code_;
  bool by_place_;
  Numbers numbers_, offsets_;
  std::vector<std::string> requirements_;
  std::map<const Operand*, Address> found_;
};

// Reads the operands of an epilogue and declares the kernel's tensors.
class TailOperands {
 public:
  // Declares every tensor once: the window's operands, other inputs, outputs.
  std::string declare(Json& args) const;

 protected:
  TailOperands(const Fused& fused, bool by_place);
  std::string load(int inst, const std::string& word, const char* channel_of);
  const Inst& at(int inst) const { return fused_.insts[size_t(inst)]; }
  const Operand& operand(int inst) const { return fused_.inputs[size_t(at(inst).operand)]; }
  const std::string& name(const Operand& o) const { return fused_.names.at(o.tensor); }

  const Fused& fused_;
  const WindowLeaf& leaf_;
  Code code_;
  Addresses addresses_;
  std::vector<int> leaves_;
};

// Writes the epilogue.
class Tail : public TailOperands {
 public:
  enum class By { element, place };
  explicit Tail(const Fused& fused, By by = By::element);
  // The strides that the statements of finish() use.
  const Numbers& numbers() const { return addresses_.numbers(); }
  // Writes the device functions for one element: from the window's result to what each reduction
  // takes, and to the outputs.
  std::string compute() { return pieces_.functions(); }
  // Writes the statements that reduce over the channels.
  std::string passes();
  // After reductions over the channels: declares `Placed`, a Place with the values of its row,
  // which the statements of finish() read. Otherwise empty.
  std::string placed();
  // Writes the statement that computes and keeps the values of each channel.
  std::string channels();
  // Whether the outputs have one value for all channels of a position.
  bool by_row() const { return pieces_.by_row(); }
  std::string finish();
  // With Tail::By::place, after passes() and finish(): the members of Place, and their values for
  // channel0.
  const Numbers& offsets() const { return addresses_.offsets(); }
  // With Tail::By::place, finish() only computes. The next functions return the members of Reads,
  // the statements that read them, the members of Results, and the statements that store them.
  const std::string& members() const { return members_; }
  const std::string& reads() const { return reads_; }
  const std::string& results() const { return results_of_place_; }
  const std::string& stores() const { return stores_; }
  // How many results to compute together. Each of them keeps its operands in registers.
  int together() const;
  // The conditions on the operands' strides that the plan must state.
  const std::vector<std::string>& requirements() const { return addresses_.requirements(); }

 private:
  std::string pass(size_t index);
  std::string rows_text(size_t index, const std::string& type, const std::string& rows_at);
  std::string kept(const Piece& piece) const;
  std::string finish_row();

  By by_;
  Pieces pieces_;
  std::string members_, reads_, results_of_place_, stores_;
};

}  // namespace cutegen::recipes
