// SPDX-License-Identifier: Apache-2.0
// Source text that the kernels of the windows recipe share: sizes and strides, and the epilogue.
// The epilogue is the pointwise work after a convolution or pooling (the window).
//
// Contract: geometry() lists the sizes and strides of the input, the result and the weights for
// three axes. A window with fewer than three axes gets additional first axes with size 1. A `Tail`
// writes the epilogue: the device function `compute` for one element, and statements that call
// `compute` at the position (n, channel, p0, p1, p2) with the window's result, `window`.
//
// Tail::By::place is for kernels that compute the epilogue of many channels of a position together.
// In a kernel with Tail::By::place, the variable `at`, a struct Place, has the offset of the
// position in each tensor, and the statements read channel `c` relative to this offset. An epilogue
// with Tail::By::place may also reduce over the channels; a kernel with such reductions contains
// the text of passes() before the text of finish(). If by_row() is true, finish() computes one
// value for all channels of a position.
//
// A `Piece` is one device function of the epilogue. The epilogue has a Piece before each reduction
// over the channels, and one before the outputs. Besides elements, a Piece has two kinds of
// parameters: values of a row and values of a channel. The values of a row are results of
// reductions, and values that depend only on results of reductions; the function Pieces::rows()
// computes the values of a row once per position. The function Pieces::of_channel() computes the
// values of a channel once per tile. If later work needs the window's result only through the
// operand of a reduction, the kernel stores this operand in place of the window's result: for
// softmax(conv(x) + b), the kernel stores v = conv(x) + b, and later exp(v - highest).
//
// Tail::By::channel is for kernels whose CTA computes results of one channel: finish() then reads
// the values of the channel from the variable `kept`, which the statements of of_channel() define.
//
// Tail::By::strip works like Tail::By::channel, for kernels whose threads compute strips of kStrip
// results along the last axis. The statements of finish() compute result `v` of a strip. results()
// declares the strips, and stores() stores them, as vectors if kWhole is true.
//
// `Addresses` writes the text that reads operands. If by_place is set, `at` has the offset of
// channel0, and the text reads channel `channel_of` relative to this offset. For all text that an
// `Addresses` has written, numbers() lists the strides in the text, offsets() lists the members of
// Place with their values, and requirements() lists the conditions on strides that the plan must
// contain.
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

// The numeric arguments of a kernel, as pairs of a name and an expression of the launch plan.
using Numbers = std::vector<std::pair<std::string, std::string>>;

Numbers geometry(const Fused& fused);
std::string groups_text(const Fused& fused);
// out_of_group() returns the number of output channels of a group in the task file.
// in_of_group_text() and out_of_group_text() return the numbers of input and output channels of a
// group as plan expressions.
int64_t out_of_group(const Fused& fused);
std::string in_of_group_text(const Fused& fused);
std::string out_of_group_text(const Fused& fused);
// Returns the largest offset of an element within one image, as a plan expression.
std::string last_of_image(const Fused& fused);
// Returns a plan expression that is 0 if pairs of neighbours along the last axis are aligned in the
// outputs. along_last() returns whether the last axis of each output is the stage's last axis.
std::string misaligned_pairs(const Fused& fused);
bool along_last(const Fused& fused);
// Extends `list` to three axes by inserting `missing` at the front, and returns element `axis`.
int64_t padded(const Shape& list, size_t axis, int64_t missing);
// Declares the constants kStride0, kPadding0, kDilation0, ... and, if `kernel` is true, the
// filter sizes kKernel0, ...
std::string constants(const Window& window, bool kernel);
// Appends the numbers to a launch's arguments and returns their declarations for the kernel.
std::string add_numbers(Json& args, const Numbers& numbers);

// Fills a template for a part of a kernel's file, and removes the template's licence line.
std::string fragment(const std::string& path, const std::map<std::string, std::string>& values);

// Returns the stage's reductions, which reduce over the channels of a position, in the order of
// their passes.
std::vector<int> row_reductions(const Fused& fused);

// A device function of the epilogue. The vectors contain instructions: `targets` are the results,
// `leaves` the elements that the function receives, and `body` the statements of the function.
struct Piece {
  std::string name;
  std::vector<int> targets = {}, leaves = {}, body = {};
  std::vector<int> rows = {}, channels = {};  // parameters: values of a row, of a channel
  int source = -1;        // parameter: the window's result or its replacement; -1: none
  bool counts = false;    // the function takes the number of channels
  bool replaces = false;  // later pieces get this piece's result, not the window's
};

// The device functions of the epilogue. `channels` lists the values that depend only on the
// channel.
class Pieces {
 public:
  Pieces(const Fused& fused, Code& code, std::vector<int> channels);
  const std::vector<int>& reductions() const { return reductions_; }
  // Returns the piece before reduction `index` or, after the last reduction, before the outputs.
  const Piece& piece(size_t index) const { return pieces_[index]; }
  const Piece& last() const { return pieces_.back(); }
  // Returns the function that computes the values of a row for piece `index`, except results of
  // reductions.
  const Piece& rows(size_t index) const { return rows_[index]; }
  // Returns the function that computes the values of a channel; without such values, the function
  // has no targets.
  const Piece& of_channel() const { return of_channel_; }
  // Returns whether the outputs have one value for all channels of a position.
  bool by_row() const;
  std::string functions();
  // Writes the statement that calls a piece's function. The argument for a value of a row is `rows`
  // followed by the value's name or, if `rows` is empty, row_text().
  std::string call(const Piece& piece, const std::vector<std::string>& leaves,
                   const std::string& rows, const std::vector<std::string>& results) const;
  // Writes the expression that reads the result of a reduction at the kernel's current position.
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

// Returns whether an operand differs from position to position. An operand that does not differ,
// such as a bias, stays in the L1 cache, and loading it in advance would only cost registers.
bool differs(const Operand& o);

class Addresses {
 public:
  Addresses(const Fused& fused, Code& code, bool by_place)
      : fused_(fused), code_(code), by_place_(by_place) {}
  std::string element(const Operand& o, const std::string& word, const char* channel_of);
  // Writes the element of `o` at the position (n, channel, p0, p1, p2) in the kernel's variables.
  std::string element_here(const Operand& o, const std::string& word);
  const Numbers& numbers() const { return numbers_; }
  // Returns the strides along the last axis. These strides are nearly always 1, and positions whose
  // distance is constant share their address arithmetic if the kernel knows the stride.
  const Numbers& constants() const { return constants_; }
  const Numbers& offsets() const { return offsets_; }
  const std::vector<std::string>& requirements() const { return requirements_; }

 private:
  // `offset` is the name of a member of Place. `channel` is the name of the argument with the
  // stride between channels, or "".
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
  Numbers numbers_, constants_, offsets_;
  std::vector<std::string> requirements_;
  std::map<const Operand*, Address> found_;
};

// Base of Tail: writes the loads of an epilogue's operands and the declarations of the tensors.
class TailOperands {
 public:
  // Writes the declarations of all tensors as kernel parameters and appends them to the arguments.
  // Each tensor appears once, in this order: the window's operands, other inputs, outputs.
  std::string declare(Json& args) const;

 protected:
  TailOperands(const Fused& fused, bool by_place);
  std::string load(int inst, const std::string& word, const char* channel_of);
  // Writes the loads of operands at the current channel, and adds the variables' names to `words`.
  std::string load_of_channel(const std::vector<int>& leaves, std::vector<std::string>& words);
  const Inst& at(int inst) const { return fused_.insts[size_t(inst)]; }
  const Operand& operand(int inst) const { return fused_.inputs[size_t(at(inst).operand)]; }
  const std::string& name(const Operand& o) const { return fused_.names.at(o.tensor); }

  const Fused& fused_;
  const WindowLeaf& leaf_;
  Code code_;
  Addresses addresses_;
  std::vector<int> leaves_;
};

class Tail : public TailOperands {
 public:
  enum class By { element, channel, place, strip };
  explicit Tail(const Fused& fused, By by = By::element);
  // Returns the strides in the text that the Tail's functions have written so far.
  const Numbers& numbers() const { return addresses_.numbers(); }
  const Numbers& constants() const { return addresses_.constants(); }
  // Writes the device functions for one element. These functions compute the operands of the
  // reductions, and the outputs, from the window's result.
  std::string compute() { return pieces_.functions(); }
  // Writes the statements that reduce over the channels. `of` is as in write_text().
  std::string passes(const std::string& of);
  // Writes the struct `Placed`, a Place with the values of its row, which the statements of
  // finish() read. Returns "" if the stage does not reduce over the channels.
  std::string placed();
  // Writes the statements that compute the values of a channel and store them for all tiles. `tile`
  // is an expression for the index of the CTA's tile along the channels.
  std::string channels(const std::string& tile);
  // With By::channel and By::strip, writes the statements that compute the values of a channel.
  std::string of_channel();
  bool by_row() const { return pieces_.by_row(); }
  std::string finish();
  // With By::place, returns the members of Place and their values for channel0. The list of
  // offsets() is complete only after the calls of passes() and finish().
  const Numbers& offsets() const { return addresses_.offsets(); }
  // With Tail::By::place, the statements of finish() neither load most operands nor store results.
  // members() returns the members of the kernel's struct Reads, reads() the loads of these members,
  // results() the members of its struct Results, and stores() the stores of these results.
  const std::string& members() const { return members_; }
  const std::string& reads() const { return reads_; }
  const std::string& results() const { return results_of_place_; }
  const std::string& stores() const { return stores_; }
  // Writes the stores of two results, `result` and `next`, at neighbouring positions.
  const std::string& pair_stores() const { return pair_stores_; }
  // Returns how many results a thread should compute together. More results hide more latency, but
  // each result needs registers for its operands.
  int together() const;
  const std::vector<std::string>& requirements() const { return addresses_.requirements(); }

 private:
  std::string pass(size_t index, const std::string& of);
  std::string rows_text(size_t index, const std::string& type, const std::string& rows_at);
  std::string kept(const Piece& piece) const;
  std::string finish_row();
  std::string strip_element(const Operand& output, const std::string& to);

  By by_;
  Pieces pieces_;
  std::string members_, reads_, results_of_place_, stores_, pair_stores_;
};

// Writes the epilogue of a kernel with Tail::By::place: for each element or, after reductions over
// the channels, for each position. `of` has the first arguments of the engine's write(). If `pairs`
// is true, the text can also store two neighbouring results at once.
std::string write_text(Tail& tail, const std::string& of, bool pairs);

}  // namespace cutegen::recipes
