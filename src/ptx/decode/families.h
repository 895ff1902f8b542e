// SPDX-License-Identifier: Apache-2.0
// The decoders of opcode families. Each turns one statement into instructions.
//
// Contract: `m` is the opcode of `s`, split at its dots. For an unknown form, a decoder emits an
// `unsupported` instruction (CodeBuilder::unsupported). A wrong operand is a user error.
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

// Decodes all opcodes that are in the table of forms.
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

// The next functions help several decoders. Decodes a form without flags, by its name in the table.
Result<void> decode_form(Operands& ops, const Statement& s, const std::string& name);
// Emits d = (a `name` b), combined with the predicate `with` if there is one. `e` receives the
// complement, unless its offset is -1.
Result<void> emit_compare(Operands& ops, const std::string& name, int combine, const Operand* with,
                          Slot a, Slot b, Slot d, Slot e);
// Appends the slots of the `n` registers of a fragment, of `size` bytes each.
Result<void> decode_fragment(Operands& ops, const Operand& o, size_t n, int size,
                             bool is_destination, std::vector<int32_t>& into);
// "s32" -> "b32" and so on: one form serves all types if only bits matter.
std::string bits_type(std::string_view type);
// Bytes per lane of the operand with this letter in a signature (forms.h); 0: a predicate.
int operand_size(char letter);

}  // namespace cutegen::ptx
