// SPDX-License-Identifier: Apache-2.0
#include "toolchain/assembler.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <optional>
#include <thread>

#include "base/hash.h"
#include "base/text.h"
#include "toolchain/binary_text.h"
#include "toolchain/cache.h"
#include "toolchain/cubin.h"
#include "toolchain/tool_run.h"
#include "toolchain/tool_server.h"
#include "toolchain/tool_spares.h"
#include "toolchain/tools.h"

namespace cutegen::toolchain {
namespace {

using toolchain::run_tool;
using toolchain::ToolCall;
using toolchain::ToolRun;
using toolchain::ToolServer;
using toolchain::ToolSpares;

// The version of the code that reads tool output. It is part of the cache keys.
constexpr const char* kReaderVersion = "4";
constexpr size_t kMostDigest = 1500;
constexpr size_t kMostScannedPtx = size_t{8} << 20;
constexpr size_t kMostKeptCode = size_t{4} << 20;
constexpr size_t kSpareAssemblers = 2;  // programs rarely have more modules
// ptxas opens its input once. nvdisasm opens it to identify it, builds its tables, then opens it
// again.
const toolchain::Gate kAssemblerGate{.opening = 1, .filler = {}};
const toolchain::Gate kListerGate{.opening = 2, .filler = std::string(16, '\0')};

std::string key_of(const std::string& ptx, const std::string& arch, const BinaryAudit& tools) {
  return Hasher{}
      .field("cutegen-audit")
      .field(kReaderVersion)
      .field(tools.assembler)
      .field(tools.disassembler)
      .field(arch)
      .field(ptx)
      .hex();
}

// The assembler's complaints without the name of its input: "line 12: error: unknown symbol 'x'".
std::string digest_of(const std::string& log) {
  std::string out;
  for (std::string line : split(log, '\n')) {
    if (line.find("error") == std::string::npos && line.find("fatal") == std::string::npos)
      continue;
    line =
        replace_all(std::move(line), "ptxas " + std::string(toolchain::kToolInput) + ", ", "PTX ");
    if (line.find("aborted due to errors") == std::string::npos) out += line + "\n";
    if (out.size() > kMostDigest) break;
  }
  return sanitize(trim(out), kMostDigest);
}

std::string why_it_failed(const ToolRun& run, const AssemblerOptions& options) {
  if (run.timed_out)
    return fmt::format("the assembler took longer than {:g} s",
                       std::chrono::duration<double>(options.timeout).count());
  std::string digest = digest_of(run.log);
  if (!digest.empty()) return digest;
  return fmt::format("the assembler crashed on this program, or needed more than {} MiB ({})",
                     options.memory_bytes >> 20, run.died);
}

// Whether the log blames the tool rather than the program: ptxas does not know this PTX or GPU.
bool is_too_old(const std::string& log) {
  return log.find("Unsupported .version") != std::string::npos ||
         log.find("is not defined for option 'gpu-name'") != std::string::npos;
}

// Runs f(0) to f(count - 1) on as many threads as there are cores.
template <class F>
void side_by_side(size_t count, F f) {
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < count; i = next++) f(i);
  };
  size_t workers = std::min<size_t>(count, std::max(1U, std::thread::hardware_concurrency()));
  std::vector<std::future<void>> others;
  for (size_t i = 1; i < workers; ++i) others.push_back(std::async(std::launch::async, work));
  work();
  for (auto& o : others) o.wait();
}

// Turns "sm_90a" into "SM90a", which nvdisasm expects for raw code.
std::string raw_arch(const std::string& arch) {
  return "SM" + arch.substr(std::min<size_t>(3, arch.size()));
}

// ptxas and nvdisasm, with processes that were started in advance for one architecture.
class BinaryTools {
 public:
  explicit BinaryTools(const AssemblerOptions& options) : options_(options) {
    versions_.assembler =
        toolchain::tool_version(options_.paths.ptxas, "ptxas", "nvidia_cuda_nvcc");
    versions_.disassembler =
        toolchain::tool_version(options_.paths.nvdisasm, "nvdisasm", "nvidia_cuda_nvdisasm");
  }

  // Holds only the tools' versions; empty for a missing tool.
  const BinaryAudit& versions() const { return versions_; }
  void warm_up(const std::string& arch);
  Result<ToolRun> assemble(const Context& ctx, const std::string& ptx, const std::string& arch);
  Result<ToolRun> list(const Context& ctx, const std::string& code, const std::string& arch);

 private:
  // The idle processes for one architecture, which never changes.
  struct Warm {
    std::string arch;
    std::unique_ptr<ToolSpares> assemblers;
    std::unique_ptr<ToolServer> lister;  // one listing covers all modules of a program
  };
  ToolCall call(const std::filesystem::path& tool, std::vector<std::string> arguments) const;
  ToolCall assembler_call(const std::string& arch) const;
  ToolCall lister_call(const std::string& arch) const;
  const Warm* warm(const std::string& arch);

  const AssemblerOptions& options_;
  BinaryAudit versions_;
  std::mutex warm_lock_;
  std::unique_ptr<Warm> warm_;
};

ToolCall BinaryTools::call(const std::filesystem::path& tool,
                           std::vector<std::string> arguments) const {
  ToolCall out;
  out.argv = {tool.string()};
  out.argv.insert(out.argv.end(), arguments.begin(), arguments.end());
  out.memory_bytes = options_.memory_bytes;
  out.output_bytes = options_.output_bytes;
  out.timeout = options_.timeout;
  return out;
}

ToolCall BinaryTools::assembler_call(const std::string& arch) const {
  return call(options_.paths.ptxas,
              {"-v", "-arch", arch, "-o", toolchain::kToolOutput, toolchain::kToolInput});
}

ToolCall BinaryTools::lister_call(const std::string& arch) const {
  auto out = call(options_.paths.nvdisasm, {"-b", raw_arch(arch), toolchain::kToolInput});
  out.stdout_is_output = true;
  return out;
}

void BinaryTools::warm_up(const std::string& arch) {
  std::lock_guard hold(warm_lock_);
  if (warm_) return;
  warm_ = std::make_unique<Warm>();
  warm_->arch = arch;
  if (!versions_.assembler.empty())
    warm_->assemblers =
        std::make_unique<ToolSpares>(assembler_call(arch), kAssemblerGate, kSpareAssemblers);
  if (versions_.disassembler.empty()) return;
  warm_->lister = std::make_unique<ToolServer>(lister_call(arch), kListerGate);
  warm_->lister->start();
}

const BinaryTools::Warm* BinaryTools::warm(const std::string& arch) {
  std::lock_guard hold(warm_lock_);
  return warm_ && warm_->arch == arch ? warm_.get() : nullptr;
}

Result<ToolRun> BinaryTools::assemble(const Context& ctx, const std::string& ptx,
                                      const std::string& arch) {
  const Warm* ready = warm(arch);
  if (ready && ready->assemblers) return ready->assemblers->run(ctx, ptx);
  ToolCall fresh = assembler_call(arch);
  fresh.input = ptx;
  return run_tool(ctx, fresh);
}

Result<ToolRun> BinaryTools::list(const Context& ctx, const std::string& code,
                                  const std::string& arch) {
  const Warm* ready = warm(arch);
  if (ready && ready->lister) return ready->lister->run(ctx, code);
  ToolCall fresh = lister_call(arch);
  fresh.input = code;
  return run_tool(ctx, fresh);
}

class LocalAssembler final : public Assembler {
 public:
  explicit LocalAssembler(AssemblerOptions options)
      : options_(std::move(options)),
        cache_(options_.paths.cache_dir, options_.cache_limit_bytes),
        tools_(options_) {}

  Result<AssemblyReport> audit(const Context& ctx, const std::string& ptx,
                               const std::string& arch) override {
    CG_TRY(auto reports, audit_all(ctx, {ptx}, arch));
    return std::move(reports.front());
  }
  Result<std::vector<AssemblyReport>> assemble_all(const Context& ctx,
                                                   const std::vector<std::string>& ptx,
                                                   const std::string& arch) override;
  Result<void> list_all(const Context& ctx, const std::vector<std::string>& ptx,
                        const std::string& arch, std::vector<AssemblyReport>& reports) override;
  void warm_up(const std::string& arch) override { tools_.warm_up(arch); }
  std::string version() const override { return tools_.versions().assembler; }

 private:
  static void cache_form(Fields& v, AssemblyReport& r);
  std::optional<AssemblyReport> find(const std::string& key);
  Result<AssemblyReport> assemble(const Context& ctx, const std::string& ptx,
                                  const std::string& arch);
  Result<void> list_code(const Context& ctx, const std::string& arch,
                         const std::vector<AssemblyReport*>& modules);

  AssemblerOptions options_;
  toolchain::Cache cache_;
  BinaryTools tools_;
};

void LocalAssembler::cache_form(Fields& v, AssemblyReport& r) {
  std::string code = r.code.size() <= kMostKeptCode ? to_hex(r.code) : std::string();
  v.ignore_unknown();
  v("ok", r.ok, field::may_lack);
  v("digest", r.digest, field::may_lack);
  v("audit", r.audit);
  v("code", code, field::may_lack);
  if (v.reading()) r.code = from_hex(code).value_or(""), r.cached = true;
}

std::optional<AssemblyReport> LocalAssembler::find(const std::string& key) {
  auto hit = options_.use_cache ? cache_.find(key) : std::nullopt;
  if (!hit) return std::nullopt;
  auto report = read_json_as<AssemblyReport>(hit->result, cache_form);
  return report ? std::optional(std::move(*report)) : std::nullopt;
}

Result<AssemblyReport> LocalAssembler::assemble(const Context& ctx, const std::string& ptx,
                                                const std::string& arch) {
  AssemblyReport out;
  out.listed = false;
  out.audit = tools_.versions();
  if (ptx.size() <= kMostScannedPtx) {
    auto use = toolchain::read_ptx_use(ptx);
    out.audit.globals = std::move(use.globals);
    out.audit.device_calls = std::move(use.device_calls);
    out.audit.unusual_reads = std::move(use.unusual_reads);
  } else {
    out.audit.skipped.emplace_back("global variables: the PTX is too large");
  }
  if (tools_.versions().assembler.empty()) {
    out.certain = false;  // not worth caching
    out.audit.skipped.emplace_back(
        "registers and machine code: ptxas is missing (wheel nvidia-cuda-nvcc); run 'make setup'");
    return out;
  }
  CG_TRY(ToolRun run, tools_.assemble(ctx, ptx, arch));
  if (!run.ok && is_too_old(run.log)) {
    out.audit.skipped.push_back("registers and machine code: " + out.audit.assembler +
                                " does not know this PTX: " + digest_of(run.log));
    return out;
  }
  if (!run.ok) {
    out.ok = false;
    out.certain = run.exited;
    out.digest = why_it_failed(run, options_);
    return out;
  }
  out.audit.kernels = toolchain::read_ptxas_log(run.log);
  out.code = std::move(run.output);
  return out;
}

// nvdisasm spends nearly all its time on its start, so one run lists the code of all kernels.
Result<void> LocalAssembler::list_code(const Context& ctx, const std::string& arch,
                                       const std::vector<AssemblyReport*>& modules) {
  std::string code, trouble;
  std::vector<size_t> ends;
  std::vector<KernelAudit*> kernels;
  for (AssemblyReport* m : modules)
    for (const toolchain::KernelCode& piece : toolchain::code_of(m->code))
      for (KernelAudit& k : m->audit.kernels) {
        if (k.kernel != piece.name) continue;
        code += piece.bytes;
        ends.push_back(code.size());
        kernels.push_back(&k);
        break;
      }
  bool certain = true;
  if (tools_.versions().disassembler.empty()) {
    trouble = "nvdisasm is missing (wheel nvidia-cuda-nvdisasm); run 'make setup'";
  } else if (!kernels.empty()) {
    CG_TRY(ToolRun run, tools_.list(ctx, code, arch));
    certain = run.ok || run.exited;
    if (!run.ok)
      trouble = "nvdisasm failed: " + (run.timed_out ? "it took too long"
                                                     : sanitize(trim(run.log.substr(0, 300)), 300) +
                                                           " (" + run.died + ")");
    auto found = toolchain::read_sass(run.output, ends);
    for (size_t i = 0; run.ok && i < kernels.size(); ++i)
      if (found[i].instructions > 0) kernels[i]->code = std::move(found[i]);
  }
  for (AssemblyReport* m : modules) {
    m->certain = m->certain && certain;
    m->listed = true;
    BinaryAudit& audit = m->audit;
    if (!audit.kernels.empty() && !trouble.empty())
      audit.skipped.push_back("machine code: " + trouble);
    for (const KernelAudit& k : audit.kernels)
      if (!k.code && trouble.empty())
        audit.skipped.push_back("machine code: nvdisasm listed nothing for " + k.kernel);
  }
  return {};
}

Result<std::vector<AssemblyReport>> LocalAssembler::assemble_all(
    const Context& ctx, const std::vector<std::string>& ptx, const std::string& arch) {
  auto start = Clock::now();
  std::vector<AssemblyReport> out(ptx.size());
  std::vector<size_t> fresh;
  for (size_t i = 0; i < ptx.size(); ++i) {
    if (auto report = find(key_of(ptx[i], arch, tools_.versions())))
      out[i] = std::move(*report);
    else
      fresh.push_back(i);
  }
  std::vector<Result<AssemblyReport>> made(fresh.size(), AssemblyReport{});
  side_by_side(fresh.size(), [&](size_t i) { made[i] = assemble(ctx, ptx[fresh[i]], arch); });
  for (size_t i = 0; i < fresh.size(); ++i) {
    if (!made[i]) return fail(made[i].error());
    out[fresh[i]] = std::move(*made[i]);
  }
  for (AssemblyReport& report : out) report.elapsed = Clock::now() - start;
  return out;
}

Result<void> LocalAssembler::list_all(const Context& ctx, const std::vector<std::string>& ptx,
                                      const std::string& arch,
                                      std::vector<AssemblyReport>& reports) {
  CG_ASSERT(ptx.size() == reports.size());
  auto start = Clock::now();
  std::vector<AssemblyReport*> fresh;
  std::vector<std::string> keys;
  for (size_t i = 0; i < reports.size(); ++i) {
    if (reports[i].listed) continue;
    fresh.push_back(&reports[i]);
    keys.push_back(key_of(ptx[i], arch, tools_.versions()));
  }
  if (fresh.empty()) return {};
  CG_CHECK(list_code(ctx, arch, fresh));
  for (size_t i = 0; i < fresh.size(); ++i) {
    if (options_.use_cache && fresh[i]->certain)
      cache_.store(keys[i], keys[i], {}, to_json_as(*fresh[i], cache_form));
    fresh[i]->elapsed += Clock::now() - start;
  }
  return {};
}

}  // namespace

Result<std::vector<AssemblyReport>> Assembler::audit_all(const Context& ctx,
                                                         const std::vector<std::string>& ptx,
                                                         const std::string& arch) {
  CG_TRY(auto reports, assemble_all(ctx, ptx, arch));
  CG_CHECK(list_all(ctx, ptx, arch, reports));
  return reports;
}

Result<std::vector<AssemblyReport>> Assembler::assemble_all(const Context& ctx,
                                                            const std::vector<std::string>& ptx,
                                                            const std::string& arch) {
  std::vector<AssemblyReport> out;
  for (const std::string& text : ptx) {
    CG_TRY(AssemblyReport report, audit(ctx, text, arch));
    out.push_back(std::move(report));
  }
  return out;
}

Result<void> Assembler::list_all(const Context&, const std::vector<std::string>&,
                                 const std::string&, std::vector<AssemblyReport>&) {
  return {};
}

Result<std::unique_ptr<Assembler>> Assembler::open(AssemblerOptions options) {
  if (options.use_cache) CG_CHECK(private_dir(options.paths.cache_dir));
  return std::make_unique<LocalAssembler>(std::move(options));
}

}  // namespace cutegen::toolchain
