// SPDX-License-Identifier: Apache-2.0
// wgmma: products of a warpgroup, and the instructions that order them.
// PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Operation using wgmma".
#include <charconv>

#include "base/text.h"
#include "ptx/decode/families.h"

namespace cutegen::ptx {
namespace {

struct TypeName {
  std::string_view name;
  WgmmaType type;
  int k;
  Kind kind;
};
constexpr TypeName kTypes[] = {
    {.name = "f16", .type = WgmmaType::f16, .k = 16, .kind = Kind::wgmma_half},
    {.name = "bf16", .type = WgmmaType::bf16, .k = 16, .kind = Kind::wgmma_half},
    {.name = "tf32", .type = WgmmaType::tf32, .k = 8, .kind = Kind::wgmma_tf32},
    {.name = "e4m3", .type = WgmmaType::e4m3, .k = 32, .kind = Kind::wgmma_fp8},
    {.name = "e5m2", .type = WgmmaType::e5m2, .k = 32, .kind = Kind::wgmma_fp8},
    {.name = "s8", .type = WgmmaType::s8, .k = 32, .kind = Kind::wgmma_int8},
    {.name = "u8", .type = WgmmaType::u8, .k = 32, .kind = Kind::wgmma_int8}};

const TypeName* find_type(std::string_view name) {
  for (const TypeName& t : kTypes)
    if (t.name == name) return &t;
  return nullptr;
}

std::optional<WgmmaSum> find_sum(std::string_view name) {
  if (name == "f32") return WgmmaSum::f32;
  if (name == "f16") return WgmmaSum::f16;
  return name == "s32" ? std::optional(WgmmaSum::s32) : std::nullopt;
}

// Returns N of a shape such as "m64n128k16" if M is 64 and K is `k`; otherwise 0.
int columns_of(std::string_view shape, int k) {
  if (!shape.starts_with("m64n")) return 0;
  shape.remove_prefix(4);
  int n = 0;
  const auto [end, error] = std::from_chars(shape.data(), shape.data() + shape.size(), n);
  const std::string_view rest = shape.substr(size_t(end - shape.data()));
  return error == std::errc{} && rest == "k" + std::to_string(k) ? n : 0;
}

// For 8-bit integers, N is 8, 16, 24, 32 or a larger multiple of 16.
bool legal_columns(int n, Kind kind) {
  if (n < 8 || n > kWgmmaMostColumns || n % 8 != 0) return false;
  return kind != Kind::wgmma_int8 || n <= 32 || n % 16 == 0;
}

// The opcode of wgmma.mma_async.
struct ProductForm {
  WgmmaOp op;
  const TypeName* a = nullptr;
  WgmmaSum sum = WgmmaSum::f32;
};

// wgmma.mma_async.sync.aligned.SHAPE[.satfinite].D.A.B; nullopt: unknown or not legal.
std::optional<ProductForm> read_form(const Modifiers& m) {
  const auto& p = m.parts;
  if (p.size() < 8 || p.size() > 9) return std::nullopt;
  ProductForm f;
  f.op.saturate = p.size() == 9 && p[5] == "satfinite";
  if (p.size() == 9 && !f.op.saturate) return std::nullopt;
  const TypeName* b = find_type(p.back());
  const auto sum = find_sum(p[p.size() - 3]);
  f.a = find_type(p[p.size() - 2]);
  if (!f.a || !b || !sum || (f.op.saturate && *sum != WgmmaSum::s32)) return std::nullopt;
  f.sum = *sum;
  f.op.n = columns_of(p[4], f.a->k);
  f.op.run = forms().wgmma(f.a->type, b->type, f.sum);
  if (!f.op.run || !legal_columns(f.op.n, f.a->kind)) return std::nullopt;
  f.op.d = f.sum == WgmmaSum::f16 ? f.op.n / 4 : f.op.n / 2;
  return f;
}

// Reads an immediate that must be `low` or `high`; true if it is `high`.
Result<bool> choice(Operands& ops, const Operand& o, int64_t low, int64_t high, const char* name) {
  if (o.kind == Operand::Kind::integer && (o.value == low || o.value == high))
    return o.value == high;
  return ops.code.wrong(std::string(name) + " must be " + std::to_string(low) + " or " +
                        std::to_string(high));
}

// imm-scale-a, imm-scale-b[, [imm-trans-a,] imm-trans-b] from operand 4 on
Result<void> immediates(Operands& ops, const Statement& s, ProductForm& f) {
  if (f.a->kind == Kind::wgmma_int8) return {};
  CG_TRY(const bool plain_a, choice(ops, s.operands[4], -1, 1, "imm-scale-a"));
  CG_TRY(const bool plain_b, choice(ops, s.operands[5], -1, 1, "imm-scale-b"));
  f.op.negate = plain_a != plain_b;
  if (f.a->kind != Kind::wgmma_half) return {};
  size_t at = 6;
  if (!f.op.a_in_registers) {
    CG_TRY(f.op.a_mn_major, choice(ops, s.operands[at++], 0, 1, "imm-trans-a"));
  }
  CG_TRY(f.op.b_mn_major, choice(ops, s.operands[at], 0, 1, "imm-trans-b"));
  return {};
}

// The number of operands of wgmma.mma_async, by the type of A.
size_t operand_count(const ProductForm& f) {
  if (f.a->kind == Kind::wgmma_int8) return 4;
  return f.a->kind != Kind::wgmma_half ? 6 : f.op.a_in_registers ? 7 : 8;
}

// d, a | a-desc, b-desc, scale-d, ...
Result<void> multiply(Operands& ops, const Statement& s, ProductForm f) {
  if (s.operands.size() < 4) return ops.code.count(s, operand_count(f), operand_count(f));
  f.op.a_in_registers = s.operands[1].kind == Operand::Kind::vector;
  CG_CHECK(ops.code.count(s, operand_count(f), operand_count(f)));
  CG_CHECK(immediates(ops, s, f));
  std::vector<int32_t> d, sources;
  CG_CHECK(decode_fragment(ops, s.operands[0], size_t(f.op.d), 4, true, d));
  const size_t a = size_t(f.op.a());
  CG_CHECK(decode_fragment(ops, s.operands[1], a, f.op.a_in_registers ? 4 : 8, false, sources));
  CG_TRY(Slot b, ops.source(s.operands[2], 8, "b64"));
  if (s.operands[3].negated) return ops.code.wrong("scale-d cannot be negated");
  CG_TRY(Slot scale, ops.predicate(s.operands[3]));
  sources.push_back(b.offset), sources.push_back(scale.offset);
  std::vector<int32_t> list = d, reads = d;
  list.insert(list.end(), sources.begin(), sources.end());
  reads.insert(reads.end(), sources.begin(), sources.end());
  Inst in;
  in.op = Op::wgmma, in.sub = kWgmmaMultiply, in.kind = f.a->kind, in.space = Space::shared;
  in.size = 4;  // of an access to shared memory, for the race checks' granule
  in.flops = uint16_t(f.op.n * f.a->k);
  in.target = int32_t(ops.code.program.wgmmas.size());
  in.list = ops.code.keep(std::move(list));
  ops.code.program.wgmmas.push_back(f.op);
  ops.code.emit(in, std::move(reads), std::move(d));
  return {};
}

}  // namespace

// wgmma.{mma_async,fence,commit_group,wait_group}.sync.aligned; sparse forms are not simulated
Result<void> decode_wgmma(Operands& ops, const Statement& s, const Modifiers& m) {
  ops.code.program.uses_wgmma = true;
  const bool aligned = m.parts.size() >= 4 && m.parts[2] == "sync" && m.parts[3] == "aligned";
  const std::string_view what = aligned ? m.parts[1] : "";
  if (what == "mma_async") {
    const auto form = read_form(m);
    return form ? multiply(ops, s, *form) : ops.code.unsupported(sanitize(s.opcode, 80));
  }
  Inst in;
  in.op = Op::wgmma;
  const bool waits = what == "wait_group";
  if (m.parts.size() != 4 || (what != "fence" && what != "commit_group" && !waits))
    return ops.code.unsupported(sanitize(s.opcode, 80));
  in.sub = waits ? kWgmmaWait : what == "fence" ? kWgmmaFence : kWgmmaCommit;
  CG_CHECK(ops.code.count(s, waits ? 1 : 0, waits ? 1 : 0));
  if (waits) {
    const Operand& n = s.operands[0];
    if (n.kind != Operand::Kind::integer || n.value < 0 || n.value > INT32_MAX)
      return ops.code.wrong("the number of groups must be a number");
    in.imm = n.value;
  }
  ops.code.emit(in, {}, {});
  return {};
}

}  // namespace cutegen::ptx
