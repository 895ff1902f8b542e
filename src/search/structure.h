// SPDX-License-Identifier: Apache-2.0
// The structure of a program (launches, tiling, movement of data), and its use of CuTe.
//
// Contract: reads only plan and source text, without comments and literals, so the same program
// always gives the same result. Two programs with equal structure differ only in details.
//
// Example: if (structure_of(a).tiling != structure_of(b).tiling) ...
#pragma once

#include "core/program.h"

namespace cutegen::search {

struct Structure {
  std::string launches;  // kernels and grids of the steps
  std::string tiling;    // blocks, clusters, shared bytes, defines, constants of the sources
  std::string movement;  // the constructs that move and multiply data
  bool operator==(const Structure&) const = default;
};
Structure structure_of(const KernelProgram& program);

// Uses of CuTe in the sources.
struct CuteUse {
  int tiled_mma = 0, tiled_copy = 0, atoms = 0, layouts = 0, tensors = 0, algorithms = 0;
  double share = 0;  // share of the statements that are in kernels and functions that use CuTe
  bool includes = false;
};
CuteUse cute_use(const KernelProgram& program);
Json to_json(const CuteUse& use);

}  // namespace cutegen::search
