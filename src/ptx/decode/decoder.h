// SPDX-License-Identifier: Apache-2.0
// Decoder: decodes an entry statement by statement, and inlines the functions that it calls.
//
// Contract: call run() at most once. decode_call() inlines a function: it replaces the current
// `Frame` (the state of the function that the decoder decodes), decodes the body, and restores the
// caller's frame.
//
// Example: CG_TRY(Program p, Decoder(module, function).run());
#pragma once

#include "ptx/decode/families.h"

namespace cutegen::ptx {

class Decoder {
 public:
  Decoder(const ParsedModule& module, const Function& function) : ops_(module) {
    ops_.frame.f = &function;
  }
  Result<Program> run();
  // Decodes all statements of the current function and resolves its branches.
  Result<void> function_body();
  Operands& operands() { return ops_; }

 private:
  Result<void> layout();
  Result<void> layout_parameters();
  Result<void> statement(const Statement& s);
  Result<void> resolve_targets();
  std::optional<int32_t> place_table(int scope, std::string_view name);
  int32_t label(int scope, std::string_view name) const;

  Operands ops_;
};

// Decodes a call of a device function, or of a host function (printf, assert).
Result<void> decode_call(Decoder& decoder, const Statement& s);

}  // namespace cutegen::ptx
