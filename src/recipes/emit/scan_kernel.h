// SPDX-License-Identifier: Apache-2.0
// The text of scan kernels. Private to the scan recipe.
//
// Contract: source() is the whole file. launches() lists its kernels in order: with `parts` above 1
// first `totals`, which writes the total of each part to scratch, then `scan`.
//
// Example: ScanKernel k(task, fused, params, label); k.source();
#pragma once

#include "recipes/text/nest_tensors.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

class ScanKernel {
 public:
  ScanKernel(const Task& task, const Fused& fused, const Json& params, const Label& label);
  const std::string& source() const { return source_; }
  const std::vector<std::string>& launches() const { return launches_; }
  const Nest& nest() const { return nest_; }
  bool row() const { return nest_.reduced_inside; }
  bool split() const;
  const std::vector<StrideArgument>& strides() const { return tensors_.strides(); }
  // The scratch that holds the totals of each scan's parts.
  const std::vector<std::string>& totals() const { return totals_; }

 private:
  struct Scanned {
    int inst;
    std::string values, carry, operation;
  };

  const Inst& at(int inst) const { return fused_.insts[size_t(inst)]; }
  bool reversed() const { return at(scans_.front().inst).scan.reversed; }
  // Whether the CTA's threads exchange totals in shared memory.
  bool exchanges() const;
  std::string shared() const;
  std::string room(const std::string& turn, size_t scan) const;
  std::string each() const;
  // Where a step or an element of a tile lies: its number from the end if the scan begins there.
  const char* place() const { return reversed() ? "at" : "j"; }
  const char* element() const { return row() && reversed() ? "[i][n]" : "[i][v]"; }
  std::string range() const;
  std::string elements(const std::vector<int>& targets, bool after) const;
  std::string begin(bool last) const;
  std::string gather() const;
  std::string combine(const Scanned& scan, size_t number) const;
  std::string write() const;
  std::string body(bool last) const;
  void add_kernel(const std::string& name, bool last);

  const Fused& fused_;
  const Json& params_;
  Label label_;
  Nest nest_;
  Code code_;
  NestTensors tensors_;
  std::vector<int> used_;
  std::vector<Scanned> scans_;
  std::vector<std::string> totals_, registers_, inputs_;
  std::string views_, results_, loads_, rows_;  // text that the kernels share
  std::string kernels_, source_;
  std::vector<std::string> launches_;
};

}  // namespace cutegen::recipes
