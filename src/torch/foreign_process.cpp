// SPDX-License-Identifier: Apache-2.0
#include "torch/foreign_process.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/text.h"
#include "base/units.h"
#include "torch/interpreter.h"

namespace cutegen::torch {
namespace {

namespace fs = std::filesystem;

constexpr auto kStartLimit = std::chrono::seconds(60);
constexpr int64_t kMostForeignProcesses = 512, kMostForeignCudaProcesses = 1024,
                  kMostForeignCpuSeconds = 24 * 3600;
constexpr int64_t kMostFileBytes = int64_t{4} << 30;
constexpr size_t kSaid = 800, kMostKept = 16;
constexpr double kLongest = 1e13;  // ns; no call takes longer

// The last lines that the solution printed.
std::string tail_of(const std::string& text) {
  const size_t from = text.size() > kSaid ? text.find('\n', text.size() - kSaid) : 0;
  return sanitize(
      std::string(trim(text.substr(from == std::string::npos ? text.size() - kSaid : from))),
      kSaid);
}

// "sm_90a" in the form that torch's builds expect: "9.0a".
std::string build_arch(const std::string& arch) {
  std::string digits = arch.starts_with("sm_") ? arch.substr(3) : arch, letter;
  if (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) {
    letter = digits.back();
    digits.pop_back();
  }
  if (digits.size() < 2) return {};
  return digits.substr(0, digits.size() - 1) + "." + digits.back() + letter;
}

// The solution may have written this reply, so check every field.
Result<ForeignReply> reply_from(const Json& body) {
  ForeignReply out;
  ObjectReader r(body, "foreign#");
  if (r.has("failed")) {
    CG_TRY(Json failed, r.object("failed"));
    ObjectReader f(failed, "failed#");
    CG_TRY(std::string kind, f.string("kind"));
    CG_TRY(out.what, f.string("what"));
    CG_TRY(out.where, f.string_or("where", ""));
    const bool missing = kind == "needs_gpu" || kind == "lacks";
    out.kind = kind == "rule" ? ForeignReply::Kind::rule
               : missing      ? ForeignReply::Kind::needs_gpu
                              : ForeignReply::Kind::raised;
    out.what = sanitize(out.what, kQuoted), out.where = sanitize(out.where, kQuoted);
    return out;
  }
  CG_TRY(double ns, r.number_or("ns", 0));
  CG_TRY(double host, r.number_or("host_ns", 0));
  if (!(ns >= 0 && ns <= kLongest && host >= 0 && host <= kLongest))
    return world_error("it reports an impossible time");
  out.claimed_ns = std::max(ns, host);
  if (r.has("kept")) {
    CG_TRY(out.kept, r.strings("kept"));
    if (out.kept.size() > kMostKept) out.kept.resize(kMostKept);
    for (std::string& name : out.kept) name = sanitize(name, 100);
  }
  return out;
}

// Builds and caches go to the solution's folder or to its private /tmp.
std::vector<std::string> environment(const std::string& folder) {
  std::vector<std::string> out = sandbox::scrubbed_environment();
  std::erase_if(out, [](const std::string& e) {
    return starts_with_any(e, {"HOME=", "TMPDIR=", "CUTEGEN_"});
  });
  for (const char* set : {"PYTHONDONTWRITEBYTECODE=1", "PYTHONHASHSEED=0", "PYTHONUNBUFFERED=1",
                          "USER=cutegen", "TORCHINDUCTOR_COMPILE_THREADS=1", "MAX_JOBS=8"})
    out.emplace_back(set);
  out.push_back("CUTEGEN_ANSWER=" + folder);
  out.push_back("HOME=" + folder);
  for (const auto& [name, below] : {std::pair{"TORCH_EXTENSIONS_DIR", "extensions"},
                                    {"TRITON_CACHE_DIR", "triton"},
                                    {"TORCHINDUCTOR_CACHE_DIR", "inductor"}})
    out.push_back(fmt::format("{}={}/{}", name, folder, below));
  return out;
}

// Like a torch worker on a GPU, the child installs the filter after the driver has started.
Result<void> let_cuda_start(const std::string& arch, sandbox::SpawnSpec& spec) {
  CG_TRY(fs::path names, sister_program(kThreadNames));
  spec.limits.memory_bytes = 0;
  spec.limits.processes = kMostForeignCudaProcesses;
  spec.isolation.seccomp = false;
  spec.env.push_back("LD_PRELOAD=" + names.string());
  spec.env.emplace_back("CUDA_CACHE_DISABLE=1");
  if (std::string built = build_arch(arch); !built.empty())
    spec.env.push_back("TORCH_CUDA_ARCH_LIST=" + built);
  spec.readable.push_back(names.parent_path().string());
  return {};
}

}  // namespace

ForeignProcess::ForeignProcess(const ForeignOptions& options, std::string python, fs::path script)
    : options_(options),
      python_(std::move(python)),
      script_(std::move(script)),
      folder_("/tmp/cutegen-answer-" + random_id()) {}

ForeignProcess::~ForeignProcess() {
  stop();
  std::error_code error;  // the folder exists only if the child had no private /tmp
  fs::remove_all(folder_, error);
}

Result<void> ForeignProcess::spawn() {
  CG_TRY(auto ends, wire::Channel::make_pair());
  sandbox::SpawnSpec spec;
  spec.argv = {python_, "-s", script_.string(), "foreign"};
  spec.env = environment(folder_);
  spec.fds = {{ends.second.fd(), 3}};
  spec.readable = {python_, fs::path(python_).parent_path().parent_path().string(),
                   script_.parent_path().string()};
  spec.limits.memory_bytes = spec.limits.resident_bytes = options_.memory_bytes;
  spec.limits.cpu_seconds = kMostForeignCpuSeconds;
  spec.limits.processes = kMostForeignProcesses;
  spec.limits.file_bytes = kMostFileBytes;
  spec.isolation = kForeignIsolation;
  spec.required = options_.require_sandbox;
  if (!options_.device.empty()) CG_CHECK(let_cuda_start(options_.arch, spec));
  CG_TRY(child_, sandbox::spawn(spec));
  channel_ = std::move(ends.first);
  return {};
}

Result<Json> ForeignProcess::greet(const Context& ctx, const Json& hello) {
  auto reply = channel_.call(ctx.with_timeout(kStartLimit), hello);
  if (!reply) return fail(start_error(reply.error()));
  if (!reply->body.contains("failed")) return std::move(reply->body);
  CG_TRY(ForeignReply told, reply_from(reply->body));
  stop();
  return world_error("the process for the third-party solution does not start: " + told.what,
                     "see `cutegen doctor`, or name another interpreter: --python");
}

Result<ForeignReply> ForeignProcess::ask(const Context& ctx, const Json& request, Nanoseconds limit,
                                         std::span<const int> descriptors) {
  CG_CHECK(ctx.check("running a third-party solution"));
  if (!channel_) return gone(ForeignReply::Kind::died, "its process has ended");
  const auto begin = Clock::now();
  const Context within = ctx.with_timeout(limit);
  auto sent = channel_.send(within, request, descriptors);
  // Not call(): an {"error": ...} from the child is a claim, not an Error of cutegen.
  auto reply = sent ? channel_.receive(within) : fail(sent.error());
  const Nanoseconds seen = Clock::now() - begin;
  if (!reply) return lost(ctx, reply.error(), limit);
  auto told = reply->body.value("id", Json()) == request["id"]
                  ? reply_from(reply->body)
                  : world_error("its reply does not belong to the request");
  if (!told) return gone(ForeignReply::Kind::died, "its reply cannot be read");
  told->seen = seen;
  if (!told->ok()) told->said = tail_of(child_.error_text());
  return told;
}

// Handles a missing reply: the child hangs or died, or the caller's time is over.
Result<ForeignReply> ForeignProcess::lost(const Context& ctx, const Error& error,
                                          Nanoseconds limit) {
  if (ctx.done()) {
    stop();
    return fail(error);
  }
  if (error.kind == ErrorKind::timeout)
    return gone(ForeignReply::Kind::hung, "still running after " + human_ns(double(limit.count())));
  std::string how = "its process broke the protocol";
  if (wire::is_closed(error)) {
    auto status = child_.wait(ctx.with_timeout(std::chrono::seconds(2)));
    how = status ? "its process ends (" + status->text() + ")" : "its process closed its channel";
  }
  return gone(ForeignReply::Kind::died, how);
}

ForeignReply ForeignProcess::gone(ForeignReply::Kind kind, std::string what) {
  ForeignReply out;
  out.kind = kind;
  out.what = std::move(what);
  if (channel_) out.said = tail_of(child_.error_text());
  stop();
  return out;
}

Error ForeignProcess::start_error(Error error) {
  const std::string words = last_line(child_.error_text());
  stop();
  if (wire::is_closed(error)) {
    error.message = "the process for the third-party solution does not start with " + python_;
    if (!words.empty()) error.message += ": " + words;
  }
  if (error.remedy.empty())
    error.remedy = "run make setup, or name another interpreter: --python PATH";
  return error;
}

void ForeignProcess::stop() {
  channel_.close();
  child_.kill();
}

}  // namespace cutegen::torch
