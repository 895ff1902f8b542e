// SPDX-License-Identifier: Apache-2.0
#include "core/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"

namespace cutegen {
namespace {

constexpr size_t kMostKernels = 65536, kMostGlobals = 65536;
constexpr size_t kMostSummary = 600;
constexpr FieldRule kCount = field::at_least(0), kSmallCount = field::between(0, 65536);

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
  // Matrix instructions of warps and warpgroups, then tcgen05 (UTC...). HFMA2.MMA is not one.
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
  // If several modules contain a kernel, mention only its worst build.
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

void fields(Fields& v, CodePart& p) {
  v("instructions", p.instructions);
  v("marks", p.marks, field::if_set + field::most_keys(16));
}

void fields(Fields& v, CodeShape& s) {
  v("outside", s.outside);
  v("loops", s.loops, field::if_set + field::list(kMostCodeLoops));
}

void fields(Fields& v, CodeAudit& c) {
  v("instructions", c.instructions, kCount);
  v("local_loads", c.local_loads, kCount);
  v("local_stores", c.local_stores, kCount);
  v("clock_reads", c.clock_reads, kCount);
  v("calls", c.calls, kCount);
  v("indirect", c.indirect, kCount);
  v("mma", c.mma, kCount);
  v("shape", c.shape);
}

void fields(Fields& v, KernelAudit& k) {
  v("module", k.module);
  v("kernel", k.kernel);
  v("registers", k.registers, kSmallCount);
  v("barriers", k.barriers, kSmallCount);
  v("stack_bytes", k.stack_bytes, kCount);
  v("spill_store_bytes", k.spill_store_bytes, kCount);
  v("spill_load_bytes", k.spill_load_bytes, kCount);
  v("static_shared_bytes", k.static_shared_bytes, kCount);
  v("code", k.code);
}

void fields(Fields& v, GlobalAudit& g) {
  v("module", g.module);
  v("name", g.name);
  v("bytes", g.bytes, kCount);
  v("written", g.written);
}

void fields(Fields& v, BinaryAudit& a) {
  v.document("audit#");
  v.schema("cutegen.audit.v1");
  v("assembler", a.assembler);
  v("disassembler", a.disassembler);
  v("kernels", a.kernels, field::list(kMostKernels));
  v("globals", a.globals, field::list(kMostGlobals));
  v("device_calls", a.device_calls);
  v("skipped", a.skipped);
  v("unusual_reads", a.unusual_reads, field::if_set);
}

}  // namespace cutegen
