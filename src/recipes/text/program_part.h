// SPDX-License-Identifier: Apache-2.0
// ProgramPart: what one stage adds to a kernel program.
//
// Contract: a Label makes the names of a stage's symbols, macros, kernels and file unique. It is
// empty if the program has only one stage. assemble() joins the parts in order, with the scratch
// that the stages keep.
//
// Example: Label{"2"}("rows") == "rows_2"
#pragma once

#include <string_view>

#include "core/program.h"
#include "recipes/nest/stages.h"

namespace cutegen::recipes {

// The architecture of Hopper GPUs, with their own instructions.
inline constexpr std::string_view kHopperArch = "sm_90a";

struct Label {
  std::string number;
  std::string operator()(const std::string& name) const {
    return number.empty() ? name : name + "_" + number;
  }
};

// Whether a stage may overlap with the next and the previous stage. It may if neither of the two
// reads what the other one writes.
struct Overlap {
  bool next = false;      // the next step may begin before this one ends
  bool previous = false;  // this step may begin before the previous one ends
};

struct ProgramPart {
  std::string file, source;
  bool hopper = false;  // needs features that only Hopper has
  Json symbols = Json::object(), defines = Json::object(), tensor_maps = Json::object();
  Json requirements = Json::array(), scratch = Json::array(), steps = Json::array();
};

// Lets each step of a program for sm_90a begin while the previous one ends, if all steps are
// kernels. The CTAs of the next step then already wait on the SMs, which hides the launch.
void chain_steps(std::vector<ProgramPart>& parts);
Result<KernelProgram> assemble(const Task& task, const Stages& stages,
                               const std::vector<ProgramPart>& parts);

}  // namespace cutegen::recipes
