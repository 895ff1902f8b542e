// SPDX-License-Identifier: Apache-2.0
// The decoders of the PTX opcodes. Each decoder handles related opcodes and turns one statement
// into simulator instructions (Inst).
//
// Contract: `m` is the opcode of the statement `s`, split at its dots. If a decoder does not know a
// variant of an opcode, it emits an `unsupported` instruction (CodeBuilder::unsupported). For a
// wrong operand, a decoder returns a user error.
//
// Example: CG_CHECK(decode_vote(ops, s, m));
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ptx/decode/operands.h"

namespace cutegen::ptx {

struct Modifiers {
  std::vector<std::string_view> parts;  // parts[0] is the base opcode
  std::string_view base() const { return parts[0]; }
  std::string_view type() const { return parts.back(); }
  bool has(std::string_view s) const;
};

using Family = Result<void>(Operands& ops, const Statement& s, const Modifiers& m);

// Decodes all opcodes in the table of forms (forms.h).
Family decode_arithmetic;
Family decode_move;
Family decode_compare, decode_set;
Family decode_convert, decode_convert_address, decode_in_space;
Family decode_memory, decode_policy, decode_atomic;
Family decode_multiply, decode_matrix_rows, decode_move_matrix;
Family decode_async;
Family decode_wgmma, decode_registers;
Family decode_cluster_barrier, decode_map;
Family decode_mbarrier, decode_fence;
Family decode_copies_arrive;  // cp.async.mbarrier.arrive
Family decode_bulk;           // cp with .bulk
Family decode_deposit;        // st.async, red.async
Family decode_shuffle, decode_vote, decode_collective, decode_barrier;
Family decode_control;

// decode_form() decodes a statement as the arithmetic form `name` (forms.h), without flags such as
// ftz.
Result<void> decode_form(Operands& ops, const Statement& s, const std::string& name);
// Emits the comparison d = (a `name` b). If `with` is not null, combines the result with the
// predicate `with`. Writes the result's complement to `e`, unless the offset of `e` is -1.
Result<void> emit_compare(Operands& ops, const std::string& name, int combine, const Operand* with,
                          Slot a, Slot b, Slot d, Slot e);
// Appends to `into` where the `n` registers of a matrix fragment lie in the register file. Each
// register has `size` bytes.
Result<void> decode_fragment(Operands& ops, const Operand& o, size_t n, int size,
                             bool is_destination, std::vector<int32_t>& into);
// Maps "s32" to "b32" and so on, because instructions that only move bits have one form for all
// types of a size.
std::string bits_type(std::string_view type);
// Returns the bytes per lane of an operand that has the letter `letter` in a signature (forms.h),
// or 0 for a predicate.
int operand_size(char letter);

}  // namespace cutegen::ptx
