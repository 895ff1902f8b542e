// SPDX-License-Identifier: Apache-2.0
// The decoder's state. Only decode*.cpp include it.
#pragma once

#include <array>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "ptx/decode/decode.h"
#include "ptx/decode/forms.h"

namespace cutegen::ptx {

// A register, immediate or special register found for an operand.
struct Slot {
  int32_t offset = -1;
  int size = 0;  // bytes of a lane; 0: predicate
};

struct Modifiers {
  std::vector<std::string_view> parts;  // all of the opcode; parts[0] is the base
  std::string_view base() const { return parts[0]; }
  std::string_view type() const { return parts.back(); }
  bool has(std::string_view s) const;
};

// The state of one function: the entry, or a function that is inlined at a call.
struct Frame {
  const Function* f = nullptr;
  int depth = 0;  // 0: the entry
  std::map<std::pair<int, std::string_view>, Slot> registers;
  std::map<const Variable*, int64_t> places;       // local and parameter variables
  std::map<std::string_view, int64_t> parameters;  // of a called function: places in local memory
  std::vector<int32_t> first;                      // statement -> first instruction
  std::vector<std::pair<size_t, std::pair<int, std::string_view>>> branches;  // code, scope, label
  std::vector<size_t> returns;  // branches to the end of the called function
};

// "s32" -> "b32" and so on: one form serves all types if only bits matter.
std::string bits_type(std::string_view type);
// Bytes of a lane by the letter of a signature (forms.h); 0: a predicate.
int operand_size(char letter);

class Decoder {
 public:
  Decoder(const ParsedModule& module, const Function& function) : module_(module) {
    frame_.f = &function;
  }
  Result<Program> run();

 private:
  using Done = Result<void>;
  // decode.cpp
  Done layout();
  Done layout_parameters();
  Done function_body();
  Done statement(const Statement& s);
  Done dispatch(const Statement& s, const Modifiers& m);
  Done resolve_targets();
  Done control(const Statement& s, const Modifiers& m);
  Inst& emit(Inst in, std::vector<int32_t> reads, std::vector<int32_t> writes);
  Done unsupported(const std::string& what);
  // decode_call.cpp
  Done call(const Statement& s, const Modifiers& m);
  Done inline_call(const Statement& s, const Function& callee);
  Done bind_arguments(const Statement& s, const Function& callee, Frame& frame);
  Done host_call(const Statement& s, Op op, size_t arguments);
  std::optional<int64_t> parameter_place(std::string_view name) const;
  Result<int64_t> local_place(int64_t bytes, int64_t align);
  Done copy_register(Slot from, Slot to);
  Done move_local(Op op, int64_t place, Slot slot);
  // decode_operand.cpp
  tl::unexpected<Error> wrong(const std::string& message) const;
  Done count(const Statement& s, size_t least, size_t most) const;
  int32_t allocate(int size);
  std::optional<Slot> find_register(std::string_view name);
  std::optional<Slot> find_special(std::string_view name);
  const RegisterRange* find_range(std::string_view name, int* scope) const;
  Slot constant(uint64_t bits, int size, int32_t variable = -1);
  Result<Slot> symbol(std::string_view name, int64_t offset, int size, bool generic);
  Result<Slot> source(const Operand& o, int size, std::string_view type);
  Result<Slot> destination(const Operand& o, int size);
  Result<Slot> predicate(const Operand& o);
  Result<Slot> register_of(const Operand& o);
  // decode_alu.cpp
  Done arithmetic(const Statement& s, const Modifiers& m);
  Done apply_form(const Statement& s, const Form& form, uint8_t sub, std::string_view type);
  Done move(const Statement& s, const Modifiers& m);
  Done pack(const Operand& to, const std::vector<Operand>& from, int whole);
  Done unpack(const std::vector<Operand>& to, const Operand& from, int whole);
  Done with_form(const Statement& s, const std::string& name);
  Done table_logic(const Statement& s, const Modifiers& m);
  Done simple(const std::string& form, Slot d, std::vector<Slot> sources, int64_t imm = 0);
  // decode_compare.cpp
  Done compare(const Statement& s, const Modifiers& m);
  Done set(const Statement& s, const Modifiers& m);
  Done emit_compare(const std::string& name, int combine, const Operand* with, Slot a, Slot b,
                    Slot d, Slot e);
  Result<std::array<Slot, 2>> split_pair(const Operand& o);
  // decode_convert.cpp
  Done convert(const Statement& s, const Modifiers& m);
  Done convert_address(const Statement& s, const Modifiers& m);
  Done in_space(const Statement& s, const Modifiers& m);
  // decode_memory.cpp
  Done policy(const Statement& s, const Modifiers& m);
  Done memory(const Statement& s, const Modifiers& m);
  Done memory_registers(const Operand& o, Inst& in, std::vector<int32_t>& slots);
  Done address(const Operand& o, Inst& in);
  Done atomic(const Statement& s, const Modifiers& m);
  Done atomic_vector(const Statement& s, const Modifiers& m, const Inst& one);
  // decode_warp.cpp
  Done shuffle(const Statement& s, const Modifiers& m);
  Done vote(const Statement& s, const Modifiers& m);
  Done collective(const Statement& s, const Modifiers& m);
  Done barrier(const Statement& s, const Modifiers& m);

  // decode_matrix.cpp
  Done multiply(const Statement& s, const Modifiers& m);
  Done matrix_rows(const Statement& s, const Modifiers& m);
  Done move_matrix(const Statement& s, const Modifiers& m);
  Done async(const Statement& s, const Modifiers& m);
  Done async_operands(const Statement& s, const Modifiers& m, Inst in);
  Done fragment(const Operand& o, size_t n, int size, bool is_destination,
                std::vector<int32_t>& into);
  const int32_t* scratch();
  const int32_t* keep(std::vector<int32_t> list);

  const ParsedModule& module_;
  Frame frame_;
  Program p_;
  std::vector<Effects> effects_;
  std::vector<SlotRange> slots_;  // registers, for liveness
  std::map<std::tuple<uint64_t, int, int32_t>, Slot> constants_;
  std::map<Special, Slot> specials_;
  std::map<std::string_view, int64_t> shared_at_;  // static shared variables by name
  std::map<const Variable*, int64_t> shared_places_;
  Slot carry_;
  int32_t scratch_[5] = {-1, -1, -1, -1, -1};
  int64_t used_ = 0, predicates_at_ = 0;
  const Statement* now_ = nullptr;
  Inst guard_;  // guard fields of the statement
};

}  // namespace cutegen::ptx
