// SPDX-License-Identifier: Apache-2.0
#include "eval/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "eval/lazy.h"
#include "toolchain/assembler.h"

namespace cutegen {
namespace {

bool launches_kernels(const std::string& function) {
  return function.starts_with("cudaLaunch") || function.starts_with("cudaGetParameterBuffer") ||
         function.starts_with("cudaStream") || function.starts_with("cudaDevice");
}

std::string not_offered(const std::string& function) {
  if (function == "vprintf") return "printf is not offered in kernels";
  if (function == "malloc" || function == "free") return "the device heap is not offered";
  return {};
}

void end_once(AuditOutcome& out, Status status, const std::string& headline,
              const std::string& remedy) {
  if (!out.end.passed && out.end.status == Status::rejected) return;
  if (!out.end.passed && status != Status::rejected) return;
  out.end = rung_ended(status, headline, headline + "\n" + remedy);
}

void judge_globals(AuditOutcome& out) {
  for (const GlobalAudit& g : out.audit.globals)
    if (g.written)
      end_once(out, Status::rejected,
               fmt::format("keeps state between launches: its code may write the variable '{}' in "
                           "global memory ({} bytes)",
                           sanitize(g.name, 100), g.bytes),
               "use scratch of the plan; a table that is only read must not have its address kept "
               "in memory or handed to a call");
}

void judge_calls(AuditOutcome& out) {
  for (const std::string& function : out.audit.device_calls) {
    if (launches_kernels(function))
      end_once(out, Status::rejected,
               "launches kernels from the device: " + sanitize(function, 100),
               "make it a step of the plan");
    else if (std::string why = not_offered(function); !why.empty())
      end_once(out, Status::failed, why, "its machine code calls " + function);
  }
}

void judge_precision(AuditOutcome& out, MathMode mode, bool proven) {
  std::set<std::string> lower;
  for (const KernelAudit& k : out.audit.kernels)
    if (k.code)
      for (const auto& [opcode, n] : k.code->mma)
        if (mma_bits(opcode).value_or(0) < mode_bits(mode))
          lower.insert(opcode + " in " + k.kernel);
  if (lower.empty()) return;
  std::string list =
      sanitize(join(std::vector<std::string>(lower.begin(), lower.end()), ", "), 300);
  if (proven)
    out.marks.push_back(
        fmt::format("computes with {} in math mode {}: accepted for its measured error", list,
                    to_string(mode)));
  else
    end_once(
        out, Status::rejected,
        fmt::format("computes in less than math mode {}: {}", to_string(mode), list),
        "answers of lower precision pass on every input of this task, so measuring cannot show "
        "that the result is accurate enough");
}

void judge_clocks(AuditOutcome& out) {
  std::set<std::string> readers;
  for (const KernelAudit& k : out.audit.kernels)
    if (k.code && k.code->clock_reads > 0) readers.insert(k.kernel);
  for (const std::string& kernel : readers)
    out.marks.push_back(
        fmt::format("{} reads the clock: its results may depend on time", sanitize(kernel, 100)));
}

}  // namespace

AuditOutcome judge_audit(BinaryAudit audit, MathMode mode, bool proven) {
  AuditOutcome out;
  out.audit = std::move(audit);
  judge_globals(out);
  judge_calls(out);
  judge_precision(out, mode, proven);
  judge_clocks(out);
  if (!out.end.passed) return out;
  if (out.audit.kernels.empty() && !out.audit.skipped.empty()) {
    out.result = RungResult::skipped;
    out.end = rung_passed(out.audit.skipped.front());
  } else {
    out.end = rung_passed(summary_of(out.audit));
  }
  return out;
}

BinaryAuditor::BinaryAuditor(const Services& services, const Task& task,
                             const std::vector<KernelImage>& images)
    : services_(services), task_(task), arch_(images.front().arch) {
  for (const KernelImage& image : images) {
    modules_.push_back(image.build.key());
    ptx_.push_back(image.ptx);
  }
}

Result<AuditOutcome> BinaryAuditor::assemble(const Context& ctx) {
  CG_TRY(reports_, services_.assembler->assemble_all(ctx, ptx_, arch_));
  return judged();
}

Result<AuditOutcome> BinaryAuditor::list(const Context& ctx) {
  CG_CHECK(services_.assembler->list_all(ctx, ptx_, arch_, reports_));
  return judged();
}

AuditOutcome BinaryAuditor::judged() const {
  BinaryAudit all;
  std::set<std::string> calls, skipped;
  std::vector<std::string> code;
  for (size_t i = 0; i < reports_.size(); ++i) {
    AssemblyReport r = reports_[i];
    if (!r.ok) {
      AuditOutcome out;
      std::string first = r.digest.substr(0, r.digest.find('\n'));
      out.end = rung_failed(
          fmt::format("{}: the assembler refuses its PTX: {}", modules_[i], first), r.digest);
      return out;
    }
    all.assembler = r.audit.assembler;
    all.disassembler = r.audit.disassembler;
    for (KernelAudit& k : r.audit.kernels) {
      k.module = modules_[i];
      all.kernels.push_back(std::move(k));
    }
    for (GlobalAudit& g : r.audit.globals) {
      g.module = modules_[i];
      all.globals.push_back(std::move(g));
    }
    code.push_back(std::move(r.code));
    calls.insert(r.audit.device_calls.begin(), r.audit.device_calls.end());
    skipped.insert(r.audit.skipped.begin(), r.audit.skipped.end());
  }
  all.device_calls.assign(calls.begin(), calls.end());
  all.skipped.assign(skipped.begin(), skipped.end());
  AuditOutcome out = judge_audit(std::move(all), task_.math_mode, services_.precision_tells);
  out.code = std::move(code);
  return out;
}

Result<AuditOutcome> audit_binaries(const Context& ctx, const Services& services, const Task& task,
                                    const std::vector<KernelImage>& images) {
  BinaryAuditor auditor(services, task, images);
  CG_TRY(AuditOutcome assembled, auditor.assemble(ctx));
  if (!assembled.end.passed) return assembled;
  return auditor.list(ctx);
}

int registers_of(const BinaryAudit& audit, const std::string& module, const std::string& kernel) {
  for (const KernelAudit& k : audit.kernels)
    if (k.module == module && k.kernel == kernel) return k.registers;
  return 0;
}

}  // namespace cutegen
