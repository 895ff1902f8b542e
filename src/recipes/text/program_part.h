// SPDX-License-Identifier: Apache-2.0
// ProgramPart: the files, symbols and launches that one stage adds to a kernel program.
//
// Contract: a `Label` makes the names of a stage's symbols, macros, kernels and file unique within
// the program. If the program has only one stage, a `Label` changes no names. assemble() joins the
// parts of all stages in order and declares the scratch memory in which stages pass values to later
// stages.
//
// Example: Label{"2"}("rows") == "rows_2"
#pragma once

#include <string_view>

#include "core/program.h"
#include "recipes/nest/stages.h"

namespace cutegen::recipes {

// The architecture of Hopper GPUs, including the instructions that only Hopper has.
inline constexpr std::string_view kHopperArch = "sm_90a";

struct Label {
  std::string number;
  std::string operator()(const std::string& name) const {
    return number.empty() ? name : name + "_" + number;
  }
};

// Whether a stage may run at the same time as the next or the previous stage. Two stages may
// overlap if neither stage reads a value that the other stage writes.
struct Overlap {
  bool next = false;      // the next stage may begin before this stage ends
  bool previous = false;  // this stage may begin before the previous stage ends
};

struct ProgramPart {
  std::string file, source;
  bool hopper = false;  // the part needs features that only Hopper has
  Json symbols = Json::object(), defines = Json::object(), tensor_maps = Json::object();
  Json requirements = Json::array(), scratch = Json::array(), steps = Json::array();
  std::vector<ProgramPart> earlier = {};  // the stage's parts that run before this one
};

// Makes each step (launch) of a program for sm_90a begin while the previous step ends (programmatic
// dependent launch), if all steps are kernels and none is cooperative. Programmatic launches hide
// launch times, because the CTAs of the next step are already on the SMs.
void chain_steps(std::vector<ProgramPart>& parts);
Result<KernelProgram> assemble(const Task& task, const Stages& stages,
                               const std::vector<ProgramPart>& parts);

}  // namespace cutegen::recipes
