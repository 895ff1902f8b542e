// SPDX-License-Identifier: Apache-2.0
// Source text that the kernels of the windows recipe share: sizes and strides, and the epilogue.
// The epilogue is the pointwise work after a convolution or pooling (the window).
//
// Contract: geometry() lists the sizes and strides of the input, the result and the weights for
// three axes. If the window has fewer axes, the missing ones come first and have size 1. A `Tail`
// writes the epilogue. It consists of the device function `compute` for one element, and of
// statements that call it at the position (n, channel, p0, p1, p2) with the window's result,
// `window`.
//
// Tail::By::place is for kernels that compute the epilogue of many channels of a position together.
// The kernel's variable `at`, a struct Place, then has the offset of the position in each tensor,
// and the statements read channel `c` relative to it. The epilogue of such a stage may also reduce
// over the channels. The kernel then contains the text of passes() before the text of finish(). If
// by_row() is true, finish() computes one value for all channels of a position.
//
// A `Piece` is one device function of the epilogue. There is one before each reduction over the
// channels, and one before the outputs. Besides elements, a Piece has two kinds of parameters. The
// values of a row are results of reductions, and values that depend only on these; Pieces::rows()
// computes them once per position. The values of a channel are computed once per tile, by
// Pieces::of_channel(). If later work needs the window's result only through the operand of a
// reduction, the kernel stores that operand in its place: softmax(conv(x) + b) keeps v = conv(x) +
// b, and then exp(v - highest).
//
// `Addresses` writes the text that reads operands. If by_place is set, `at` has the offset of
// channel0, and the text reads channel `channel_of` relative to it. Three functions describe all
// text written so far. numbers() lists the strides that it uses, offsets() the members of Place
// with their values, and requirements() the conditions on strides that the plan must contain.
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

// The numeric arguments of a kernel, as pairs of a name and a plan expression.
using Numbers = std::vector<std::pair<std::string, std::string>>;

Numbers geometry(const Fused& fused);
std::string groups_text(const Fused& fused);
// Return the output channels of a group at the official shape, and the input and the output
// channels of a group as plan expressions.
int64_t out_of_group(const Fused& fused);
std::string in_of_group_text(const Fused& fused);
std::string out_of_group_text(const Fused& fused);
// Returns the largest offset of an element within one image, as a plan expression.
std::string last_of_image(const Fused& fused);
// Extends `list` to three axes by putting `missing` in front of it, and returns element `axis`.
int64_t padded(const Shape& list, size_t axis, int64_t missing);
// Appends the numbers to a launch's arguments and returns their declarations for the kernel.
std::string add_numbers(Json& args, const Numbers& numbers);

// Fills a template that is only a part of a kernel's file, and removes its licence line.
std::string fragment(const std::string& path, const std::map<std::string, std::string>& values);

// Returns the stage's reductions in the order of their passes. All of them reduce over the channels
// of a position.
std::vector<int> row_reductions(const Fused& fused);

// A device function of the epilogue. The vectors contain instructions: `targets` are the results,
// `leaves` the elements that the function receives, and `body` its statements.
struct Piece {
  std::string name;
  std::vector<int> targets = {}, leaves = {}, body = {};
  std::vector<int> rows = {}, channels = {};  // parameters: values of the row, of the channel
  int source = -1;      // the window's result or its replacement; -1 if the function needs neither
  bool counts = false;  // whether the function takes the number of channels
  bool replaces = false;  // later pieces receive its result instead of the window's
};

// The device functions of the epilogue. `channels` are the values that depend only on the channel.
class Pieces {
 public:
  Pieces(const Fused& fused, Code& code, std::vector<int> channels);
  const std::vector<int>& reductions() const { return reductions_; }
  // Returns the piece before reduction `index`; after the last reduction, the piece before the
  // outputs.
  const Piece& piece(size_t index) const { return pieces_[index]; }
  const Piece& last() const { return pieces_.back(); }
  // Returns the function that computes the row values for piece `index`, except results of
  // reductions.
  const Piece& rows(size_t index) const { return rows_[index]; }
  // Returns the function that computes the values of a channel. If there are no such values, the
  // function has no targets.
  const Piece& of_channel() const { return of_channel_; }
  // Whether the outputs have one value for all channels of a position.
  bool by_row() const;
  std::string functions();
  // Writes the statement that calls a piece's function. The arguments for row values are `rows`
  // followed by the value's name. If `rows` is empty, they are row_text().
  std::string call(const Piece& piece, const std::vector<std::string>& leaves,
                   const std::string& rows, const std::vector<std::string>& results) const;
  // Writes the expression that reads the result of a reduction at the current position.
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

// Whether an operand differs from position to position. If it does not (a bias, for example), it
// stays in the L1 cache, and loading it in advance would only cost registers.
bool differs(const Operand& o);

class Addresses {
 public:
  Addresses(const Fused& fused, Code& code, bool by_place)
      : fused_(fused), code_(code), by_place_(by_place) {}
  std::string element(const Operand& o, const std::string& word, const char* channel_of);
  // Writes the element of `o` at the kernel's variables n, channel, p0, p1 and p2.
  std::string element_here(const Operand& o, const std::string& word);
  const Numbers& numbers() const { return numbers_; }
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
  Numbers numbers_, offsets_;
  std::vector<std::string> requirements_;
  std::map<const Operand*, Address> found_;
};

// Base of Tail: writes the loads of an epilogue's operands and the declarations of the tensors.
class TailOperands {
 public:
  // Writes the declarations of all tensors as kernel parameters and appends them to the arguments.
  // The order is the window's operands, other inputs, outputs. No tensor appears twice.
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

class Tail : public TailOperands {
 public:
  enum class By { element, place };
  explicit Tail(const Fused& fused, By by = By::element);
  // The strides that the statements written so far use.
  const Numbers& numbers() const { return addresses_.numbers(); }
  // Writes the device functions for one element. They compute the operand of each reduction and the
  // outputs from the window's result.
  std::string compute() { return pieces_.functions(); }
  // Writes the statements that reduce over the channels.
  std::string passes();
  // If the stage reduces over the channels, writes the struct `Placed`, a Place with the values of
  // its row. The statements of finish() read it. Otherwise returns "".
  std::string placed();
  // Writes the statements that compute the values of a channel and store them for all tiles.
  std::string channels();
  bool by_row() const { return pieces_.by_row(); }
  std::string finish();
  // The members of Place and their values for channel0, if the Tail has By::place. They are
  // complete only after the calls of passes() and finish().
  const Numbers& offsets() const { return addresses_.offsets(); }
  // With Tail::By::place, the statements of finish() neither load most operands nor store results.
  // The next four functions return the members of the kernel's struct Reads, the statements that
  // load them, the members of its struct Results, and the statements that store these.
  const std::string& members() const { return members_; }
  const std::string& reads() const { return reads_; }
  const std::string& results() const { return results_of_place_; }
  const std::string& stores() const { return stores_; }
  // The number of results that a thread should compute together. More of them hide more latency,
  // but each needs registers for its operands.
  int together() const;
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
