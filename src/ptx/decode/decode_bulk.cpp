// SPDX-License-Identifier: Apache-2.0
// Bulk copies: cp.async.bulk, cp.async.bulk.tensor, cp.reduce.async.bulk.
#include "base/text.h"
#include "ptx/decode/families.h"
#include "ptx/ops/bulk_copy.h"

namespace cutegen::ptx {
namespace {

// The words of the opcode.
struct BulkWords {
  BulkKind kind = BulkKind::load;
  uint32_t rank = 0;  // 0: plain bytes
  bool multicast = false, hint = false, counted = false, grouped = false;
  bool im2col = false, offsets = false;
  bool known = true;
  std::string_view to, from;
  std::optional<AtomicOp> op;
  std::optional<AtomicType> type;
};

bool is_space(std::string_view p) {
  return p == "global" || p == "shared::cta" || p == "shared::cluster";
}

void read_word(std::string_view p, BulkWords& w) {
  if (is_space(p)) {
    w.known = w.known && w.from.empty();
    (w.to.empty() ? w.to : w.from) = p;
  } else if (p.size() == 2 && p[0] >= '1' && p[0] <= '5' && p[1] == 'd') {
    w.rank = uint32_t(p[0] - '0');
  } else if (p == "mbarrier::complete_tx::bytes") {
    w.counted = true;
  } else if (p == "bulk_group") {
    w.grouped = true;
  } else if (p == "multicast::cluster") {
    w.multicast = true;
  } else if (p == "L2::cache_hint") {
    w.hint = true;
  } else if (p == "im2col" || p == "im2col_no_offs") {
    w.im2col = true, w.offsets = p == "im2col";
  } else if (auto op = atomic_op(p); op && w.kind == BulkKind::reduce) {
    w.op = op;
  } else if (auto type = atomic_type(p); type && w.kind == BulkKind::reduce) {
    w.type = type;
  } else if (p != "tile" && p != "tensor" && p != "noftz" &&
             !(p == "L2" && w.kind == BulkKind::prefetch)) {
    w.known = false;
  }
}

// Whether cp.reduce.async.bulk to global memory has this form. f32 is added as by atomics there.
bool reduces(BulkWords& w) {
  if (!w.op || *w.op >= AtomicOp::exch) return false;
  if (w.rank > 0) return !w.type;  // the type is in the tensor map
  if (!w.type) return false;
  const bool half = *w.type == AtomicType::f16 || *w.type == AtomicType::bf16;
  if (half) return *w.op <= AtomicOp::max;
  if (!atomic_known(*w.op, *w.type)) return false;
  const bool counts = *w.op == AtomicOp::inc || *w.op == AtomicOp::dec;
  if (counts && *w.type != AtomicType::u32) return false;
  if (*w.op == AtomicOp::add && *w.type == AtomicType::s64) return false;
  if (*w.type == AtomicType::f32) w.type = AtomicType::f32_flushed;
  return true;
}

// Whether the reduction exists for the shared memory of another CTA: integers only.
bool reduces_shared(const BulkWords& w) {
  if (!w.op || !w.type || *w.op >= AtomicOp::exch || !atomic_known(*w.op, *w.type)) return false;
  const AtomicType t = *w.type;
  switch (*w.op) {
    case AtomicOp::inc:
    case AtomicOp::dec:
      return t == AtomicType::u32;
    case AtomicOp::add:
      return t == AtomicType::u32 || t == AtomicType::s32 || t == AtomicType::u64;
    case AtomicOp::min:
    case AtomicOp::max:
      return t == AtomicType::u32 || t == AtomicType::s32;
    default:
      return t == AtomicType::b32;
  }
}

BulkWords read_bulk_words(const Modifiers& m) {
  BulkWords w;
  const bool reduce = m.parts.size() > 3 && m.parts[1] == "reduce";
  if (reduce) w.kind = BulkKind::reduce;
  size_t i = reduce ? 4 : 3;
  if (i < m.parts.size() && m.parts[i] == "prefetch") w.kind = BulkKind::prefetch, ++i;
  for (; i < m.parts.size(); ++i) read_word(m.parts[i], w);
  const bool from_shared = w.from == "shared::cta", tile = w.rank > 0;
  if (w.kind == BulkKind::prefetch) {
    w.known = w.known && w.to == "global" && w.from.empty() && !w.counted && !w.grouped;
  } else if (w.to == "shared::cluster" && from_shared) {
    w.known = w.known && !tile && w.counted && !w.grouped && !w.multicast && !w.hint;
  } else if (w.to == "global") {
    if (w.kind == BulkKind::load) w.kind = BulkKind::store;
    w.known = w.known && from_shared && w.grouped && !w.counted && !w.multicast;
  } else {
    w.known = w.known && w.kind == BulkKind::load && w.from == "global" && w.counted && !w.grouped;
  }
  // A load and a prefetch have the offsets of a filter tap, a store and a reduction do not.
  const bool has_tap = w.kind == BulkKind::load || w.kind == BulkKind::prefetch;
  if (w.im2col) w.known = w.known && w.rank >= 3 && w.offsets == has_tap;
  if (w.kind == BulkKind::reduce)
    w.known = w.known && (w.to == "global" ? reduces(w) : reduces_shared(w));
  if (w.to == "shared::cluster" && from_shared) w.kind = BulkKind::load;
  return w;
}

class BulkDecoder {
 public:
  BulkDecoder(Operands& ops, const Statement& s, const BulkWords& words)
      : ops_(ops), s_(s), w_(words), list_(bulk::kCount, -1) {}
  Result<void> run();

 private:
  // The next operand.
  Result<const Operand*> next() {
    if (at_ < s_.operands.size()) return &s_.operands[at_++];
    return ops_.code.wrong("too few operands");
  }
  Result<void> address(const Operand& o, size_t place, Space space);
  Result<void> number(const Operand& o, size_t place, int size, const char* type);
  Result<void> numbers(const Operand& o, size_t place, size_t count, int size, const char* type);
  Result<void> tensor(const Operand& o);
  Result<void> offsets();
  Result<void> global();
  bool from_shared() const { return w_.to != "global" && w_.from == "shared::cta"; }

  Operands& ops_;
  const Statement& s_;
  const BulkWords& w_;
  std::vector<int32_t> list_, reads_;
  size_t at_ = 0;
};

Result<void> BulkDecoder::address(const Operand& o, size_t place, Space space) {
  Inst in;
  in.space = space;
  CG_CHECK(ops_.address(o, in));
  if (in.imm < INT32_MIN || in.imm > INT32_MAX) return ops_.code.wrong("the offset is too large");
  list_[place] = in.a, list_[place + 1] = int32_t(in.imm), list_[place + 2] = in.wide_address;
  reads_.push_back(in.a);
  return {};
}

Result<void> BulkDecoder::number(const Operand& o, size_t place, int size, const char* type) {
  CG_TRY(Slot slot, ops_.source(o, size, type));
  list_[place] = slot.offset;
  reads_.push_back(slot.offset);
  return {};
}

// One number, or a vector of numbers.
Result<void> BulkDecoder::numbers(const Operand& o, size_t place, size_t count, int size,
                                  const char* type) {
  const std::vector<Operand> items =
      o.kind == Operand::Kind::vector ? o.items : std::vector<Operand>{o};
  if (items.size() != count) return ops_.code.wrong("a coordinate for each dimension is expected");
  for (size_t i = 0; i < items.size(); ++i) CG_CHECK(number(items[i], place + i, size, type));
  return {};
}

// [map, {c0, c1, ...}]
Result<void> BulkDecoder::tensor(const Operand& o) {
  if (o.kind != Operand::Kind::address || o.items.size() != 1)
    return ops_.code.wrong("a tensor map with coordinates is expected");
  Operand map = o;
  map.items.clear();
  CG_CHECK(address(map, bulk::kGlobal, Space::generic));
  return numbers(o.items[0], bulk::kCoordinates, w_.rank, 4, "s32");
}

// {w}, {w, h} or {w, h, d}
Result<void> BulkDecoder::offsets() {
  if (!w_.offsets) return {};
  CG_TRY(const Operand* o, next());
  return numbers(*o, bulk::kOffsets, w_.rank - 2, 2, "u16");
}

Result<void> BulkDecoder::global() {
  CG_TRY(const Operand* o, next());
  if (from_shared()) return address(*o, bulk::kGlobal, Space::shared);
  return w_.rank > 0 ? tensor(*o) : address(*o, bulk::kGlobal, Space::global);
}

Result<void> BulkDecoder::run() {
  const bool load = w_.kind == BulkKind::load, prefetch = w_.kind == BulkKind::prefetch;
  if (load) {
    CG_TRY(const Operand* to, next());
    CG_CHECK(address(*to, bulk::kShared, Space::shared));
  }
  CG_CHECK(global());
  if (!load && !prefetch) {
    CG_TRY(const Operand* from, next());
    CG_CHECK(address(*from, bulk::kShared, Space::shared));
  }
  if (w_.rank == 0) {
    CG_TRY(const Operand* size, next());
    CG_CHECK(number(*size, bulk::kSize, 4, "u32"));
  }
  if (load) {
    CG_TRY(const Operand* barrier, next());
    CG_CHECK(address(*barrier, bulk::kMbarrier, Space::shared));
  }
  CG_CHECK(offsets());
  if (w_.multicast) {
    CG_TRY(const Operand* mask, next());
    CG_CHECK(number(*mask, bulk::kCtaMask, 2, "u16"));
  }
  if (w_.hint) CG_CHECK(next());
  CG_CHECK(ops_.code.count(s_, at_, at_));
  Inst in;
  in.op = Op::bulk_copy, in.sub = uint8_t(w_.kind), in.vec = uint8_t(w_.rank);
  in.kind = load || prefetch ? Kind::load_global : w_.op ? Kind::atomic : Kind::store_global;
  in.space = Space::global;
  in.target = w_.im2col;
  if (from_shared()) in.kind = Kind::store_shared, in.e = 1;
  if (w_.op) in.b = int32_t(*w_.op), in.c = w_.type ? int32_t(*w_.type) : -1;
  in.list = ops_.code.keep(std::move(list_));
  ops_.code.emit(in, std::move(reads_), {});
  return {};
}

// cp.async.bulk.commit_group; cp.async.bulk.wait_group{.read} n
Result<void> decode_group(Operands& ops, const Statement& s, const Modifiers& m) {
  const bool waits = m.parts[3] == "wait_group", reads = m.has("read");
  const size_t most = waits && reads ? 5 : 4;
  if (m.parts.size() != most) return ops.code.unsupported(sanitize(s.opcode, 80));
  CG_CHECK(ops.code.count(s, waits ? 1 : 0, waits ? 1 : 0));
  Inst in;
  in.op = waits ? Op::bulk_wait : Op::bulk_commit;
  in.sub = reads;
  if (waits) {
    if (s.operands[0].kind != Operand::Kind::integer || s.operands[0].value < 0)
      return ops.code.wrong("the number of groups must be a number");
    in.imm = s.operands[0].value;
  }
  ops.code.emit(in, {}, {});
  return {};
}

// st.async and red.async: [to], value, [mbarrier]
struct Deposit {
  bool known = false;
  size_t count = 1, bytes = 4;
  std::optional<AtomicOp> op;
  std::optional<AtomicType> type;
};

Deposit read_deposit(const Modifiers& m) {
  Deposit d;
  BulkWords w;
  w.kind = BulkKind::reduce, w.to = "";
  bool counted = false, cluster = false;
  d.known = m.parts.size() > 3;
  for (size_t i = 2; i + 1 < m.parts.size(); ++i) {
    const std::string_view p = m.parts[i];
    if (p == "mbarrier::complete_tx::bytes") {
      counted = true;
    } else if (p == "shared::cluster") {
      cluster = true;
    } else if (auto op = atomic_op(p); op && m.base() == "red") {
      w.op = op;
    } else if ((p == "v2" || p == "v4") && m.base() == "st") {
      d.count = p == "v2" ? 2 : 4;
    } else {
      d.known = d.known && (p == "weak" || p == "relaxed" || p == "cluster");
    }
  }
  const std::string_view type = m.type();
  d.bytes = type.ends_with("64") ? 8 : 4;
  w.type = atomic_type(type);
  d.op = w.op, d.type = w.type;
  const bool plain = type == "b32" || type == "u32" || type == "s32" || type == "f32" ||
                     type == "b64" || type == "u64" || type == "s64" || type == "f64";
  d.known = d.known && counted && cluster && (m.base() == "st" ? plain : reduces_shared(w));
  d.known = d.known && d.count * d.bytes <= 16;
  return d;
}

}  // namespace

Result<void> decode_deposit(Operands& ops, const Statement& s, const Modifiers& m) {
  const Deposit d = read_deposit(m);
  if (!d.known) return ops.code.unsupported(sanitize(s.opcode, 80));
  CG_CHECK(ops.code.count(s, 3, 3));
  std::vector<int32_t> list(bulk::kCount, -1), reads;
  const std::pair<size_t, size_t> addresses[] = {{0, bulk::kShared}, {2, bulk::kMbarrier}};
  for (const auto& [operand, place] : addresses) {
    Inst to;
    to.space = Space::shared;
    CG_CHECK(ops.address(s.operands[operand], to));
    if (to.imm < INT32_MIN || to.imm > INT32_MAX) return ops.code.wrong("the offset is too large");
    list[place] = to.a, list[place + 1] = int32_t(to.imm), list[place + 2] = to.wide_address;
    reads.push_back(to.a);
  }
  const Operand& v = s.operands[1];
  const std::vector<Operand> items =
      v.kind == Operand::Kind::vector ? v.items : std::vector<Operand>{v};
  if (items.size() != d.count) return ops.code.wrong("the vector has the wrong number of elements");
  for (size_t i = 0; i < items.size(); ++i) {
    CG_TRY(Slot slot, ops.source(items[i], int(d.bytes), m.type()));
    list[bulk::kCoordinates + i] = slot.offset;
    reads.push_back(slot.offset);
  }
  Inst in;
  in.op = Op::bulk_copy, in.sub = uint8_t(BulkKind::deposit), in.vec = 0;
  in.kind = d.op ? Kind::atomic : Kind::store_shared, in.space = Space::global;
  in.e = int32_t(d.count), in.target = int32_t(d.bytes);
  if (d.op) in.b = int32_t(*d.op), in.c = int32_t(*d.type);
  in.list = ops.code.keep(std::move(list));
  ops.code.emit(in, std::move(reads), {});
  return {};
}

Result<void> decode_bulk(Operands& ops, const Statement& s, const Modifiers& m) {
  const bool is_group =
      m.parts.size() > 3 && (m.parts[3] == "commit_group" || m.parts[3] == "wait_group");
  if (is_group && m.parts[1] == "async") return decode_group(ops, s, m);
  const BulkWords words = read_bulk_words(m);
  if (!words.known) return ops.code.unsupported(sanitize(s.opcode, 120));
  return BulkDecoder(ops, s, words).run();
}

}  // namespace cutegen::ptx
