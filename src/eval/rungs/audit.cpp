// SPDX-License-Identifier: Apache-2.0
#include "eval/rungs/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "device/cuda/scrub.h"
#include "eval/sets/lazy.h"
#include "toolchain/assembler.h"

namespace cutegen::eval {
namespace {

bool launches_kernels(const std::string& function) {
  return function.starts_with("cudaLaunch") || function.starts_with("cudaGetParameterBuffer") ||
         function.starts_with("cudaStream") || function.starts_with("cudaDevice");
}

std::string not_offered(const std::string& function) {
  static const std::map<std::string, std::string> why{
      {"vprintf", "printf is not available in kernels"},
      {"malloc", "the device heap is not available"},
      {"free", "the device heap is not available"}};
  const auto found = why.find(function);
  return found == why.end() ? std::string() : found->second;
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
               fmt::format("keeps state between launches: the code may write the variable '{}' in "
                           "global memory ({} bytes)",
                           sanitize(g.name, 100), g.bytes),
               "use scratch of the plan; for a read-only table, do not store its address and do "
               "not pass it to a call");
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

// Mantissa bits that the outputs permit. An MMA with fewer bits than `finest` gives a mark. If
// comparing values cannot prove the accuracy, an MMA with fewer bits than `coarsest` rejects the
// program.
struct Permitted {
  int finest = 23, coarsest = 23;
  std::string mode;
};

Permitted permitted_by(const Task& task) {
  Permitted p{.finest = 0, .coarsest = 52, .mode = mode_text(task)};
  for (const TensorInfo* out : results_of(task))
    if (is_floating(out->dtype)) {
      p.finest = std::max(p.finest, mode_bits(task, *out));
      p.coarsest = std::min(p.coarsest, mode_bits(task, *out));
    }
  if (p.finest == 0) p.finest = p.coarsest = mode_bits(task.math_mode);
  return p;
}

void judge_precision(AuditOutcome& out, const Permitted& permitted, bool proven) {
  const int bits = proven ? permitted.finest : permitted.coarsest;
  std::set<std::string> lower;
  for (const KernelAudit& k : out.audit.kernels)
    if (k.code)
      for (const auto& [opcode, n] : k.code->mma)
        if (mma_bits(opcode).value_or(0) < bits) lower.insert(opcode + " in " + k.kernel);
  if (lower.empty()) return;
  std::string list =
      sanitize(join(std::vector<std::string>(lower.begin(), lower.end()), ", "), 300);
  if (proven)
    out.marks.push_back(fmt::format(
        "computes with {} in math mode {}: accepted because the measured error is small enough",
        list, permitted.mode));
  else
    end_once(
        out, Status::rejected,
        fmt::format("computes with less precision than math mode {}: {}", permitted.mode, list),
        "solutions of lower precision pass on every input of this task, so measuring cannot show "
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

// On a GPU, the runner overwrites at most kOverwritten bytes of a thread's local memory between
// runs. The rest may still contain values of an earlier run.
void judge_local_memory(AuditOutcome& out) {
  constexpr int64_t kOverwritten = device::cuda::kMostScrubbedLocal;
  std::map<std::string, int64_t> large;
  for (const KernelAudit& k : out.audit.kernels)
    if (k.stack_bytes > kOverwritten) large[k.kernel] = std::max(large[k.kernel], k.stack_bytes);
  for (const auto& [kernel, bytes] : large)
    out.marks.push_back(fmt::format(
        "{} has {} bytes of local memory per thread: on a GPU, cutegen overwrites {} of "
        "them between runs",
        sanitize(kernel, 100), bytes, kOverwritten));
}

// Adds a mark for reads that reveal on which SM or warp the code runs, and rejects reads of state
// that differs between launches.
void judge_reads(AuditOutcome& out) {
  for (const std::string& read : out.audit.unusual_reads) {
    const bool place =
        read == "%smid" || read == "%nsmid" || read == "%warpid" || read == "%nwarpid";
    if (place)
      out.marks.push_back(fmt::format("reads {}: its results may depend on where it runs", read));
    else if (read == kConstantByAddress)
      end_once(out, Status::rejected,
               "reads constant memory by address, beyond the variables that it declares",
               "declare a __constant__ variable, or pass the value as an argument");
    else
      end_once(out, Status::rejected,
               fmt::format("reads {}, which may change from launch to launch", sanitize(read, 20)),
               "remove it: a result must depend only on the inputs");
  }
}

AuditOutcome judge(BinaryAudit audit, const Permitted& permitted, bool proven) {
  AuditOutcome out;
  out.audit = std::move(audit);
  judge_globals(out);
  judge_calls(out);
  judge_precision(out, permitted, proven);
  judge_clocks(out);
  judge_local_memory(out);
  judge_reads(out);
  if (!out.end.passed) return out;
  if (out.audit.kernels.empty() && !out.audit.skipped.empty()) {
    out.result = RungResult::skipped;
    out.end = rung_passed(out.audit.skipped.front());
  } else {
    out.end = rung_passed(summary_of(out.audit));
  }
  return out;
}

}  // namespace

AuditOutcome judge_audit(BinaryAudit audit, MathMode mode, bool proven) {
  return judge(std::move(audit),
               {.finest = mode_bits(mode), .coarsest = mode_bits(mode), .mode = to_string(mode)},
               proven);
}

AuditOutcome judge_audit(BinaryAudit audit, const Task& task, bool proven) {
  return judge(std::move(audit), permitted_by(task), proven);
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
  std::set<std::string> calls, skipped, reads;
  std::vector<std::string> code;
  for (size_t i = 0; i < reports_.size(); ++i) {
    toolchain::AssemblyReport r = reports_[i];
    if (!r.ok) {
      AuditOutcome out;
      std::string first = r.digest.substr(0, r.digest.find('\n'));
      out.end = rung_failed(
          fmt::format("{}: the assembler rejects its PTX: {}", modules_[i], first), r.digest);
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
    reads.insert(r.audit.unusual_reads.begin(), r.audit.unusual_reads.end());
  }
  all.device_calls.assign(calls.begin(), calls.end());
  all.skipped.assign(skipped.begin(), skipped.end());
  all.unusual_reads.assign(reads.begin(), reads.end());
  AuditOutcome out = judge_audit(std::move(all), task_, services_.precision_tells);
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

std::optional<CodeShape> code_of(const BinaryAudit& audit, const std::string& module,
                                 const std::string& kernel) {
  for (const KernelAudit& k : audit.kernels)
    if (k.module == module && k.kernel == kernel && k.code) return k.code->shape;
  return std::nullopt;
}

}  // namespace cutegen::eval
