// SPDX-License-Identifier: Apache-2.0
// DeviceName: the parsed name of the device that runs programs. "sim:h200" is the simulator, which
// models a GPU described in gpus/. "cuda:0" is a GPU of this machine.
//
// Contract: parse() checks the form of the name, not whether the device exists. For a malformed
// name, it returns a user error that lists possible devices. The constructor DeviceName(literal)
// requires a well-formed literal.
//
// Example: CG_TRY(DeviceName d, DeviceName::parse("cuda:0")); if (d.is_gpu()) use(d.index);
#pragma once

#include <string>

#include "base/result.h"

namespace cutegen {

struct DeviceName {
  enum class Kind { simulator, gpu };
  Kind kind = Kind::simulator;
  std::string model = "h200";  // simulator: the GPU that the simulator models
  int index = 0;               // GPU: the CUDA driver's number of the GPU

  DeviceName() = default;
  DeviceName(const char* literal);  // NOLINT(google-explicit-constructor)
  static Result<DeviceName> parse(const std::string& text);
  static DeviceName simulator_of(const std::string& model);

  bool is_gpu() const { return kind == Kind::gpu; }
  std::string text() const;
  bool operator==(const DeviceName&) const = default;
};

}  // namespace cutegen
