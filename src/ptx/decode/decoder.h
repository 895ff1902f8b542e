// SPDX-License-Identifier: Apache-2.0
// The decoder's own state; decode*.cpp share it, nobody else.
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
  [[nodiscard]] std::string_view base() const { return parts[0]; }
  [[nodiscard]] std::string_view type() const { return parts.back(); }
  [[nodiscard]] bool has(std::string_view s) const;
};

// What belongs to one function: the entry, or a function whose body stands at a call.
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

// "s32" -> "b32" and so on: forms that only look at bits are kept once.
[[nodiscard]] std::string bits_type(std::string_view type);
// Bytes of a lane by the letter of a signature (forms.h); 0: a predicate.
[[nodiscard]] int operand_size(char letter);

class Decoder {
 public:
  Decoder(const ParsedModule& module, const Function& function) : module_(module) {
    frame_.f = &function;
  }
  [[nodiscard]] Result<Program> run();

 private:
  using Done = Result<void>;
  // decode.cpp
  [[nodiscard]] Done layout();
  [[nodiscard]] Done layout_parameters();
  [[nodiscard]] Done function_body();
  [[nodiscard]] Done statement(const Statement& s);
  [[nodiscard]] Done dispatch(const Statement& s, const Modifiers& m);
  [[nodiscard]] Done resolve_targets();
  [[nodiscard]] Done control(const Statement& s, const Modifiers& m);
  Inst& emit(Inst in, std::vector<int32_t> reads, std::vector<int32_t> writes);
  [[nodiscard]] Done unsupported(const std::string& what);
  // decode_call.cpp
  [[nodiscard]] Done call(const Statement& s, const Modifiers& m);
  [[nodiscard]] Done inline_call(const Statement& s, const Function& callee);
  [[nodiscard]] Done bind_arguments(const Statement& s, const Function& callee, Frame& frame);
  [[nodiscard]] Done host_call(const Statement& s, Op op, size_t arguments);
  [[nodiscard]] std::optional<int64_t> parameter_place(std::string_view name) const;
  [[nodiscard]] Result<int64_t> local_place(int64_t bytes, int64_t align);
  [[nodiscard]] Done copy_register(Slot from, Slot to);
  [[nodiscard]] Done move_local(Op op, int64_t place, Slot slot);
  // decode_operand.cpp
  [[nodiscard]] tl::unexpected<Error> wrong(const std::string& message) const;
  [[nodiscard]] Done count(const Statement& s, size_t least, size_t most) const;
  int32_t allocate(int size);
  [[nodiscard]] std::optional<Slot> find_register(std::string_view name);
  [[nodiscard]] std::optional<Slot> find_special(std::string_view name);
  [[nodiscard]] const RegisterRange* find_range(std::string_view name, int* scope) const;
  Slot constant(uint64_t bits, int size, int32_t variable = -1);
  [[nodiscard]] Result<Slot> symbol(std::string_view name, int64_t offset, int size, bool generic);
  [[nodiscard]] Result<Slot> source(const Operand& o, int size, std::string_view type);
  [[nodiscard]] Result<Slot> destination(const Operand& o, int size);
  [[nodiscard]] Result<Slot> predicate(const Operand& o);
  [[nodiscard]] Result<Slot> register_of(const Operand& o);
  // decode_alu.cpp
  [[nodiscard]] Done arithmetic(const Statement& s, const Modifiers& m);
  [[nodiscard]] Done apply_form(const Statement& s, const Form& form, uint8_t sub,
                                std::string_view type);
  [[nodiscard]] Done move(const Statement& s, const Modifiers& m);
  [[nodiscard]] Done pack(const Operand& to, const std::vector<Operand>& from, int whole);
  [[nodiscard]] Done unpack(const std::vector<Operand>& to, const Operand& from, int whole);
  [[nodiscard]] Done with_form(const Statement& s, const std::string& name);
  [[nodiscard]] Done table_logic(const Statement& s, const Modifiers& m);
  [[nodiscard]] Done simple(const std::string& form, Slot d, std::vector<Slot> sources,
                            int64_t imm = 0);
  // decode_compare.cpp
  [[nodiscard]] Done compare(const Statement& s, const Modifiers& m);
  [[nodiscard]] Done set(const Statement& s, const Modifiers& m);
  [[nodiscard]] Done emit_compare(const std::string& name, int combine, const Operand* with, Slot a,
                                  Slot b, Slot d, Slot e);
  [[nodiscard]] Result<std::array<Slot, 2>> split_pair(const Operand& o);
  // decode_convert.cpp
  [[nodiscard]] Done convert(const Statement& s, const Modifiers& m);
  [[nodiscard]] Done convert_address(const Statement& s, const Modifiers& m);
  [[nodiscard]] Done in_space(const Statement& s, const Modifiers& m);
  // decode_memory.cpp
  [[nodiscard]] Done policy(const Statement& s, const Modifiers& m);
  [[nodiscard]] Done memory(const Statement& s, const Modifiers& m);
  [[nodiscard]] Done memory_registers(const Operand& o, Inst& in, std::vector<int32_t>& slots);
  [[nodiscard]] Done address(const Operand& o, Inst& in);
  [[nodiscard]] Done atomic(const Statement& s, const Modifiers& m);
  [[nodiscard]] Done atomic_vector(const Statement& s, const Modifiers& m, const Inst& one);
  // decode_warp.cpp
  [[nodiscard]] Done shuffle(const Statement& s, const Modifiers& m);
  [[nodiscard]] Done vote(const Statement& s, const Modifiers& m);
  [[nodiscard]] Done collective(const Statement& s, const Modifiers& m);
  [[nodiscard]] Done barrier(const Statement& s, const Modifiers& m);

  // decode_matrix.cpp
  [[nodiscard]] Done multiply(const Statement& s, const Modifiers& m);
  [[nodiscard]] Done matrix_rows(const Statement& s, const Modifiers& m);
  [[nodiscard]] Done move_matrix(const Statement& s, const Modifiers& m);
  [[nodiscard]] Done async(const Statement& s, const Modifiers& m);
  [[nodiscard]] Done async_operands(const Statement& s, const Modifiers& m, Inst in);
  [[nodiscard]] Done fragment(const Operand& o, size_t n, int size, bool is_destination,
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
