// SPDX-License-Identifier: Apache-2.0
// Reads from a module's PTX declarations what resolve_plan() needs to evaluate a plan: the
// parameters and block limits of the kernels, the constants, and the tma_specs.
//
// Contract: a constant counts as a `tma_spec` (the description of a tensor map) if its bytes have
// the form of a `tma_spec`. The function declared_facts() reads no PTX instructions. The device
// adds the size of static shared memory, because declared_facts() does not see the machine code.
//
// Example: CG_TRY(ModuleFacts facts, declared_facts(ptx));
#pragma once

#include <optional>
#include <string_view>

#include "core/program.h"

namespace cutegen::device {

// Returns the words of a cutegen::tma_spec, or nullopt if the bytes have another form.
std::optional<std::vector<uint32_t>> spec_words(const std::vector<std::byte>& bytes);
Result<ModuleFacts> declared_facts(std::string_view ptx);

}  // namespace cutegen::device
