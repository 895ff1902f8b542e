// SPDX-License-Identifier: Apache-2.0
// SimDevice: a Device that runs programs on the PTX simulator and models the programs' time on a
// GPU.
//
// Contract: SimDevice obeys the contract of `Device` (device.h). Every bind() resets the global
// variables of the modules.
//
// Example:
//   auto device = std::make_unique<SimDevice>("sim:h200", gpu);
#pragma once

#include <map>

#include "device/device.h"
#include "device/sim_facts.h"
#include "gpu/spec.h"
#include "ptx/machine/machine.h"

namespace cutegen::device {

class SimDevice final : public Device {
 public:
  SimDevice(std::string name, GpuSpec gpu) : name_(std::move(name)), gpu_(std::move(gpu)) {}

  DeviceFacts facts() const override;
  using Device::load;
  Result<std::vector<ModuleFacts>> load(const std::vector<std::string>& ptx,
                                        const std::vector<std::string>& code) override;
  Result<void> bind(const std::vector<BufferBinding>& buffers) override;
  Result<RunReport> run(const Context& ctx, const std::vector<std::variant<Launch, Fill>>& steps,
                        const RunSettings& settings) override;
  Result<void> read(const std::string& buffer, int64_t offset, std::span<std::byte> out) override;

 private:
  struct Bound {
    uint64_t address = 0;
    std::span<std::byte> bytes;
    bool read_only = false;
  };
  Result<void> run_launch(const Context& ctx, const Launch& step, bool first,
                          const RunSettings& settings, RunReport& report);
  Result<void> run_fill(const Fill& step, RunReport& report);
  Result<const Bound*> find(const std::string& buffer, const std::string& step) const;
  Result<void> check_limits(const Launch& step, const ptx::Entry& entry) const;

  std::string name_;
  GpuSpec gpu_;
  std::vector<ptx::Module> modules_;
  ptx::Memory memory_;
  std::map<std::string, Bound> bound_;
};

}  // namespace cutegen::device
