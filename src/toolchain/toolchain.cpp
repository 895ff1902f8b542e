// SPDX-License-Identifier: Apache-2.0
#include "toolchain/toolchain.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <regex>
#include <utility>

#include "base/fields.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "toolchain/cache.h"
#include "toolchain/compile_server.h"
#include "toolchain/scan.h"
#include "toolchain/strip.h"
#include "toolchain/tools.h"
#include "toolchain/warm_parents.h"

namespace cutegen::toolchain {
namespace fs = std::filesystem;
namespace {

using toolchain::Cache;
using toolchain::CompileServer;
using toolchain::CuteUse;
using toolchain::Header;
using toolchain::prefix_header;
using toolchain::ServerReply;
using toolchain::ServerSetup;

constexpr size_t kMostLogBytes = size_t{64} << 10;
constexpr size_t kMostLineBytes = 8192;
constexpr size_t kMostServers = 4;
// The version of the steps after NVRTC. It is part of the build ids.
constexpr const char* kPipelineVersion = "1";

std::vector<std::string> compiler_options(const std::string& arch) {
  return {"--gpu-architecture=compute_" + arch.substr(3), "--std=c++17", "-default-device",
          "-lineinfo", "-DNDEBUG"};
}

void cache_form(Fields& v, CompileResult& r) {
  v.document("cache entry#");
  v.ignore_unknown();
  v("ok", r.ok, field::may_lack);
  v("ptx", r.ptx);
  v("log", r.log);
  v("digest", r.digest);
  v("how", r.how);
  v("cold_ns", r.cold, field::may_lack);
  v("held", r.grade.held, field::may_lack);
  v("grade", r.grade.label);
  v("missing", r.grade.missing);
  if (v.reading()) r.cached = true;
}

Result<CompileResult> cached_result(const Json& json) {
  return read_json_as<CompileResult>(json, cache_form);
}

// NVRTC reports "cannot open source file" or "could not open source file".
bool misses_a_file(const std::string& log) {
  return log.find("open source file") != std::string::npos;
}

class LocalToolchain final : public Toolchain {
 public:
  explicit LocalToolchain(ToolchainOptions options)
      : options_(std::move(options)),
        version_(toolchain::tool_version(options_.paths.nvrtc, "NVRTC", "nvidia_cuda_nvrtc")),
        cache_(options_.paths.cache_dir, options_.cache_limit_bytes),
        warm_(options_.warm_memory_bytes) {}

  Result<CompileResult> compile(const Context& ctx, const CompileRequest& request) override;
  Result<void> warm_up(const Context& ctx, const std::string& arch,
                       const std::string& programs) override;
  void expect_children(const CompileRequest& request, int children) override;
  void hold_background(bool stop) override { warm_.hold(stop); }
  std::string version() const override { return version_; }

 private:
  struct Key {
    std::string arch;
    CuteUse cute;
    bool plain;
    bool operator==(const Key&) const = default;
  };
  struct Slot {
    Key key;
    std::mutex mutex;  // held while a server starts
    std::shared_ptr<CompileServer> server;
  };
  Result<std::shared_ptr<CompileServer>> server(const Context& ctx, const Key& key);
  void retire(const Key& key, const std::shared_ptr<CompileServer>& server);
  std::shared_ptr<Slot> slot(const Key& key);
  Result<ServerReply> ask(const Context& ctx, const CompileRequest& request, Key key,
                          std::vector<std::string>& prefix_headers);
  std::optional<ServerReply> ask_warm(const Context& ctx, const CompileRequest& request,
                                      CuteUse cute, Nanoseconds& saved);
  toolchain::CompileLimits limits() const {
    return {.memory_bytes = options_.compile_memory_bytes, .timeout = options_.compile_timeout};
  }
  ServerSetup setup_for(const Key& key) const;
  void remember(const std::string& key, Nanoseconds cold);
  void remember_programs();
  Result<CompileResult> judge(const CompileRequest& request, const ServerReply& reply) const;
  std::string request_key(const CompileRequest& request, CuteUse cute) const;
  std::vector<Header> closure(const std::vector<std::string>& prefix, const ServerReply& reply);
  std::string readable_log(std::string log, const std::string& name) const;

  ToolchainOptions options_;
  std::string version_;
  Cache cache_;
  std::mutex mutex_;                                     // guards the next three
  std::list<std::shared_ptr<Slot>> slots_;               // most recently used first
  std::list<std::pair<std::string, Nanoseconds>> cold_;  // compile times by request, latest first
  std::string programs_key_;                             // to be stored once a program has compiled
  toolchain::WarmParents warm_;
};

Result<void> check_arch(const std::string& arch) {
  static const std::regex kForm("sm_[0-9]{2,3}[af]?");
  if (std::regex_match(arch, kForm)) return {};
  return user_error("'" + sanitize(arch, 40) + "' is not a GPU architecture", "arch",
                    "give an architecture such as sm_80 or sm_90a");
}

std::string LocalToolchain::request_key(const CompileRequest& request, CuteUse cute) const {
  Hasher h;
  h.field("cutegen-request")
      .field(kPipelineVersion)
      .field(request.name)
      .field(toolchain::full_source(request));
  for (const std::string& o : compiler_options(request.arch)) h.field(o);
  h.field(prefix_header(cute)).field(version_).field(options_.paths.nvrtc.string());
  for (const fs::path& dir : options_.paths.includes) h.field(dir.string());
  return h.hex();
}

std::string build_id_of(const CompileRequest& request, CuteUse cute, const std::string& version,
                        const std::vector<Header>& closure) {
  Hasher h;
  h.field("cutegen-build")
      .field(kPipelineVersion)
      .field(request.name)
      .field(toolchain::full_source(request));
  for (const std::string& o : compiler_options(request.arch)) h.field(o);
  h.field(prefix_header(cute)).field(version).field(toolchain::closure_hash(closure));
  return h.hex();
}

std::shared_ptr<LocalToolchain::Slot> LocalToolchain::slot(const Key& key) {
  std::lock_guard lock(mutex_);
  auto at = std::find_if(slots_.begin(), slots_.end(), [&](auto& s) { return s->key == key; });
  if (at == slots_.end()) {
    slots_.push_front(std::make_shared<Slot>());
    slots_.front()->key = key;
    if (slots_.size() > kMostServers) slots_.pop_back();  // threads that still use it keep it alive
  } else {
    slots_.splice(slots_.begin(), slots_, at);
  }
  return slots_.front();
}

Result<std::shared_ptr<CompileServer>> LocalToolchain::server(const Context& ctx, const Key& key) {
  auto place = slot(key);
  std::lock_guard lock(place->mutex);
  if (place->server && place->server->alive()) return place->server;
  CG_TRY(place->server, CompileServer::start(ctx, setup_for(key)));
  return place->server;
}

ServerSetup LocalToolchain::setup_for(const Key& key) const {
  ServerSetup out;
  out.paths = options_.paths;
  out.options = compiler_options(key.arch);
  out.prefix = prefix_header(key.cute);
  out.plain = key.plain;
  out.require_sandbox = options_.require_sandbox;
  return out;
}

// Threads that still compile in the server keep it alive until they finish.
void LocalToolchain::retire(const Key& key, const std::shared_ptr<CompileServer>& server) {
  auto place = slot(key);
  std::lock_guard lock(place->mutex);
  if (place->server == server) place->server.reset();
}

Result<void> LocalToolchain::warm_up(const Context& ctx, const std::string& arch,
                                     const std::string& programs) {
  CG_CHECK(check_arch(arch));
  if (options_.use_cache && !programs.empty()) {
    const std::string key =
        Hasher{}.field("cutegen-programs").field(version_).field(arch).field(programs).hex();
    if (cache_.find(key)) return {};
    std::lock_guard lock(mutex_);
    programs_key_ = key;
  }
  CG_TRY(auto started,
         server(ctx, {.arch = arch, .cute = CuteUse::tensors, .plain = !options_.allow_fork}));
  return started->alive() ? Result<void>{} : world_error("the compile server ended at once");
}

// NVRTC's heap is a file in the server's private /tmp. All candidates of the server share it, and
// it only grows, so a candidate that finds it full is not to blame.
bool out_of_heap(const ServerReply& reply) {
  return reply.died.find("SIGBUS") != std::string::npos ||
         reply.compiled.log.find("unable to obtain mapped memory") != std::string::npos;
}

// Compiles the candidate once more: in a new server if the heap was full, or in a new plain server
// if the server died.
Result<ServerReply> LocalToolchain::ask(const Context& ctx, const CompileRequest& request, Key key,
                                        std::vector<std::string>& prefix_headers) {
  std::string text = toolchain::full_source(request);
  for (int attempt = 0;; ++attempt) {
    CG_TRY(auto with, server(ctx, key));
    prefix_headers = with->prefix_headers();
    auto reply = with->compile(ctx, text, limits());
    if (reply && options_.require_sandbox && reply->died.empty() &&
        reply->grade.label != Protection::full)
      return world_error("the compiler's sandbox is not complete: " + reply->grade.missing,
                         "allow seccomp, or run without --require-sandbox");
    if (reply && attempt == 0 && out_of_heap(*reply)) {
      log_info("the compiler's heap is full; cutegen compiles once more in a fresh server");
      retire(key, with);
      continue;
    }
    if (reply) return reply;
    CG_CHECK(ctx.check("compiling"));
    std::string last_words = sanitize(trim(with->error_text()), 500);
    if (!wire::is_closed(reply.error()) || attempt == 1)
      return world_error("the compile server failed: " + reply.error().message + " " + last_words);
    log_warning("the compile server died; cutegen compiles once more without the fork: {}",
                last_words);
    key.plain = true;
  }
}

// Removes include folders and the server's own file names: "cute/tensor.hpp(12): error: ...".
std::string LocalToolchain::readable_log(std::string log, const std::string& name) const {
  std::vector<std::string> folders;
  std::error_code error;
  for (const fs::path& dir : options_.paths.includes) {
    folders.push_back(dir.string() + "/");
    folders.push_back(fs::canonical(dir, error).string() + "/");
  }
  std::sort(folders.begin(), folders.end(), [](auto& a, auto& b) { return a.size() > b.size(); });
  for (const std::string& f : folders) log = replace_all(std::move(log), f, "");
  std::string out;
  for (std::string line : split(log, '\n')) {
    if (line.find("using precompiled header file") != std::string::npos) continue;
    line.resize(std::min(line.size(), kMostLineBytes));
    const std::string folder = "/tmp/cutegen-compiler.", file = "/candidate.cuh";
    for (size_t at; (at = line.find(folder)) != std::string::npos;) {
      size_t end = at + folder.size() + 6;  // the letters of mkdtemp
      line.replace(at, end - at + (line.compare(end, file.size(), file) == 0 ? file.size() : 0),
                   name);
    }
    out += line + "\n";
  }
  return sanitize(trim(replace_all(std::move(out), "\"candidate.cu\"", "\"" + name + "\"")),
                  kMostLogBytes);
}

Result<CompileResult> LocalToolchain::judge(const CompileRequest& request,
                                            const ServerReply& reply) const {
  CompileResult out;
  out.ok = reply.compiled.ok;
  if (reply.died.empty()) out.how = to_string(reply.compiled.how);
  out.grade = reply.grade;
  if (!reply.died.empty()) {
    auto seconds = std::chrono::duration<double>(options_.compile_timeout).count();
    out.digest =
        reply.timed_out
            ? fmt::format("{}: error: compiling took longer than {:g} s", request.name, seconds)
            : fmt::format(
                  "{}: error: the compiler crashed on this source, or needed more than {} MiB ({})",
                  request.name, options_.compile_memory_bytes >> 20, reply.died);
    out.log = out.digest;
    return out;
  }
  if (reply.compiled.status == "NVRTC_ERROR_INVALID_OPTION")
    return user_error(fmt::format("{} does not know the architecture {}", version_, request.arch),
                      "arch");
  out.log = readable_log(reply.compiled.log, request.name);
  if (reply.compiled.ok) {
    out.ptx = toolchain::strip_ptx(reply.compiled.ptx, request.name);
    return out;
  }
  if (reply.compiled.status != "NVRTC_ERROR_COMPILATION")
    out.log +=
        fmt::format("\n{}: error: the compiler gave up: {}", request.name, reply.compiled.status);
  out.digest = digest_errors(out.log, request.name, request.source);
  bool missed = misses_a_file(out.log);
  if (missed && !reply.compiled.refused.empty())
    out.digest += "\nOnly headers of CuTe, CUTLASS, CUB, CUDA and cutegen/ can be included.";
  return out;
}

std::vector<Header> LocalToolchain::closure(const std::vector<std::string>& prefix,
                                            const ServerReply& reply) {
  std::vector<std::string> paths = prefix;
  paths.insert(paths.end(), reply.compiled.headers.begin(), reply.compiled.headers.end());
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  std::vector<Header> out;
  for (const std::string& p : paths)
    if (auto h = cache_.headers().read(p, options_.paths.includes)) out.push_back(std::move(*h));
  return out;
}

Result<CompileResult> LocalToolchain::compile(const Context& ctx, const CompileRequest& request) {
  auto start = Clock::now();
  CG_CHECK(check_arch(request.arch));
  auto timed = [&](CompileResult r) {
    r.elapsed = Clock::now() - start;
    return r;
  };
  auto scan = toolchain::scan_source(request, options_.paths.includes);
  std::string key = request_key(request, scan.cute);
  if (!scan.problem.empty()) {
    CompileResult refused;
    refused.digest = refused.log = scan.problem;
    refused.build_id = key;
    return timed(std::move(refused));
  }
  if (options_.use_cache)
    if (auto hit = cache_.find(key))
      if (auto result = cached_result(hit->result)) {
        result->build_id = hit->build_id;
        remember_programs();
        return timed(std::move(*result));
      }
  if (options_.before_compile) options_.before_compile();
  std::vector<std::string> prefix_headers;
  Nanoseconds saved{0};
  auto reply_of = [&]() -> Result<ServerReply> {
    if (auto warm = ask_warm(ctx, request, scan.cute, saved)) return std::move(*warm);
    return ask(ctx, request,
               {.arch = request.arch, .cute = scan.cute, .plain = !options_.allow_fork},
               prefix_headers);
  };
  CG_TRY(ServerReply reply, reply_of());
  CG_TRY(CompileResult out, judge(request, reply));
  out.saved = saved;
  out.cold = reply.compiled.spent + saved;
  remember(key, out.cold);
  auto headers = closure(prefix_headers, reply);
  out.build_id = build_id_of(request, scan.cute, version_, headers);
  // A death, a timeout, a lack of memory or a missing header may be the machine's fault, so such a
  // result is not cached.
  bool certain = reply.died.empty() && !misses_a_file(out.log) &&
                 (reply.compiled.ok || reply.compiled.status == "NVRTC_ERROR_COMPILATION");
  bool no_memory = out.log.find("out of memory") != std::string::npos || out_of_heap(reply);
  if (options_.use_cache && certain && !no_memory) {
    cache_.store(key, out.build_id, headers, to_json_as(out, cache_form));
    remember_programs();
  }
  return timed(std::move(out));
}

void LocalToolchain::remember_programs() {
  std::unique_lock lock(mutex_);
  const std::string key = std::exchange(programs_key_, {});
  lock.unlock();
  if (!key.empty()) cache_.store(key, key, {}, Json::object());
}

std::string warm_key(const std::string& arch, CuteUse cute) {
  return arch + " " + prefix_header(cute);
}

// Returns nullopt if no parsed program has the same beginning as the request, or if anything but
// the source causes a failure. The caller then compiles from the beginning.
std::optional<ServerReply> LocalToolchain::ask_warm(const Context& ctx,
                                                    const CompileRequest& request, CuteUse cute,
                                                    Nanoseconds& saved) {
  if (warm_.count() == 0) return std::nullopt;
  const std::string text = toolchain::full_source(request);
  const size_t body = text.size() - request.source.size() - 1;
  if (!toolchain::find_cuts(text, body).plain) return std::nullopt;
  auto found = warm_.find(warm_key(request.arch, cute), text);
  if (!found) return std::nullopt;
  auto reply = found->parent->compile(ctx, found->place, text, limits());
  const bool sure = reply && reply->died.empty() &&
                    (reply->compiled.ok || reply->compiled.status == "NVRTC_ERROR_COMPILATION") &&
                    reply->compiled.log.find("out of memory") == std::string::npos;
  const bool sealed =
      reply && (!options_.require_sandbox || reply->grade.label == Protection::full);
  if (!sure || !sealed) {
    log_info("a program that was read ahead could not be used: {}",
             reply ? reply->died + reply->compiled.status : reply.error().message);
    return std::nullopt;
  }
  saved = found->place.spent;
  return std::move(*reply);
}

void LocalToolchain::remember(const std::string& key, Nanoseconds cold) {
  constexpr size_t kMost = 64;
  std::lock_guard lock(mutex_);
  cold_.emplace_front(key, cold);
  if (cold_.size() > kMost) cold_.pop_back();
}

void LocalToolchain::expect_children(const CompileRequest& request, int children) {
  if (warm_.budget() == 0 || !options_.allow_fork || !check_arch(request.arch)) return;
  auto scan = toolchain::scan_source(request, options_.paths.includes);
  if (!scan.problem.empty()) return;
  const std::string key = request_key(request, scan.cute);
  Nanoseconds cold{0};
  {
    std::lock_guard lock(mutex_);
    auto at = std::find_if(cold_.begin(), cold_.end(), [&](auto& c) { return c.first == key; });
    if (at != cold_.end()) cold = at->second;
  }
  auto hit = cold.count() == 0 && options_.use_cache ? cache_.find(key) : std::nullopt;
  if (auto known = hit ? cached_result(hit->result) : CompileResult{})
    cold = std::max(cold, known->cold);
  const std::string text = toolchain::full_source(request);
  const auto cuts = toolchain::find_cuts(text, text.size() - request.source.size() - 1);
  const std::string place = warm_key(request.arch, scan.cute);
  if (!toolchain::warm_pays(cold, children) || cuts.at.empty() || warm_.has(place, text)) return;
  ServerSetup setup = setup_for({.arch = request.arch, .cute = scan.cute, .plain = true});
  setup.keep = true;
  setup.resident_bytes = warm_.budget();
  auto parent = toolchain::WarmParent::start(setup, text, cuts, request.name, limits());
  if (!parent) {
    log_info("a program could not be read ahead for its children: {}", parent.error().text());
    return;
  }
  log_debug("reading {} ahead for {} children", request.name, children);
  warm_.keep(place, std::move(*parent));
}

}  // namespace

Result<std::unique_ptr<Toolchain>> Toolchain::open(ToolchainOptions options) {
  if (options.use_cache) CG_CHECK(private_dir(options.paths.cache_dir));
  return std::make_unique<LocalToolchain>(std::move(options));
}

}  // namespace cutegen::toolchain
