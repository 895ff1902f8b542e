// SPDX-License-Identifier: Apache-2.0
// Warp-wide matrix instructions and asynchronous copies: mma.sync, ldmatrix, stmatrix, movmatrix,
// cp.async.
#include <charconv>

#include "base/text.h"
#include "ptx/decode/decoder.h"
#include "ptx/ops/async_copy.h"

namespace cutegen::ptx {
namespace {

std::vector<Operand> items_of(const Operand& o) {
  return o.kind == Operand::Kind::vector ? o.items : std::vector<Operand>{o};
}

}  // namespace

// Scratch registers of an instruction: five words of every lane.
const int32_t* Decoder::scratch() {
  for (int32_t& slot : scratch_) {
    if (slot < 0) slot = allocate(4);
  }
  return scratch_;
}

const int32_t* Decoder::keep(std::vector<int32_t> list) {
  p_.lists.push_back(std::make_shared<const std::vector<int32_t>>(std::move(list)));
  return p_.lists.back()->data();
}

// Appends the slots of `n` registers of `size` bytes.
Result<void> Decoder::fragment(const Operand& o, size_t n, int size, bool is_destination,
                               std::vector<int32_t>& into) {
  const std::vector<Operand> items = items_of(o);
  if (items.size() != n) return wrong("the fragment has the wrong number of registers");
  for (const Operand& item : items) {
    Slot slot;
    if (is_destination) {
      CG_TRY(slot, destination(item, size));
    } else {
      CG_TRY(slot, source(item, size, ""));
    }
    into.push_back(slot.offset);
  }
  return {};
}

// mma.sync.aligned.SHAPE.ALAYOUT.BLAYOUT[.satfinite].D.A.B.C[.OP.popc] d, a, b, c
Result<void> Decoder::multiply(const Statement& s, const Modifiers& m) {
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
  if (!form || (in.sub && !m.has("s32"))) return unsupported(sanitize(s.opcode, 80));
  CG_CHECK(count(s, 4, 4));
  std::vector<int32_t> writes, reads, list;
  CG_CHECK(fragment(s.operands[0], form->d, form->size_d, true, writes));
  CG_CHECK(fragment(s.operands[1], form->a, form->size_ab, false, reads));
  CG_CHECK(fragment(s.operands[2], form->b, form->size_ab, false, reads));
  CG_CHECK(fragment(s.operands[3], form->c, form->size_d, false, reads));
  list = writes;
  list.insert(list.end(), reads.begin(), reads.end());
  in.op = Op::matrix, in.kind = form->kind, in.masked = form->run, in.flops = form->flops;
  in.list = keep(std::move(list));
  emit(in, std::move(reads), std::move(writes));
  return {};
}

// ldmatrix.sync.aligned.m8n8.xN[.trans].shared.b16 r, [p]; stmatrix with its operands swapped
Result<void> Decoder::matrix_rows(const Statement& s, const Modifiers& m) {
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
    return unsupported(sanitize(s.opcode, 80));
  CG_CHECK(count(s, 2, 2));
  Inst in;
  in.op = store ? Op::store_matrix : Op::load_matrix;
  in.kind = store ? Kind::store_shared : Kind::load_shared;
  in.space = space ? Space::shared : Space::generic, in.masked = form->run;
  in.size = in.reg_size = 4, in.vec = uint8_t(n);
  std::copy_n(scratch(), 4, in.v);
  std::vector<int32_t> registers, reads, writes;
  CG_CHECK(fragment(s.operands[store ? 1 : 0], size_t(n), 4, !store, registers));
  CG_CHECK(address(s.operands[store ? 0 : 1], in));
  (store ? reads : writes) = registers;
  reads.push_back(in.a);
  in.list = keep(std::move(registers));
  emit(in, std::move(reads), std::move(writes));
  return {};
}

// movmatrix.sync.aligned.m8n8.trans.b16 d, a
Result<void> Decoder::move_matrix(const Statement& s, const Modifiers& m) {
  const MatrixForm* form = forms().find_matrix("movmatrix.trans");
  const bool known = m.has("sync") && m.has("aligned") && m.has("m8n8") && m.has("trans") &&
                     m.type() == "b16" && m.parts.size() == 6;
  if (!known || !form) return unsupported(sanitize(s.opcode, 80));
  CG_CHECK(count(s, 2, 2));
  CG_TRY(Slot a, source(s.operands[1], 4, "b32"));
  CG_TRY(Slot d, destination(s.operands[0], 4));
  Inst in;
  in.op = Op::matrix, in.kind = Kind::shuffle, in.masked = form->run;
  in.a = a.offset, in.d = d.offset;
  emit(in, {in.a}, {in.d});
  return {};
}

// cp.async.{ca,cg}.shared.global [d], [s], bytes[, src-bytes | ignore-src][, cache-policy]
// cp.async.commit_group; cp.async.wait_group n; cp.async.wait_all
Result<void> Decoder::async(const Statement& s, const Modifiers& m) {
  const std::string_view what = m.parts.size() > 2 && m.parts[1] == "async" ? m.parts[2] : "";
  Inst in;
  if (what == "commit_group" || what == "wait_group" || what == "wait_all") {
    const bool counted = what == "wait_group";
    if (m.parts.size() != 3) return unsupported(sanitize(s.opcode, 80));
    CG_CHECK(count(s, counted ? 1 : 0, counted ? 1 : 0));
    in.op = what == "commit_group" ? Op::async_commit : Op::async_wait;
    if (counted && (s.operands[0].kind != Operand::Kind::integer || s.operands[0].value < 0))
      return wrong("the number of groups must be a number");
    in.imm = counted ? s.operands[0].value : kWaitAll;
    emit(in, {}, {});
    return {};
  }
  bool known = what == "ca" || what == "cg", to_shared = false, from_global = false;
  for (size_t i = 3; i < m.parts.size(); ++i) {
    const std::string_view p = m.parts[i];
    if (p == "shared" || p == "shared::cta") {
      to_shared = true;
    } else if (p == "global") {
      from_global = true;
    } else {
      known = known && p.starts_with("L2::");
    }
  }
  if (!known || !to_shared || !from_global) return unsupported(sanitize(s.opcode, 80));
  return async_operands(s, m, in);
}

Result<void> Decoder::async_operands(const Statement& s, const Modifiers& m, Inst in) {
  const bool hint = m.has("L2::cache_hint");
  CG_CHECK(count(s, hint ? 4 : 3, hint ? 5 : 4));
  const Operand& bytes = s.operands[2];
  const bool legal =
      bytes.kind == Operand::Kind::integer &&
      (bytes.value == 16 || (!m.has("cg") && (bytes.value == 4 || bytes.value == 8)));
  if (!legal) return wrong("a copy must have 4, 8 or 16 bytes (16 with .cg)");
  Inst to;  // only for its address
  to.space = Space::shared;
  CG_CHECK(address(s.operands[0], to));
  in.op = Op::async_copy, in.kind = Kind::load_global, in.space = Space::global;
  in.size = in.reg_size = 4, in.vec = uint8_t(bytes.value / 4);
  CG_CHECK(address(s.operands[1], in));
  std::copy_n(scratch(), 4, in.v);
  std::vector<int32_t> reads{in.a, to.a};
  if (s.operands.size() > (hint ? 4u : 3u)) {
    const Operand& o = s.operands[3];
    auto slot = o.kind == Operand::Kind::word ? find_register(o.text) : std::nullopt;
    if (slot && slot->size == 0) {
      in.e = slot->offset, in.sub = o.negated;
    } else {
      CG_TRY(slot, source(o, 4, "u32"));
      in.c = slot->offset;
    }
    reads.push_back(slot->offset);
  }
  if (to.imm < INT32_MIN || to.imm > INT32_MAX) return wrong("the offset is too large");
  in.list = keep({to.a, int32_t(to.imm), to.wide_address, scratch_[4]});
  emit(in, std::move(reads), {});
  return {};
}

}  // namespace cutegen::ptx
