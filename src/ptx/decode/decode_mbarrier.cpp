// SPDX-License-Identifier: Apache-2.0
// mbarrier, and the fences for mbarriers and the async proxy.
#include <utility>

#include "base/text.h"
#include "ptx/decode/families.h"
#include "ptx/ops/mbarrier.h"

namespace cutegen::ptx {
namespace {

struct MbarrierWords {
  std::optional<MbarrierOp> op;
  int32_t flags = 0;
  bool known = true;
  bool cluster = false;  // .shared::cluster: the arrival returns no state
  Space space = Space::generic;
};

std::optional<MbarrierOp> operation(std::string_view word) {
  static constexpr std::pair<std::string_view, MbarrierOp> names[] = {
      {"init", MbarrierOp::init},
      {"inval", MbarrierOp::inval},
      {"arrive", MbarrierOp::arrive},
      {"arrive_drop", MbarrierOp::arrive_drop},
      {"expect_tx", MbarrierOp::expect_tx},
      {"complete_tx", MbarrierOp::complete_tx},
      {"test_wait", MbarrierOp::test_wait},
      {"try_wait", MbarrierOp::try_wait},
      {"pending_count", MbarrierOp::pending_count}};
  for (const auto& [name, op] : names)
    if (name == word) return op;
  return std::nullopt;
}

bool arrives(MbarrierOp op) {
  return op == MbarrierOp::arrive || op == MbarrierOp::arrive_drop;
}
bool waits(MbarrierOp op) {
  return op == MbarrierOp::test_wait || op == MbarrierOp::try_wait;
}

// mbarrier.OP{.expect_tx | .noComplete | .parity}{.sem}{.scope}{.space}.b64
MbarrierWords read_mbarrier_words(const Modifiers& m) {
  MbarrierWords out;
  if (m.parts.size() < 3 || m.type() != "b64") return out;
  out.op = operation(m.parts[1]);
  if (!out.op) return out;
  for (size_t i = 2; i + 1 < m.parts.size(); ++i) {
    const std::string_view p = m.parts[i];
    if (p == "shared" || p == "shared::cta" || p == "shared::cluster") {
      out.space = Space::shared, out.cluster = p == "shared::cluster";
    } else if (p == "parity" && waits(*out.op)) {
      out.flags |= kMbarrierParity;
    } else if (p == "expect_tx" && arrives(*out.op)) {
      out.flags |= kMbarrierExpects;
    } else if (p == "noComplete" && arrives(*out.op)) {
      out.flags |= kMbarrierNoComplete;
    } else if (p == "relaxed") {
      out.flags |= kMbarrierRelaxed;
    } else if (p != "release" && p != "acquire" && p != "cta" && p != "cluster") {
      out.known = false;
    }
  }
  const bool remote =
      arrives(*out.op) || *out.op == MbarrierOp::expect_tx || *out.op == MbarrierOp::complete_tx;
  out.known = out.known && (!out.cluster || remote);
  return out;
}

Result<int32_t> number(Operands& ops, const Operand& o, std::vector<int32_t>& reads) {
  CG_TRY(Slot slot, ops.source(o, 4, "u32"));
  reads.push_back(slot.offset);
  return slot.offset;
}

// state, [addr]{, count}: the state may be `_`.
Result<void> decode_arrival(Operands& ops, const Statement& s, const MbarrierWords& words,
                            Inst in) {
  const bool has_number = words.flags & (kMbarrierExpects | kMbarrierNoComplete);
  CG_CHECK(ops.code.count(s, has_number ? 3 : 2, 3));
  std::vector<int32_t> reads, writes;
  if (s.operands[0].kind != Operand::Kind::sink) {
    if (words.cluster) return ops.code.wrong("a remote arrival returns no state");
    CG_TRY(Slot d, ops.destination(s.operands[0], 8));
    in.d = d.offset;
    writes.push_back(in.d);
  }
  CG_CHECK(ops.address(s.operands[1], in));
  reads.push_back(in.a);
  if (s.operands.size() == 3) {
    CG_TRY(in.b, number(ops, s.operands[2], reads));
  }
  ops.code.emit(in, std::move(reads), std::move(writes));
  return {};
}

// p, [addr], state | parity {, time}: the time has no effect, see docs/simulator_opcodes.md.
Result<void> decode_wait(Operands& ops, const Statement& s, const MbarrierWords& words, Inst in) {
  const bool limited = MbarrierOp(in.sub) == MbarrierOp::try_wait;
  CG_CHECK(ops.code.count(s, 3, limited ? 4 : 3));
  CG_TRY(Slot d, ops.destination(s.operands[0], 0));
  CG_CHECK(ops.address(s.operands[1], in));
  const bool parity = words.flags & kMbarrierParity;
  CG_TRY(Slot b, ops.source(s.operands[2], parity ? 4 : 8, parity ? "u32" : "b64"));
  in.d = d.offset, in.b = b.offset;
  std::vector<int32_t> reads{in.a, in.b};
  if (s.operands.size() == 4) CG_CHECK(number(ops, s.operands[3], reads));
  ops.code.emit(in, std::move(reads), {in.d});
  return {};
}

Result<void> decode_pending_count(Operands& ops, const Statement& s, Inst in) {
  CG_CHECK(ops.code.count(s, 2, 2));
  CG_TRY(Slot d, ops.destination(s.operands[0], 4));
  CG_TRY(Slot b, ops.source(s.operands[1], 8, "b64"));
  in.d = d.offset, in.b = b.offset;
  ops.code.emit(in, {in.b}, {in.d});
  return {};
}

// [addr]{, count}
Result<void> decode_plain(Operands& ops, const Statement& s, Inst in) {
  const size_t wanted = MbarrierOp(in.sub) == MbarrierOp::inval ? 1 : 2;
  CG_CHECK(ops.code.count(s, wanted, wanted));
  CG_CHECK(ops.address(s.operands[0], in));
  std::vector<int32_t> reads{in.a};
  if (wanted == 2) {
    CG_TRY(in.b, number(ops, s.operands[1], reads));
  }
  ops.code.emit(in, std::move(reads), {});
  return {};
}

}  // namespace

Result<void> decode_mbarrier(Operands& ops, const Statement& s, const Modifiers& m) {
  const MbarrierWords words = read_mbarrier_words(m);
  if (!words.op || !words.known) return ops.code.unsupported(sanitize(s.opcode, 80));
  Inst in;
  in.op = Op::mbarrier, in.kind = Kind::barrier, in.sub = uint8_t(*words.op);
  in.space = words.space, in.target = words.flags;
  if (arrives(*words.op)) return decode_arrival(ops, s, words, in);
  if (waits(*words.op)) return decode_wait(ops, s, words, in);
  if (*words.op == MbarrierOp::pending_count) return decode_pending_count(ops, s, in);
  return decode_plain(ops, s, in);
}

// cp.async.mbarrier.arrive{.noinc}{.shared{::cta}}.b64 [addr]
Result<void> decode_copies_arrive(Operands& ops, const Statement& s, const Modifiers& m) {
  Inst in;
  in.op = Op::mbarrier, in.kind = Kind::barrier, in.sub = uint8_t(MbarrierOp::after_copies);
  in.target = 0;
  bool known = m.parts.size() >= 5 && m.parts[1] == "async" && m.parts[2] == "mbarrier" &&
               m.parts[3] == "arrive" && m.type() == "b64";
  for (size_t i = 4; i + 1 < m.parts.size(); ++i) {
    const std::string_view p = m.parts[i];
    if (p == "noinc")
      in.target |= kMbarrierCounted;
    else if (p == "shared" || p == "shared::cta")
      in.space = Space::shared;
    else
      known = false;
  }
  if (!known) return ops.code.unsupported(sanitize(s.opcode, 80));
  CG_CHECK(ops.code.count(s, 1, 1));
  CG_CHECK(ops.address(s.operands[0], in));
  ops.code.emit(in, {in.a}, {});
  return {};
}

namespace {

// fence.proxy.tensormap::generic.{release.scope, acquire.scope [address], 128}. The simulator reads
// tensor maps in program order, so it needs only the order between threads.
Result<void> fence_tensor_map(Operands& ops, const Statement& s, const Modifiers& m) {
  static constexpr std::string_view scopes[] = {"cta", "cluster", "gpu", "sys"};
  const bool acquires = m.parts.size() == 5 && m.parts[3] == "acquire";
  const bool known =
      m.parts.size() == 5 && (acquires || m.parts[3] == "release") &&
      std::find(std::begin(scopes), std::end(scopes), m.parts[4]) != std::end(scopes);
  if (!known) return ops.code.unsupported(sanitize(s.opcode, 80));
  CG_CHECK(ops.code.count(s, acquires ? 2 : 0, acquires ? 2 : 0));
  Inst in;
  in.op = Op::fence, in.kind = Kind::other;
  in.sub = m.parts[4] == "cta" ? kFenceCta : kFenceGpu;
  if (acquires) {
    const Operand& size = s.operands[1];
    if (size.kind != Operand::Kind::integer || size.value != 128)
      return ops.code.wrong("the size of a tensor map is 128");
    CG_CHECK(ops.address(s.operands[0], in));
    ops.code.emit(in, {in.a}, {});
  } else {
    ops.code.emit(in, {}, {});
  }
  return {};
}

// fence.proxy.async::generic.{acquire.sync_restrict::shared::cluster, release.sync_restrict::
// shared::cta}.cluster: one direction of fence.proxy.async for shared memory. The check does not
// distinguish the directions.
bool is_one_way(const Modifiers& m) {
  if (m.parts.size() != 6 || m.parts[5] != "cluster") return false;
  return (m.parts[3] == "acquire" && m.parts[4] == "sync_restrict::shared::cluster") ||
         (m.parts[3] == "release" && m.parts[4] == "sync_restrict::shared::cta");
}

}  // namespace

// fence.mbarrier_init.release.cluster, fence.proxy.*; every other fence is plain.
Result<void> decode_fence(Operands& ops, const Statement& s, const Modifiers& m) {
  const std::string_view what = m.parts.size() > 1 ? m.parts[1] : "";
  if (what != "proxy" && what != "mbarrier_init") return decode_control(ops, s, m);
  const std::string_view kind = m.parts.size() > 2 ? m.parts[2] : "";
  const std::string_view space = m.parts.size() > 3 ? m.parts[3] : "";
  if (what == "proxy" && kind == "tensormap::generic") return fence_tensor_map(ops, s, m);
  static constexpr std::string_view spaces[] = {"", "global", "shared::cta", "shared::cluster"};
  const bool known_space =
      std::find(std::begin(spaces), std::end(spaces), space) != std::end(spaces);
  Inst in;
  in.op = Op::fence, in.kind = Kind::other, in.sub = kNoFence;
  bool known = m.parts.size() <= 4;
  if (what == "mbarrier_init") {
    known = known && kind == "release" && space == "cluster";
    in.sub = kFenceMbarrierInit;
  } else if (kind == "async") {
    known = known && known_space;
    in.sub = space.empty()       ? kFenceProxy
             : space == "global" ? kFenceProxyGlobal
                                 : kFenceProxyShared;
  } else if (kind == "async::generic") {
    known = is_one_way(m);
    in.sub = kFenceProxyShared;
  } else {
    known = known && kind == "alias" && space.empty();
  }
  if (!known) return ops.code.unsupported(sanitize(s.opcode, 80));
  CG_CHECK(ops.code.count(s, 0, 0));
  ops.code.emit(in, {}, {});
  return {};
}

}  // namespace cutegen::ptx
