// SPDX-License-Identifier: Apache-2.0
// ScanKernel: writes the source file of a scan. Only the scan recipe includes this header.
//
// Contract: source() returns the whole file. launches() lists the kernels of the file in order. If
// the parameter `parts` is above 1, several CTAs share a row, and the first kernel is `totals`,
// which writes the total of each CTA's part to scratch memory. The last kernel is always `scan`.
//
// Example: ScanKernel k(task, fused, params, label); k.source();
#pragma once

#include "recipes/emit/scan_body.h"
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
  bool split() const { return body_.split(); }
  const std::vector<StrideArgument>& strides() const { return tensors_.strides(); }
  // Returns the names of the scratch tensors with the totals of the parts, one for each scan.
  const std::vector<std::string>& totals() const { return body_.totals(); }

 private:
  void add_kernel(const std::string& name, bool last);

  const Fused& fused_;
  Label label_;
  Nest nest_;
  Code code_;
  NestTensors tensors_;
  ScanBody body_;
  std::string views_, results_, loads_;  // text in both kernels
  std::string kernels_, source_;
  std::vector<std::string> launches_;
};

}  // namespace cutegen::recipes
