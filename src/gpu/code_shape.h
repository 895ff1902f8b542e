// SPDX-License-Identifier: Apache-2.0
// CodeShape: how many machine instructions the parts of a kernel have. A part is an innermost loop,
// or all code outside innermost loops.
//
// Contract: a part counts the instructions that the GPU issues, without padding and without the
// slow paths of divisions and square roots. The marks of a part count, by kind, the instructions
// that also exist in the PTX, such as loads and barriers. Marks show which loops of PTX and machine
// code belong together, and how often the assembler has unrolled a loop.
//
// Example:
//   {.outside = {.instructions = 40}, .loops = {{.instructions = 12, .marks = {{"load", 4}}}}}
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cutegen {

// The kinds of marks.
namespace code_mark {
inline constexpr const char *load = "load", *store = "store", *load_shared = "load_shared",
                            *store_shared = "store_shared", *matrix_load = "matrix_load",
                            *atomic = "atomic", *copy = "copy", *shuffle = "shuffle",
                            *barrier = "barrier", *product = "product";
}

inline constexpr size_t kMostCodeLoops = 64;

struct CodePart {
  double instructions = 0;
  std::map<std::string, int64_t> marks = {};
};

struct CodeShape {
  CodePart outside;
  std::vector<CodePart> loops;  // in the order of the code; empty if there are no loops
  bool known() const { return outside.instructions > 0; }
};

}  // namespace cutegen
