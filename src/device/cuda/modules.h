// SPDX-License-Identifier: Apache-2.0
// Loads the compiled modules of one program on the GPU.
//
// Contract: load() replaces all loaded modules, which resets their global variables. For each
// module, it uses the caller's machine code if the driver accepts this code. Otherwise, the driver
// assembles the module's PTX, and Modules caches the result under the hash of the PTX. If the
// driver's assembler refuses the PTX, load() returns a user error with the assembler's first line.
// If the PTX is too new for the driver, it returns a world error. The returned `ModuleFacts` come
// from the PTX declarations, but the size of static shared memory comes from the machine code.
//
// Example: CG_TRY(auto facts, modules.load({ptx})); CG_TRY(Handle f, modules.function(0, "gemm"));
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/program.h"
#include "device/cuda/driver.h"

namespace cutegen::device::cuda {

class Modules {
 public:
  explicit Modules(const Driver& driver) : driver_(driver) {}
  ~Modules() { clear(); }
  Modules(const Modules&) = delete;
  Modules& operator=(const Modules&) = delete;

  // `code`: see Device::load().
  Result<std::vector<ModuleFacts>> load(const std::vector<std::string>& ptx,
                                        const std::vector<std::string>& code);
  Result<Handle> function(size_t module, const std::string& kernel);
  // Returns the largest local memory that a thread of a loaded kernel uses.
  int64_t local_bytes() const { return local_bytes_; }
  void clear();

 private:
  Result<Handle> load_one(const std::string& ptx, const std::string& code);
  Result<const std::string*> machine_code(const std::string& ptx);
  Result<std::string> assemble(const std::string& ptx) const;

  const Driver& driver_;
  std::map<std::string, std::string> code_;  // machine code by hash of the PTX
  size_t code_bytes_ = 0;
  std::vector<Handle> loaded_;
  std::map<std::pair<size_t, std::string>, Handle> functions_;
  int64_t local_bytes_ = 0;
};

}  // namespace cutegen::device::cuda
