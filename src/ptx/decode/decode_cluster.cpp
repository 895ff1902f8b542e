// SPDX-License-Identifier: Apache-2.0
// Cluster instructions (barrier.cluster, mapa, getctarank), and setmaxnreg.
#include "base/text.h"
#include "ptx/decode/families.h"
#include "ptx/ops/cluster.h"

namespace cutegen::ptx {

// barrier.cluster.arrive{.release,.relaxed}{.aligned}; barrier.cluster.wait{.acquire}{.aligned}
Result<void> decode_cluster_barrier(Operands& ops, const Statement& s, const Modifiers& m) {
  Inst in;
  in.op = Op::cluster_barrier, in.kind = Kind::barrier;
  const std::string_view what = m.parts.size() > 2 ? m.parts[2] : "";
  bool known = m.base() == "barrier" && m.parts[1] == "cluster";
  known = known && (what == "arrive" || what == "wait");
  in.sub = what == "wait" ? kClusterWait : kClusterArrive;
  in.releases = in.sub == kClusterArrive;
  for (size_t i = 3; i < m.parts.size(); ++i) {
    const std::string_view p = m.parts[i];
    if (p == "aligned") {
      in.aligned = true;
    } else if (p == "relaxed" && in.sub == kClusterArrive) {
      in.releases = false;
    } else {
      known = known && p == (in.sub == kClusterArrive ? "release" : "acquire");
    }
  }
  if (!known) return ops.code.unsupported(sanitize(s.opcode, 80));
  CG_CHECK(ops.code.count(s, 0, 0));
  ops.code.program.uses_clusters = true;
  ops.code.emit(in, {}, {});
  return {};
}

// mapa{.shared::cluster}.{u32,u64} d, a, rank; getctarank{.shared::cluster}.{u32,u64} d, a
Result<void> decode_map(Operands& ops, const Statement& s, const Modifiers& m) {
  const bool map = m.base() == "mapa";
  const int size = int(type_bytes(m.type()));
  const bool named = m.parts.size() == 3 && m.parts[1] == "shared::cluster";
  const bool known = (m.type() == "u32" || m.type() == "u64") && (named || m.parts.size() == 2);
  if (!known || (!named && size == 4)) return ops.code.unsupported(sanitize(s.opcode, 80));
  CG_CHECK(ops.code.count(s, map ? 3 : 2, map ? 3 : 2));
  Inst in;
  in.op = Op::cluster_map, in.kind = Kind::integer, in.sub = map ? kClusterMap : kClusterRank;
  in.reg_size = uint8_t(size);
  CG_TRY(Slot a, ops.source(s.operands[1], size, m.type()));
  CG_TRY(Slot d, ops.destination(s.operands[0], map ? size : 4));
  in.a = a.offset, in.d = d.offset;
  std::vector<int32_t> reads{in.a};
  if (map) {
    CG_TRY(Slot rank, ops.source(s.operands[2], 4, "u32"));
    in.b = rank.offset;
    reads.push_back(in.b);
  }
  ops.code.program.uses_clusters = true;
  ops.code.emit(in, std::move(reads), {in.d});
  return {};
}

// setmaxnreg.{inc,dec}.sync.aligned.u32 n (PTX ISA, "setmaxnreg")
Result<void> decode_registers(Operands& ops, const Statement& s, const Modifiers& m) {
  const bool known = m.parts.size() == 5 && (m.parts[1] == "inc" || m.parts[1] == "dec") &&
                     m.parts[2] == "sync" && m.parts[3] == "aligned" && m.type() == "u32";
  if (!known) return ops.code.unsupported(sanitize(s.opcode, 80));
  CG_CHECK(ops.code.count(s, 1, 1));
  const Operand& n = s.operands[0];
  if (n.kind != Operand::Kind::integer || n.value < 24 || n.value > 256 || n.value % 8 != 0)
    return ops.code.wrong("the number of registers must be a multiple of 8 from 24 to 256");
  Inst in;
  in.op = Op::wgmma, in.sub = m.parts[1] == "inc" ? kMoreRegisters : kFewerRegisters;
  in.imm = n.value;
  ops.code.program.uses_wgmma = true;
  ops.code.emit(in, {}, {});
  return {};
}

}  // namespace cutegen::ptx
