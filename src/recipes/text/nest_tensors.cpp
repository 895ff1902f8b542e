// SPDX-License-Identifier: Apache-2.0
#include "recipes/text/nest_tensors.h"

#include <fmt/format.h>

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
  std::string element = "Int<0>{}";
  const std::string along = strides_over(operand, nest_.reduced, 'r', row(), &element);
  return view(operand, element, along);
}

std::string NestTensors::view(const Operand& operand, std::string element,
                              const std::string& along) {
  const std::string from = base(operand, &element);
  return fmt::format(
      "make_tensor(make_gmem_ptr({}),\n"
      "    make_layout(make_shape(Int<kVector>{{}}, along), make_stride({}, {})))",
      from, element, along);
}

std::string NestTensors::strides_over(const Operand& operand, const std::vector<Loop>& loops,
                                      char prefix, bool vectors, std::string* element) {
  std::vector<std::string> list;
  for (size_t i = loops.size(); i-- > 0;) {
    Stride s = stride(fused_, operand, loops[i]);
    std::string text = s.move == Move::none ? "Int<0>{}" : "Int<1>{}";
    if (s.move == Move::stride) {
      text = code_.word(fmt::format("{}_{}{}", fused_.names.at(operand.tensor), prefix, i));
      strides_.emplace_back(text, s.expression);
    }
    if (vectors && i + 1 == loops.size()) {
      *element = text;
      if (s.move == Move::next) text = "Int<kVector>{}";
      if (s.move == Move::stride) text += " * kVector";
    }
    list.push_back(text);
  }
  return tuple_of("make_stride", list);
}

std::string NestTensors::base(const Operand& operand, std::string* element) {
  const std::string across = strides_over(operand, nest_.kept, 'k', !row(), element);
  std::string from = fused_.names.at(operand.tensor);
  if (const std::string start = start_text(fused_, operand); start != "0") {
    const std::string word = code_.word(from + "_start");
    strides_.emplace_back(word, start);
    from += " + " + word;
  }
  return fmt::format("{} + make_layout(across, {})({})", from, across, row() ? "row" : "column");
}

}  // namespace cutegen::recipes
