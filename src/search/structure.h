// SPDX-License-Identifier: Apache-2.0
// Extracts the structure of a program (launches, tiling, movement of data), and counts its uses of
// CuTe.
//
// Contract: structure_of() and cute_use() read only the plan and the source text, without comments
// and literals, so the same program always gives the same result. Two programs with equal Structure
// differ only in details.
//
// Example: if (structure_of(a).tiling != structure_of(b).tiling) ...
#pragma once

#include "core/program.h"

namespace cutegen::search {

struct Structure {
  std::string launches;  // kernel and grid of each launch
  // Lists blocks, clusters, bytes of shared memory, #defines, and constants in the sources.
  std::string tiling;
  std::string movement;  // the constructs that move and multiply data
  bool operator==(const Structure&) const = default;
};
Structure structure_of(const KernelProgram& program);

// Says how often the sources use each part of CuTe.
struct CuteUse {
  int tiled_mma = 0, tiled_copy = 0, atoms = 0, layouts = 0, tensors = 0, algorithms = 0;
  double share = 0;  // the share of all statements that are in functions with CuTe
  bool includes = false;
};
CuteUse cute_use(const KernelProgram& program);
Json to_json(const CuteUse& use);

}  // namespace cutegen::search
