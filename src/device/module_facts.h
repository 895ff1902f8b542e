// SPDX-License-Identifier: Apache-2.0
// Reads the facts that resolve a plan from PTX declarations, for all devices.
//
// Contract: a constant counts as a tensor-map description if it has the form of one.
// declared_facts() reads no instructions. The device fills in static shared memory, because it has
// the machine code.
//
// Example: CG_TRY(ModuleFacts facts, declared_facts(ptx));
#pragma once

#include <optional>
#include <string_view>

#include "core/program.h"

namespace cutegen::device {

// The words of a cutegen::tma_spec, if the bytes of a constant have its form.
std::optional<std::vector<uint32_t>> spec_words(const std::vector<std::byte>& bytes);
Result<ModuleFacts> declared_facts(std::string_view ptx);

}  // namespace cutegen::device
