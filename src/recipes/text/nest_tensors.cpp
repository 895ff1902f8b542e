// SPDX-License-Identifier: Apache-2.0
#include "recipes/text/nest_tensors.h"

#include <fmt/format.h>

#include <algorithm>

namespace cutegen::recipes {

std::string shape_text(const std::vector<Loop>& loops, char prefix, bool vectors) {
  std::vector<std::string> list;
  for (size_t i = loops.size(); i-- > 0;) {
    std::string size =
        fmt::format("{}{}{}", prefix, i, vectors && i + 1 == loops.size() ? " / kVector" : "");
    list.push_back(prefix == 'r' ? fmt::format("Index({})", size) : size);
  }
  return tuple_of("make_shape", list);
}

std::string NestTensors::view(const Operand& operand) {
  if (operand.is_joined()) return view(operand.joined);
  std::string element = "Int<0>{}";
  const std::string along = strides_over(operand, nest_.reduced, 'r', row(), &element);
  return view(operand, element, along);
}

std::string NestTensors::view(const Operand& operand, std::string element,
                              const std::string& along) {
  return view(operand, std::move(element), along, "cutegen::positions");
}

std::string NestTensors::view(const Operand& operand, std::string element, const std::string& along,
                              const std::string& positions) {
  const std::string from = base(operand, &element);
  const std::string tensor =
      operand.counts ? positions + "(" + from : fmt::format("make_tensor(make_gmem_ptr({})", from);
  return fmt::format(
      "{},\n    make_layout(make_shape(Int<kVector>{{}}, along), make_stride({}, {})))", tensor,
      element, along);
}

// Writes the view of joined operands. The view finds the operand that an element comes from.
std::string NestTensors::view(const JoinedParts& joined) {
  constexpr int64_t kShort = 2'000'000'000;  // positions take 32 bits
  const char* type = nest_.rows() <= kShort && nest_.length() <= kShort ? "int" : "int64_t";
  std::string element = "Int<0>{}";
  const Operand& places = fused_.inputs[size_t(joined.place)];
  const std::string along = strides_over(places, nest_.reduced, 'r', row(), &element);
  const std::string at = view(places, element, along, fmt::format("cutegen::positions<{}>", type));
  std::string text = fmt::format("cutegen::joined({},\n    cutegen::ends<{}>({})", at, type,
                                 fmt::join(joined.ends, ", "));
  for (int operand : joined.operands) text += ",\n    " + view(fused_.inputs[size_t(operand)]);
  return text + ")";
}

// Operands that read the same tensor share their arguments, so that the compiler finds the common
// parts of their addresses.
std::string NestTensors::argument(const Operand& operand, const std::string& word,
                                  const std::string& expression) {
  std::string& known = arguments_[operand.tensor + " " + expression];
  if (known.empty()) {
    known = code_.word(word);
    strides_.emplace_back(known, expression);
  }
  return known;
}

std::string NestTensors::strides_over(const Operand& operand, const std::vector<Loop>& loops,
                                      char prefix, bool vectors, std::string* element) {
  std::vector<std::string> list;
  for (size_t i = loops.size(); i-- > 0;) {
    Stride s = stride(fused_, operand, loops[i]);
    std::string text = s.move == Move::none ? "Int<0>{}" : "Int<1>{}";
    if (s.move == Move::stride)
      text = argument(operand, fmt::format("{}_{}{}", fused_.names.at(operand.tensor), prefix, i),
                      s.expression);
    if (vectors && i + 1 == loops.size()) {
      *element = text;
      if (s.move == Move::next) text = "Int<kVector>{}";
      if (s.move == Move::stride) text += " * kVector";
    }
    list.push_back(text);
  }
  return tuple_of("make_stride", list);
}

bool NestTensors::once(const Start& start) const {
  const Operand& index = fused_.inputs[size_t(start.index)];
  const auto fixed = [&](const Loop& loop) {
    return std::all_of(loop.axes.begin(), loop.axes.end(),
                       [&](int axis) { return position(index, axis) < 0; });
  };
  return std::all_of(nest_.reduced.begin(), nest_.reduced.end(), fixed) &&
         (row() || fixed(nest_.kept.back()));
}

// The size of an axis and the stride along it, as arguments of the kernel.
std::string NestTensors::size_and_stride(const Operand& operand, size_t axis) {
  const std::string& name = fused_.names.at(operand.tensor);
  const std::string size =
      argument(operand, fmt::format("{}_size{}", name, axis), size_text(fused_, operand, axis));
  return size + ", " +
         argument(operand, fmt::format("{}_step{}", name, axis),
                  stride_text(fused_, operand, axis));
}

// The argument that holds what an index is added to or subtracted from; empty if there is none.
std::string NestTensors::first_of(const Operand& operand, const Start& start) {
  if (start.shift.empty()) return "";
  const std::string word = code_.word(fused_.names.at(operand.tensor) + "_first");
  strides_.emplace_back(word, shift_text(fused_, start));
  return word;
}

std::string NestTensors::first_and_step(const Operand& operand, const Start& start) {
  const std::string first = first_of(operand, start);
  return first.empty() ? "" : fmt::format(", {}, {}", first, start.reversed ? -1 : 1);
}

std::string NestTensors::indices(const Operand& operand) {
  std::string text;
  for (const Start& start : operand.starts) {
    if (start.index < 0 || once(start) || indices_.count(start.index)) continue;
    const Operand& index = fused_.inputs[size_t(start.index)];
    const std::string name = code_.word("at_" + fused_.names.at(index.tensor));
    indices_[start.index] = name;
    text += fmt::format("Tensor {} = {};\n", name, view(index));
  }
  if (text.empty() || outside_.empty() || checks_later_) return text;
  checks_later_ = true;
  return fmt::format("bool {} = false;  // whether an index is outside its axis\n", outside_) +
         text;
}

std::string NestTensors::load(const Operand& operand, const std::string& tensor,
                              const std::string& step, const std::string& to) {
  std::string takes;
  for (size_t axis = 0; axis < operand.starts.size(); ++axis)
    if (const Start& start = operand.starts[axis]; start.index >= 0 && !once(start))
      takes += fmt::format(",\n    cutegen::take<{}>({}(_, {}), {}{})", start.rule(),
                           indices_.at(start.index), step, size_and_stride(operand, axis),
                           first_and_step(operand, start));
  if (takes.empty()) return fmt::format("cutegen::load({}(_, {}), {});\n", tensor, step, to);
  const std::string outside = outside_.empty() ? "" : ", " + outside_;
  return fmt::format("cutegen::load_taken({}(_, {}), {}{}{});\n", tensor, step, to, outside, takes);
}

std::string NestTensors::row_address(const Operand& operand) {
  std::string element;
  return base(operand, &element);
}

// Where the thread's row or first column begins, if rows have these strides.
std::string NestTensors::offset(const std::string& strides) const {
  const char* thread = row() ? "row" : "column";
  const std::string at = place_.empty() ? thread : fmt::format("{}({})", place_, thread);
  return fmt::format("make_layout(across, {})({})", strides, at);
}

std::string NestTensors::base(const Operand& operand, std::string* element) {
  const std::string across = strides_over(operand, nest_.kept, 'k', !row(), element);
  if (operand.counts) return offset(across);
  std::string from = fused_.names.at(operand.tensor);
  if (const std::string start = start_text(fused_, operand); start != "0") {
    const std::string word = code_.word(from + "_start");
    strides_.emplace_back(word, start);
    from += " + " + word;
  }
  for (size_t axis = 0; axis < operand.starts.size(); ++axis)
    if (const Start& start = operand.starts[axis]; start.index >= 0 && once(start)) {
      const Operand& index = fused_.inputs[size_t(start.index)];
      std::string at = (index.counts ? "int64_t(" : "*(") + row_address(index) + ")";
      if (const std::string first = first_of(operand, start); !first.empty())
        at = fmt::format("{} {} {}", first, start.reversed ? "-" : "+", at);
      from += fmt::format(" +\n    cutegen::place<{}>({}, {})", start.rule(), at,
                          size_and_stride(operand, axis));
    }
  return from + " + " + offset(across);
}

}  // namespace cutegen::recipes
