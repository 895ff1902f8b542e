// SPDX-License-Identifier: Apache-2.0
#include "toolchain/assembler.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <optional>
#include <thread>

#include "base/hash.h"
#include "base/text.h"
#include "toolchain/binary_text.h"
#include "toolchain/cache.h"
#include "toolchain/tool_run.h"
#include "toolchain/tools.h"

namespace cutegen {
namespace {

using toolchain::run_tool;
using toolchain::ToolCall;
using toolchain::ToolRun;

constexpr const char* kReaderVersion = "1";  // of what is made of the tools' output; part of keys
constexpr size_t kMostDigest = 1500;
constexpr size_t kMostScannedPtx = size_t{8} << 20;

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

// Complaints about the tool and not about the program: it does not know this PTX or this GPU.
bool is_too_old(const std::string& log) {
  return log.find("Unsupported .version") != std::string::npos ||
         log.find("is not defined for option 'gpu-name'") != std::string::npos;
}

class LocalAssembler final : public Assembler {
 public:
  explicit LocalAssembler(AssemblerOptions options)
      : options_(std::move(options)), cache_(options_.paths.cache_dir, options_.cache_limit_bytes) {
    tools_.assembler = toolchain::tool_version(options_.paths.ptxas, "ptxas", "nvidia_cuda_nvcc");
    tools_.disassembler =
        toolchain::tool_version(options_.paths.nvdisasm, "nvdisasm", "nvidia_cuda_nvdisasm");
  }

  Result<AssemblyReport> audit(const Context& ctx, const std::string& ptx,
                               const std::string& arch) override {
    auto start = Clock::now();
    std::string key = key_of(ptx, arch, tools_);
    auto report = find(key);
    if (!report) {
      bool certain = true;
      CG_TRY(report, make(ctx, ptx, arch, certain));
      if (options_.use_cache && certain) cache_.store(key, key, {}, to_json(*report));
    }
    report->elapsed = Clock::now() - start;
    return std::move(*report);
  }
  std::string version() const override { return tools_.assembler; }

 private:
  static Json to_json(const AssemblyReport& r) {
    return {{"ok", r.ok}, {"digest", r.digest}, {"audit", cutegen::to_json(r.audit)}};
  }
  std::optional<AssemblyReport> find(const std::string& key);
  ToolCall call(const std::filesystem::path& tool, std::vector<std::string> arguments,
                std::string_view input) const;
  Result<AssemblyReport> make(const Context& ctx, const std::string& ptx, const std::string& arch,
                              bool& certain);
  Result<void> list_code(const Context& ctx, const std::string& cubin, BinaryAudit& audit,
                         bool& certain);

  AssemblerOptions options_;
  toolchain::Cache cache_;
  BinaryAudit tools_;  // versions only
};

std::optional<AssemblyReport> LocalAssembler::find(const std::string& key) {
  if (!options_.use_cache) return std::nullopt;
  auto hit = cache_.find(key);
  if (!hit || !hit->result.contains("audit")) return std::nullopt;
  AssemblyReport out;
  auto audit = binary_audit_from_json(hit->result["audit"]);
  if (!audit) return std::nullopt;
  out.ok = hit->result.value("ok", false);
  out.digest = hit->result.value("digest", "");
  out.audit = std::move(*audit);
  out.cached = true;
  return out;
}

ToolCall LocalAssembler::call(const std::filesystem::path& tool, std::vector<std::string> arguments,
                              std::string_view input) const {
  ToolCall out;
  out.argv = {tool.string()};
  out.argv.insert(out.argv.end(), arguments.begin(), arguments.end());
  out.input = input;
  out.memory_bytes = options_.memory_bytes;
  out.output_bytes = options_.output_bytes;
  out.timeout = options_.timeout;
  return out;
}

// certain: the same input would give the same report; not so after a death or a time-out.
Result<AssemblyReport> LocalAssembler::make(const Context& ctx, const std::string& ptx,
                                            const std::string& arch, bool& certain) {
  AssemblyReport out;
  out.audit = tools_;
  if (ptx.size() <= kMostScannedPtx) {
    auto use = toolchain::read_ptx_use(ptx);
    out.audit.globals = std::move(use.globals);
    out.audit.device_calls = std::move(use.device_calls);
  } else {
    out.audit.skipped.emplace_back("global variables: the PTX is too large");
  }
  if (tools_.assembler.empty()) {
    certain = false;  // nothing was spent
    out.audit.skipped.emplace_back(
        "registers and machine code: there is no ptxas (wheel nvidia-cuda-nvcc); run 'make setup'");
    return out;
  }
  CG_TRY(
      ToolRun run,
      run_tool(ctx, call(options_.paths.ptxas,
                         {"-v", "-arch", arch, "-o", toolchain::kToolOutput, toolchain::kToolInput},
                         ptx)));
  if (!run.ok && is_too_old(run.log)) {
    out.audit.skipped.push_back("registers and machine code: " + tools_.assembler +
                                " does not know this PTX: " + digest_of(run.log));
    return out;
  }
  if (!run.ok) {
    out.ok = false;
    certain = run.exited;
    out.digest = digest_of(run.log);
    if (run.timed_out)
      out.digest = fmt::format("the assembler took longer than {:g} s",
                               std::chrono::duration<double>(options_.timeout).count());
    else if (out.digest.empty())
      out.digest =
          fmt::format("the assembler crashed on this program, or needed more than {} MiB ({})",
                      options_.memory_bytes >> 20, run.died);
    return out;
  }
  out.audit.kernels = toolchain::read_ptxas_log(run.log);
  CG_CHECK(list_code(ctx, run.output, out.audit, certain));
  return out;
}

Result<void> LocalAssembler::list_code(const Context& ctx, const std::string& cubin,
                                       BinaryAudit& audit, bool& certain) {
  const std::string part = "machine code: ";
  if (tools_.disassembler.empty()) {
    audit.skipped.push_back(part +
                            "there is no nvdisasm (wheel nvidia-cuda-nvdisasm); run 'make setup'");
    return {};
  }
  auto listing = call(options_.paths.nvdisasm, {"-c", "-ndf", toolchain::kToolInput}, cubin);
  listing.stdout_is_output = true;
  CG_TRY(ToolRun run, run_tool(ctx, listing));
  if (!run.ok) {
    certain = run.exited;
    audit.skipped.push_back(
        part + "nvdisasm failed: " +
        (run.timed_out ? "it took too long"
                       : sanitize(trim(run.log.substr(0, 300)), 300) + " (" + run.died + ")"));
    return {};
  }
  auto code = toolchain::read_sass(run.output);
  for (KernelAudit& k : audit.kernels)
    if (auto at = code.find(k.kernel); at != code.end()) k.code = at->second;
  for (const KernelAudit& k : audit.kernels)
    if (!k.code) audit.skipped.push_back(part + "nvdisasm listed nothing for " + k.kernel);
  return {};
}

}  // namespace

Result<std::vector<AssemblyReport>> Assembler::audit_all(const Context& ctx,
                                                         const std::vector<std::string>& ptx,
                                                         const std::string& arch) {
  std::vector<Result<AssemblyReport>> reports(ptx.size(), AssemblyReport{});
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < ptx.size(); i = next++) reports[i] = audit(ctx, ptx[i], arch);
  };
  size_t workers = std::min<size_t>(ptx.size(), std::max(1U, std::thread::hardware_concurrency()));
  std::vector<std::future<void>> others;
  for (size_t i = 1; i < workers; ++i) others.push_back(std::async(std::launch::async, work));
  work();
  for (auto& o : others) o.wait();
  std::vector<AssemblyReport> out;
  for (auto& r : reports) {
    if (!r) return fail(r.error());
    out.push_back(std::move(*r));
  }
  return out;
}

Result<std::unique_ptr<Assembler>> Assembler::open(AssemblerOptions options) {
  if (options.use_cache) CG_CHECK(private_dir(options.paths.cache_dir));
  return std::make_unique<LocalAssembler>(std::move(options));
}

}  // namespace cutegen
