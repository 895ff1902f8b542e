// SPDX-License-Identifier: Apache-2.0
// The loop of a scan kernel over the tiles of a row. Private to the scan recipe.
//
// Contract: text() is the loop, for a kernel that declares `along`, `across`, `steps`, `first`,
// `last`, `read`, `live`, and `row` and `lane` or `column` and `team`. If the kernel declares no
// `last`, the loop only writes the total of a part. inputs() and outputs() are the names of the
// tensors, by operand. Before text(), call load_by() with the text by which the column kernel loads
// a value that does not vary along the scanned axis.
//
// Example: ScanBody b(fused, params, nest, code); b.text(true);
#pragma once

#include "recipes/nest/nest.h"
#include "recipes/text/kernel_text.h"
#include "recipes/text/parameter.h"

namespace cutegen::recipes {

// A value that the loop scans: names of its values in a tile and of its running result.
struct Scanned {
  int inst;
  Scan scan;
  std::string values, carry, operation;
  // The type of a running result.
  std::string type() const { return scan.wide() ? operation + "::Value" : "float"; }
};

class ScanBody {
 public:
  ScanBody(const Fused& fused, const Json& params, const Nest& nest, Code& code);
  std::string text(bool last) const;
  // The declaration of the shared memory through which threads exchange totals; may be empty.
  std::string shared() const;
  bool split() const { return int_param(params_, "parts") > 1; }
  const std::vector<int>& used() const { return used_; }  // instructions
  const std::vector<std::string>& inputs() const { return inputs_; }
  const std::vector<std::string>& outputs() const { return outputs_; }
  void load_by(int leaf, std::string text) { row_loads_[leaf] = std::move(text); }
  const std::vector<std::string>& totals() const { return totals_; }  // scratch: of scans' parts

 private:
  const Inst& at(int inst) const { return fused_.insts[size_t(inst)]; }
  bool row() const { return nest_.reduced_inside; }
  bool reversed() const { return at(scans_.front().inst).scan.reversed; }
  // Whether elements within a vector are reversed.
  bool backwards() const { return row() && reversed(); }
  bool exchanges() const;
  // The shared memory in which the threads exchange the totals of a scan.
  std::string room(const std::string& turn, size_t number) const;
  bool wide() const;
  // The name of a position. If the scan begins at the end, positions count from there.
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
