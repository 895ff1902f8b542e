// SPDX-License-Identifier: Apache-2.0
// DeviceName: where programs run, parsed once: "sim:h200" (the simulator, modelling a GPU of
// gpus/) or "cuda:0" (a GPU of this machine).
//
// Contract: parse() checks the form, not whether the device exists. Its user error lists possible
// devices. A literal in code must be well formed.
//
// Example: CG_TRY(DeviceName d, DeviceName::parse("cuda:0")); if (d.is_gpu()) use(d.index);
#pragma once

#include <string>

#include "base/result.h"

namespace cutegen {

struct DeviceName {
  enum class Kind { simulator, gpu };
  Kind kind = Kind::simulator;
  std::string model = "h200";  // for a simulator: the GPU it models
  int index = 0;               // for a GPU: its number in the driver

  DeviceName() = default;
  DeviceName(const char* literal);  // NOLINT(google-explicit-constructor): a name in code
  static Result<DeviceName> parse(const std::string& text);
  static DeviceName simulator_of(const std::string& model);

  bool is_gpu() const { return kind == Kind::gpu; }
  std::string text() const;
  bool operator==(const DeviceName&) const = default;
};

}  // namespace cutegen
