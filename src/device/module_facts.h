// SPDX-License-Identifier: Apache-2.0
// From what PTX declares to the facts that plans are resolved with; the same for every device.
//
// Contract: a constant that has the form of a tensor-map description is one. declared_facts() looks
// at no instruction; static shared memory is left to the device that has the machine code.
//
// Example: CG_TRY(ModuleFacts facts, declared_facts(ptx));
#pragma once

#include <optional>
#include <string_view>

#include "core/program.h"

namespace cutegen {

// The words of cutegen::tma_spec, if the bytes of a constant look like one.
[[nodiscard]] std::optional<std::vector<uint32_t>> spec_words(const std::vector<std::byte>& bytes);
[[nodiscard]] Result<ModuleFacts> declared_facts(std::string_view ptx);

}  // namespace cutegen
