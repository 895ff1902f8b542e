// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a model's reply give a Reask with a reason, or a program that
// differs from the old one, has balanced brackets, and is the same after writing and reading its
// JSON.
#include <cstddef>
#include <cstdint>
#include <string>

#include "agent/edit.h"
#include "agent/source_map.h"
#include "agent/testing/test_program.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cutegen;
  static const KernelProgram kBase = cutegen::agent::test_program();
  std::string text(reinterpret_cast<const char*>(data), size);
  for (const KernelProgram* base : {&kBase, static_cast<const KernelProgram*>(nullptr)}) {
    auto reply = cutegen::agent::parse_reply(text, base);
    CG_ASSERT(reply || !reply.error().text.empty());
    if (!reply) continue;
    auto program = apply_reply(*reply, base, {});
    CG_ASSERT(program || !program.error().text.empty());
    if (!program) continue;
    CG_ASSERT(!base || program_id(*program) != program_id(*base));
    auto again = read_json<KernelProgram>(to_json(*program));
    CG_ASSERT(again && program_id(*again) == program_id(*program));
    for (const auto& [name, source] : program->sources)
      CG_ASSERT((base && base->sources.contains(name) && base->sources.at(name) == source) ||
                !cutegen::agent::first_imbalance(source));
  }
  return 0;
}
