// SPDX-License-Identifier: Apache-2.0
// Warp-wide matrix instructions: mma.sync, ldmatrix, stmatrix, movmatrix.
#include "base/text.h"
#include "ptx/decode/families.h"

namespace cutegen::ptx {
namespace {

std::vector<Operand> items_of(const Operand& o) {
  return o.kind == Operand::Kind::vector ? o.items : std::vector<Operand>{o};
}

}  // namespace

Result<void> decode_fragment(Operands& ops, const Operand& o, size_t n, int size,
                             bool is_destination, std::vector<int32_t>& into) {
  const std::vector<Operand> items = items_of(o);
  if (items.size() != n) return ops.code.wrong("the fragment has the wrong number of registers");
  for (const Operand& item : items) {
    Slot slot;
    if (is_destination) {
      CG_TRY(slot, ops.destination(item, size));
    } else {
      CG_TRY(slot, ops.source(item, size, ""));
    }
    into.push_back(slot.offset);
  }
  return {};
}

// mma.sync.aligned.SHAPE.ALAYOUT.BLAYOUT[.satfinite].D.A.B.C[.OP.popc] d, a, b, c
Result<void> decode_multiply(Operands& ops, const Statement& s, const Modifiers& m) {
  std::string name;
  bool known = m.parts.size() > 7 && m.parts[1] == "sync" && m.parts[2] == "aligned" &&
               m.parts[4] == "row" && m.parts[5] == "col";
  Inst in;
  for (size_t i = 3; known && i < m.parts.size(); ++i) {
    if (i == 4 || i == 5) continue;
    if (m.parts[i] == "satfinite") {
      in.sub |= kSaturate;
      continue;
    }
    name += (name.empty() ? "" : ".") + std::string(m.parts[i]);
  }
  const MatrixForm* form = known ? forms().find_matrix(name) : nullptr;
  if (!form || (in.sub && !m.has("s32"))) return ops.code.unsupported(sanitize(s.opcode, 80));
  CG_CHECK(ops.code.count(s, 4, 4));
  std::vector<int32_t> writes, reads, list;
  CG_CHECK(decode_fragment(ops, s.operands[0], form->d, form->size_d, true, writes));
  CG_CHECK(decode_fragment(ops, s.operands[1], form->a, form->size_ab, false, reads));
  CG_CHECK(decode_fragment(ops, s.operands[2], form->b, form->size_ab, false, reads));
  CG_CHECK(decode_fragment(ops, s.operands[3], form->c, form->size_d, false, reads));
  list = writes;
  list.insert(list.end(), reads.begin(), reads.end());
  in.op = Op::matrix, in.kind = form->kind, in.masked = form->run, in.flops = form->flops;
  in.list = ops.code.keep(std::move(list));
  ops.code.emit(in, std::move(reads), std::move(writes));
  return {};
}

// ldmatrix.sync.aligned.m8n8.xN[.trans].shared.b16 r, [p]; stmatrix has the operands swapped
Result<void> decode_matrix_rows(Operands& ops, const Statement& s, const Modifiers& m) {
  const bool store = m.base() == "stmatrix";
  bool trans = false, known = m.parts.size() > 5 && m.type() == "b16";
  int shape = 0, n = 0, space = 0;
  for (size_t i = 1; i + 1 < m.parts.size(); ++i) {
    const std::string_view p = m.parts[i];
    if (p == "m8n8") {
      ++shape;
    } else if (p == "x1" || p == "x2" || p == "x4") {
      n = p[1] - '0';
    } else if (p == "shared" || p == "shared::cta") {
      ++space;
    } else if (p == "trans") {
      trans = true;
    } else {
      known = known && (p == "sync" || p == "aligned");
    }
  }
  const MatrixForm* form =
      forms().find_matrix(std::string(m.base()) + (trans ? ".trans" : ".rows"));
  if (!known || shape != 1 || n == 0 || space > 1 || !form)
    return ops.code.unsupported(sanitize(s.opcode, 80));
  CG_CHECK(ops.code.count(s, 2, 2));
  Inst in;
  in.op = store ? Op::store_matrix : Op::load_matrix;
  in.kind = store ? Kind::store_shared : Kind::load_shared;
  in.space = space ? Space::shared : Space::generic, in.masked = form->run;
  in.size = in.reg_size = 4, in.vec = uint8_t(n);
  std::copy_n(ops.code.scratch(), 4, in.v);
  std::vector<int32_t> registers, reads, writes;
  CG_CHECK(decode_fragment(ops, s.operands[store ? 1 : 0], size_t(n), 4, !store, registers));
  CG_CHECK(ops.address(s.operands[store ? 0 : 1], in));
  (store ? reads : writes) = registers;
  reads.push_back(in.a);
  in.list = ops.code.keep(std::move(registers));
  ops.code.emit(in, std::move(reads), std::move(writes));
  return {};
}

// movmatrix.sync.aligned.m8n8.trans.b16 d, a
Result<void> decode_move_matrix(Operands& ops, const Statement& s, const Modifiers& m) {
  const MatrixForm* form = forms().find_matrix("movmatrix.trans");
  const bool known = m.has("sync") && m.has("aligned") && m.has("m8n8") && m.has("trans") &&
                     m.type() == "b16" && m.parts.size() == 6;
  if (!known || !form) return ops.code.unsupported(sanitize(s.opcode, 80));
  CG_CHECK(ops.code.count(s, 2, 2));
  CG_TRY(Slot a, ops.source(s.operands[1], 4, "b32"));
  CG_TRY(Slot d, ops.destination(s.operands[0], 4));
  Inst in;
  in.op = Op::matrix, in.kind = Kind::shuffle, in.masked = form->run;
  in.a = a.offset, in.d = d.offset;
  ops.code.emit(in, {in.a}, {in.d});
  return {};
}

}  // namespace cutegen::ptx
