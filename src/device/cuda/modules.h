// SPDX-License-Identifier: Apache-2.0
// Compiled modules on the GPU, loaded afresh each time.
//
// Contract: load() replaces what was loaded; variables have their first values again. Where a
// module comes with machine code that the driver takes, that is loaded; else the driver assembles
// its PTX, and what it made is kept by the PTX's hash, so that loading again is cheap. PTX that the
// driver's assembler refuses is a user error with its first line; PTX newer than the driver is a
// world error. Facts are read from the PTX's declarations, static shared memory from the machine
// code.
//
// Example: CG_TRY(auto facts, modules.load({ptx})); CG_TRY(Handle f, modules.function(0, "gemm"));
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/program.h"
#include "device/cuda/driver.h"

namespace cutegen::cuda {

class Modules {
 public:
  explicit Modules(const Driver& driver) : driver_(driver) {}
  ~Modules() { clear(); }
  Modules(const Modules&) = delete;
  Modules& operator=(const Modules&) = delete;

  // `code`: as Device::load() has it.
  [[nodiscard]] Result<std::vector<ModuleFacts>> load(const std::vector<std::string>& ptx,
                                                      const std::vector<std::string>& code);
  [[nodiscard]] Result<Handle> function(size_t module, const std::string& kernel);
  void clear();

 private:
  [[nodiscard]] Result<Handle> load_one(const std::string& ptx, const std::string& code);
  [[nodiscard]] Result<const std::string*> machine_code(const std::string& ptx);
  [[nodiscard]] Result<std::string> assemble(const std::string& ptx) const;

  const Driver& driver_;
  std::map<std::string, std::string> code_;  // by hash of the PTX
  size_t code_bytes_ = 0;
  std::vector<Handle> loaded_;
  std::map<std::pair<size_t, std::string>, Handle> functions_;
};

}  // namespace cutegen::cuda
