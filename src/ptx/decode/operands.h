// SPDX-License-Identifier: Apache-2.0
// Operands: maps the operands of a function's statements to places in the register file (`Slot`).
//
// Contract: Operands searches for a name in the scopes of `frame` that contain the current
// statement of `code`, then in the module. For an operand of the wrong size or form, a function of
// Operands returns a user error.
//
// Example: CG_TRY(Slot a, ops.source(s.operands[1], 4, "u32"));
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ptx/decode/code_builder.h"

namespace cutegen::ptx {

// The state of the function that the decoder decodes: the entry, or a function that the decoder
// inlines at a call.
struct Frame {
  const Function* f = nullptr;
  int depth = 0;  // 0: the entry
  std::map<std::pair<int, std::string_view>, Slot> registers;
  std::map<const Variable*, int64_t> places;  // offsets of local and parameter variables
  // Offsets in local memory of the parameters of an inlined function.
  std::map<std::string_view, int64_t> parameters;
  std::vector<int32_t> first;  // by statement: index of its first Inst
  std::vector<std::pair<size_t, std::pair<int, std::string_view>>> branches;  // code, scope, label
  std::vector<size_t> returns;  // branches to the end of the inlined function
};

class Operands {
 public:
  explicit Operands(const ParsedModule& module) : module_(module) {}
  Result<Slot> source(const Operand& o, int size, std::string_view type);
  Result<Slot> destination(const Operand& o, int size);
  Result<Slot> predicate(const Operand& o);
  // Decodes the address of a memory instruction, and sets Inst::a and Inst::imm.
  Result<void> address(const Operand& o, Inst& in);
  std::optional<Slot> find_register(std::string_view name);
  std::optional<Slot> find_special(std::string_view name);
  // Returns the offset in local memory of a .param variable or of a parameter of an inlined
  // function.
  std::optional<int64_t> parameter_place(std::string_view name) const;
  Result<int64_t> local_place(int64_t bytes, int64_t align);
  // Allocates a static shared variable, and returns its offset.
  Result<int64_t> shared_place(const Variable& v);
  const ParsedModule& module() const { return module_; }

  CodeBuilder code;
  Frame frame;

 private:
  const RegisterRange* find_range(std::string_view name, int* scope) const;
  const Variable* find_variable(std::string_view name) const;
  Result<Slot> word(const Operand& o, int size);
  Result<Slot> symbol(std::string_view name, int64_t offset, int size, bool generic);
  Result<Slot> module_symbol(std::string_view name, int64_t offset, int size, bool generic);

  const ParsedModule& module_;
  std::map<const Variable*, int64_t> shared_places_;
};

inline int64_t align_up(int64_t n, int64_t to) {
  return (n + to - 1) / to * to;
}

}  // namespace cutegen::ptx
