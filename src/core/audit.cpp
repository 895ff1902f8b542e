// SPDX-License-Identifier: Apache-2.0
#include "core/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "core/codec.h"

namespace cutegen {
namespace {

constexpr size_t kMostKernels = 65536, kMostGlobals = 65536;
constexpr size_t kMostSummary = 600;

std::string_view root_of(std::string_view opcode) {
  return opcode.substr(0, opcode.find('.'));
}

bool has_part(std::string_view opcode, std::string_view part) {
  for (size_t at = opcode.find(part); at != std::string_view::npos;
       at = opcode.find(part, at + 1)) {
    bool begins = at > 0 && opcode[at - 1] == '.';
    size_t end = at + part.size();
    if (begins && (end == opcode.size() || opcode[end] == '.')) return true;
  }
  return false;
}

Json code_json(const CodeAudit& c) {
  Json mma = Json::object();
  for (const auto& [opcode, count] : c.mma) mma[opcode] = count;
  return {{"instructions", c.instructions},
          {"local_loads", c.local_loads},
          {"local_stores", c.local_stores},
          {"clock_reads", c.clock_reads},
          {"calls", c.calls},
          {"indirect", c.indirect},
          {"mma", std::move(mma)}};
}

Result<int64_t> count(ObjectReader& r, const std::string& key) {
  CG_TRY(int64_t value, r.integer(key));
  if (value < 0) return user_error("a count is negative", r.place(key));
  return value;
}

Result<int> small_count(ObjectReader& r, const std::string& key) {
  CG_TRY(int64_t value, count(r, key));
  if (value > 65536) return user_error("the count is too large", r.place(key));
  return static_cast<int>(value);
}

Result<CodeAudit> code_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  CodeAudit c;
  CG_TRY(c.instructions, count(r, "instructions"));
  CG_TRY(c.local_loads, count(r, "local_loads"));
  CG_TRY(c.local_stores, count(r, "local_stores"));
  CG_TRY(c.clock_reads, count(r, "clock_reads"));
  CG_TRY(c.calls, count(r, "calls"));
  CG_TRY(c.indirect, count(r, "indirect"));
  CG_TRY(Json mma, r.object("mma"));
  ObjectReader m(mma, r.place("mma"));
  for (const auto& [opcode, value] : mma.items()) {
    CG_TRY(c.mma[opcode], count(m, opcode));
  }
  CG_CHECK(r.finish());
  return c;
}

Json kernel_json(const KernelAudit& k) {
  Json j{{"module", k.module},
         {"kernel", k.kernel},
         {"registers", k.registers},
         {"barriers", k.barriers},
         {"stack_bytes", k.stack_bytes},
         {"spill_store_bytes", k.spill_store_bytes},
         {"spill_load_bytes", k.spill_load_bytes},
         {"static_shared_bytes", k.static_shared_bytes}};
  if (k.code) j["code"] = code_json(*k.code);
  return j;
}

Result<KernelAudit> kernel_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  KernelAudit k;
  CG_TRY(k.module, r.string("module"));
  CG_TRY(k.kernel, r.string("kernel"));
  CG_TRY(k.registers, small_count(r, "registers"));
  CG_TRY(k.barriers, small_count(r, "barriers"));
  CG_TRY(k.stack_bytes, count(r, "stack_bytes"));
  CG_TRY(k.spill_store_bytes, count(r, "spill_store_bytes"));
  CG_TRY(k.spill_load_bytes, count(r, "spill_load_bytes"));
  CG_TRY(k.static_shared_bytes, count(r, "static_shared_bytes"));
  if (r.has("code")) {
    CG_TRY(Json code, r.object("code"));
    CG_TRY(k.code, code_from(code, r.place("code")));
  }
  CG_CHECK(r.finish());
  return k;
}

Json global_json(const GlobalAudit& g) {
  return {{"module", g.module}, {"name", g.name}, {"bytes", g.bytes}, {"written", g.written}};
}

Result<GlobalAudit> global_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  GlobalAudit g;
  CG_TRY(g.module, r.string("module"));
  CG_TRY(g.name, r.string("name"));
  CG_TRY(g.bytes, count(r, "bytes"));
  CG_TRY(g.written, r.boolean("written"));
  CG_CHECK(r.finish());
  return g;
}

std::string kernel_summary(const KernelAudit& k) {
  std::string out = fmt::format("{}: {} registers", k.kernel, k.registers);
  if (k.static_shared_bytes) out += fmt::format(", {} B static shared", k.static_shared_bytes);
  if (k.spill_store_bytes || k.spill_load_bytes)
    out += fmt::format(", spills {} B stored and {} B loaded a thread", k.spill_store_bytes,
                       k.spill_load_bytes);
  else
    out += ", no spills";
  if (!k.code) return out;
  if (k.code->local_loads + k.code->local_stores > 0 && k.spill_store_bytes == 0)
    out += fmt::format(", {} accesses to local memory", k.code->local_loads + k.code->local_stores);
  for (const auto& [opcode, n] : k.code->mma) out += fmt::format(", {} {}", n, opcode);
  return out;
}

}  // namespace

bool is_mma(const std::string& opcode) {
  // Matrix instructions of sm_70 to sm_90, then those of tensor memory. HFMA2.MMA is not one.
  static constexpr std::array<std::string_view, 15> kRoots{
      "HMMA",  "IMMA",  "DMMA",  "BMMA",    "QMMA",    "OMMA",    "HGMMA",  "IGMMA",
      "QGMMA", "BGMMA", "DGMMA", "UTCHMMA", "UTCIMMA", "UTCQMMA", "UTCOMMA"};
  return std::find(kRoots.begin(), kRoots.end(), root_of(opcode)) != kRoots.end();
}

std::optional<int> mma_bits(const std::string& opcode) {
  if (!is_mma(opcode)) return std::nullopt;
  std::string_view root = root_of(opcode);
  switch (root.starts_with("UTC") ? root[3] : root[0]) {
    case 'H':
      return has_part(opcode, "BF16") ? 7 : 10;
    case 'D':
      return 52;
    case 'Q':
    case 'O':
      return 3;
    default:
      return 0;
  }
}

std::string summary_of(const BinaryAudit& audit) {
  // Mention a kernel of several modules once, as its worst build.
  std::map<std::string, const KernelAudit*> worst;
  for (const KernelAudit& k : audit.kernels) {
    const KernelAudit*& at = worst[k.kernel];
    if (!at || std::pair(k.spill_store_bytes, k.registers) >
                   std::pair(at->spill_store_bytes, at->registers))
      at = &k;
  }
  std::string out;
  for (const auto& [name, k] : worst) out += (out.empty() ? "" : "; ") + kernel_summary(*k);
  return sanitize(out, kMostSummary);
}

Json to_json(const BinaryAudit& a) {
  Json out{{"schema", "cutegen.audit.v1"},
           {"assembler", a.assembler},
           {"disassembler", a.disassembler},
           {"kernels", codec::array_of(a.kernels, kernel_json)},
           {"globals", codec::array_of(a.globals, global_json)},
           {"device_calls", a.device_calls},
           {"skipped", a.skipped}};
  if (!a.unusual_reads.empty()) out["unusual_reads"] = a.unusual_reads;
  return out;
}

Result<BinaryAudit> binary_audit_from_json(const Json& json) {
  ObjectReader r(json, "audit#");
  CG_CHECK(codec::check_schema(r, "cutegen.audit.v1"));
  BinaryAudit a;
  CG_TRY(a.assembler, r.string("assembler"));
  CG_TRY(a.disassembler, r.string("disassembler"));
  CG_TRY(a.kernels, codec::list<KernelAudit>(r, "kernels", kMostKernels, kernel_from));
  CG_TRY(a.globals, codec::list<GlobalAudit>(r, "globals", kMostGlobals, global_from));
  CG_TRY(a.device_calls, r.strings("device_calls"));
  CG_TRY(a.skipped, r.strings("skipped"));
  if (r.has("unusual_reads")) {
    CG_TRY(a.unusual_reads, r.strings("unusual_reads"));
  }
  CG_CHECK(r.finish());
  return a;
}

}  // namespace cutegen
