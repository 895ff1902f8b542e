// SPDX-License-Identifier: Apache-2.0
// ScanBody: writes the loop of a scan kernel over the tiles of a row. Only the scan recipe includes
// this header.
//
// Contract: text() returns the loop. The kernel around it must declare `along`, `across`, `steps`,
// `first`, `last`, `read`, `live`, and either `row` and `lane` or `column` and `team`. If text()'s
// argument `last` is false, the loop only computes the totals of a CTA's part of the row. inputs()
// and outputs() return the names of the operands' tensors. Before the caller calls text() for a
// column kernel, it must call load_by() for each value that does not vary along the scanned axis,
// with the text that loads the value.
//
// Example: ScanBody b(fused, params, nest, code); b.text(true);
#pragma once

#include "recipes/nest/nest.h"
#include "recipes/text/kernel_text.h"
#include "recipes/text/parameter.h"

namespace cutegen::recipes {

// A scan in the loop, with the kernel's names for the scan's values in a tile (`values`), its
// running result (`carry`) and its operation.
struct Scanned {
  int inst;
  Scan scan;
  std::string values, carry, operation;
  // The C++ type of the running result.
  std::string type() const { return scan.wide() ? operation + "::Value" : "float"; }
};

class ScanBody {
 public:
  ScanBody(const Fused& fused, const Json& params, const Nest& nest, Code& code);
  std::string text(bool last) const;
  // Returns the declaration of the shared memory in which threads exchange totals, or "" if the
  // threads exchange none.
  std::string shared() const;
  bool split() const { return int_param(params_, "parts") > 1; }
  const std::vector<int>& used() const { return used_; }  // the instructions in the loop
  const std::vector<std::string>& inputs() const { return inputs_; }
  const std::vector<std::string>& outputs() const { return outputs_; }
  void load_by(int leaf, std::string text) { row_loads_[leaf] = std::move(text); }
  const std::vector<std::string>& totals() const { return totals_; }  // scratch: totals of parts

 private:
  const Inst& at(int inst) const { return fused_.insts[size_t(inst)]; }
  bool row() const { return nest_.reduced_inside; }
  bool reversed() const { return at(scans_.front().inst).scan.reversed; }
  // Returns whether the loop visits the elements of a vector from the last to the first.
  bool backwards() const { return row() && reversed(); }
  bool exchanges() const;
  // Names the shared memory in which threads exchange the totals of scan `number`.
  std::string room(const std::string& turn, size_t number) const;
  bool wide() const;
  // Returns the name of an element's position; in a reversed scan, `j` counts from the end.
  const char* place() const { return reversed() ? "at" : "j"; }
  const char* element() const { return backwards() ? "[i][n]" : "[i][v]"; }
  std::string elements(const std::vector<int>& targets) const;
  std::string begin(bool last) const;
  std::string gather() const;
  std::string write() const;

  const Fused& fused_;
  const Json& params_;
  const Nest& nest_;
  Code& code_;
  std::vector<int> used_;
  std::map<int, std::string> row_loads_;
  std::vector<Scanned> scans_;
  std::vector<std::string> totals_, inputs_, outputs_;
};

}  // namespace cutegen::recipes
