// SPDX-License-Identifier: Apache-2.0
#include "device/module_facts.h"

#include <cstring>

#include "device/map_fields.h"
#include "ptx/decode/declarations.h"

namespace cutegen::device {
namespace {

// cutegen::tma_spec: version, rank, box[5], mode[5], bits, swizzle_b, swizzle_m

}  // namespace

std::optional<std::vector<uint32_t>> spec_words(const std::vector<std::byte>& bytes) {
  if (bytes.size() != kSpecWords * 4) return std::nullopt;
  std::vector<uint32_t> words(kSpecWords);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  if (words[0] != 1 || words[1] < 1 || words[1] > 5) return std::nullopt;
  return words;
}

Result<ModuleFacts> declared_facts(std::string_view ptx) {
  CG_TRY(ptx::Declarations declared, ptx::read_declarations(ptx));
  ModuleFacts out;
  for (const ptx::Entry& e : declared.entries) {
    EntryFacts f;
    f.name = e.name;
    for (const ptx::Param& p : e.params) f.params.push_back({.size = p.size, .align = p.align});
    f.max_block = e.max_block;
    out.entries.push_back(std::move(f));
  }
  out.constants = std::move(declared.integers);
  for (const auto& [name, bytes] : declared.bytes)
    if (auto words = spec_words(bytes)) out.tma_specs[name] = std::move(*words);
  return out;
}

}  // namespace cutegen::device
