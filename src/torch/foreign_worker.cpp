// SPDX-License-Identifier: Apache-2.0
#include "torch/foreign_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/hash.h"
#include "base/text.h"
#include "base/units.h"
#include "sandbox/filter.h"
#include "torch/interpreter.h"
#include "wire/channel.h"

namespace cutegen::torch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = "cutegen.foreign.v1";
constexpr const char* kThreadNames = "cutegen-thread-names.so";
constexpr auto kStartLimit = std::chrono::seconds(60);
constexpr int64_t kMostProcesses = 512, kMostCudaProcesses = 1024, kMostCpuSeconds = 24 * 3600;
constexpr int64_t kMostFileBytes = int64_t{4} << 30;
constexpr size_t kQuoted = 400, kSaid = 800, kMostKept = 16;
constexpr double kLongest = 1e13;  // ns: no call lasts longer
const sandbox::Isolation kIsolation{.namespaces = true, .no_network = true, .seccomp = true};

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

class Worker final : public ForeignWorker {
 public:
  Worker(ForeignOptions options, std::string python, fs::path script)
      : options_(std::move(options)),
        python_(std::move(python)),
        script_(std::move(script)),
        folder_("/tmp/cutegen-answer-" + random_id()) {}
  ~Worker() override {
    stop();
    std::error_code error;  // exists only if the child had no /tmp of its own
    fs::remove_all(folder_, error);
  }

  Result<void> start(const Context& ctx) {
    CG_CHECK(spawn_child());
    Json hello = message("hello");
    hello["device"] = options_.device;
    hello["tf32"] = options_.tf32;
    if (options_.tf32_convolutions) hello["tf32_convolutions"] = true;
    if (!options_.device.empty()) {
      CG_TRY(std::string filter, sandbox::filter_bytes(kIsolation));
      hello["filter"] = to_hex(filter);
    }
    auto reply = channel_.call(ctx.with_timeout(kStartLimit), hello);
    if (!reply) return fail(start_error(reply.error()));
    if (reply->body.contains("failed")) {
      CG_TRY(ForeignReply told, reply_from(reply->body));
      stop();
      return world_error("the process for the third-party solution does not start: " + told.what,
                         "see `cutegen doctor`, or name another interpreter: --python");
    }
    ObjectReader r(reply->body, "hello#");
    CG_TRY(version_, r.string("version"));
    CG_TRY(std::string missing, r.string_or("missing", ""));
    if (!options_.device.empty()) CG_CHECK(note_lock(missing));
    return {};
  }

  Result<ForeignReply> load(const Context& ctx, const Task& task,
                            const ForeignFile& answer) override {
    if (used_) {
      stop();
      CG_CHECK(start(ctx));
    }
    used_ = true;
    Json request = message("load");
    request.update({{"file", answer.name},
                    {"source", answer.source},
                    {"task_file", task.file},
                    {"task_source", task.source}});
    return ask(ctx, request, options_.load_limit);
  }

  Result<ForeignReply> make_model(const Context& ctx, const Task& task, const ShapeCase& shape,
                                  const ForeignModel& model) override {
    CG_TRY(auto trouble, hand_over(ctx, model.state.blocks));
    if (!trouble.ok()) return trouble;
    Json request = message("make_model");
    request.update({{"constants", write_json(shape.constants)},
                    {"train_mode", task.train_mode},
                    {"seed", model.seed},
                    {"on_gpu", model.on_gpu},
                    {"warm_up", model.warm_up},
                    {"tensors", write_json(model.state.tensors)}});
    for (const TensorInfo* t : results_of(task))
      if (t->mutated) request["mutated"].push_back(t->name);
    if (!task.returns.empty()) request["returns"] = task.returns;
    return ask(ctx, request, options_.call_limit * (1 + model.warm_up));
  }

  Result<ForeignReply> run(const Context& ctx, const ForeignRun& run) override {
    CG_TRY(auto trouble, hand_over(ctx, run.tensors.blocks));
    if (!trouble.ok()) return trouble;
    Json request = message("run");
    request.update({{"control", run.control},
                    {"sleep_ns", run.sleep_ns},
                    {"tensors", write_json(run.tensors.tensors)}});
    return ask(ctx, request, options_.call_limit);
  }

  std::string version() const override { return version_; }
  sandbox::Grade grade() const override { return grade_; }

 private:
  Json message(const char* type) { return {{"schema", kSchema}, {"type", type}, {"id", ++id_}}; }

  // In several requests, because a frame carries few descriptors.
  Result<ForeignReply> hand_over(const Context& ctx, const std::vector<ForeignBlock>& blocks) {
    ForeignReply last;
    size_t at = 0;
    do {
      Json list = Json::array();
      std::vector<int> descriptors;
      for (size_t i = at; i < std::min(at + wire::kMaxFds, blocks.size()); ++i) {
        list.push_back({{"bytes", blocks[i].bytes},
                        {"host", blocks[i].host},
                        {"read_only", blocks[i].read_only}});
        descriptors.push_back(blocks[i].descriptor);
      }
      Json request = message("memory");
      request["first"] = at == 0;
      request["blocks"] = std::move(list);
      CG_TRY(last, ask(ctx, request, options_.call_limit, descriptors));
      at += wire::kMaxFds;
    } while (last.ok() && at < blocks.size());
    return last;
  }

  Result<ForeignReply> ask(const Context& ctx, const Json& request, Nanoseconds limit,
                           std::span<const int> descriptors = {}) {
    CG_CHECK(ctx.check("running a third-party solution"));
    if (!channel_) return gone(ForeignReply::Kind::died, "its process has ended");
    const auto begin = Clock::now();
    const Context within = ctx.with_timeout(limit);
    auto sent = channel_.send(within, request, descriptors);
    // receive(), not call(): an {"error": ...} from the child is a claim, not an Error of ours.
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
  Result<ForeignReply> lost(const Context& ctx, const Error& error, Nanoseconds limit) {
    if (ctx.done()) {
      stop();
      return fail(error);
    }
    if (error.kind == ErrorKind::timeout)
      return gone(ForeignReply::Kind::hung,
                  "still running after " + human_ns(static_cast<double>(limit.count())));
    std::string how = "its process broke the protocol";
    if (wire::is_closed(error)) {
      auto status = child_.wait(ctx.with_timeout(std::chrono::seconds(2)));
      how = status ? "its process ends (" + status->text() + ")" : "its process closed its channel";
    }
    return gone(ForeignReply::Kind::died, how);
  }

  ForeignReply gone(ForeignReply::Kind kind, std::string what) {
    ForeignReply out;
    out.kind = kind;
    out.what = std::move(what);
    if (channel_) out.said = tail_of(child_.error_text());
    stop();
    return out;
  }

  // The solution may have written this reply, so check every field.
  static Result<ForeignReply> reply_from(const Json& body) {
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

  Error start_error(Error error) {
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

  Result<void> note_lock(const std::string& missing) {
    grade_.held["seccomp"] = missing.empty();
    if (missing.empty()) return {};
    if (grade_.label == Protection::full) grade_.label = Protection::partial;
    grade_.missing = "the filter: " + sanitize(missing, kQuoted);
    if (!options_.require_sandbox) return {};
    stop();
    return world_error("the full sandbox is not available: " + grade_.missing,
                       "allow seccomp, or run without --require-sandbox");
  }

  Result<void> spawn_child() {
    CG_TRY(auto ends, wire::Channel::make_pair());
    sandbox::SpawnSpec spec;
    spec.argv = {python_, "-s", script_.string(), "foreign"};
    spec.env = environment();
    spec.fds = {{ends.second.fd(), 3}};
    spec.readable = {python_, fs::path(python_).parent_path().parent_path().string(),
                     script_.parent_path().string()};
    spec.limits.memory_bytes = spec.limits.resident_bytes = options_.memory_bytes;
    spec.limits.cpu_seconds = kMostCpuSeconds;
    spec.limits.processes = kMostProcesses;
    spec.limits.file_bytes = kMostFileBytes;
    spec.isolation = kIsolation;
    spec.required = options_.require_sandbox;
    if (!options_.device.empty()) CG_CHECK(let_cuda_start(spec));
    CG_TRY(child_, sandbox::spawn(spec));
    grade_ = child_.grade();
    channel_ = std::move(ends.first);
    used_ = false;
    return {};
  }

  // Builds and caches go to the solution's folder, in a private /tmp.
  std::vector<std::string> environment() const {
    std::vector<std::string> out = sandbox::scrubbed_environment();
    std::erase_if(out, [](const std::string& e) {
      return starts_with_any(e, {"HOME=", "TMPDIR=", "CUTEGEN_"});
    });
    for (const char* set : {"PYTHONDONTWRITEBYTECODE=1", "PYTHONHASHSEED=0", "PYTHONUNBUFFERED=1",
                            "USER=cutegen", "TORCHINDUCTOR_COMPILE_THREADS=1", "MAX_JOBS=8"})
      out.emplace_back(set);
    out.push_back("CUTEGEN_ANSWER=" + folder_);
    out.push_back("HOME=" + folder_);
    for (const auto& [name, below] : {std::pair{"TORCH_EXTENSIONS_DIR", "extensions"},
                                      {"TRITON_CACHE_DIR", "triton"},
                                      {"TORCHINDUCTOR_CACHE_DIR", "inductor"}})
      out.push_back(fmt::format("{}={}/{}", name, folder_, below));
    return out;
  }

  // As for a torch worker with a GPU: the driver starts first, then the filter follows.
  Result<void> let_cuda_start(sandbox::SpawnSpec& spec) const {
    CG_TRY(fs::path names, sister_program(kThreadNames));
    spec.limits.memory_bytes = 0;
    spec.limits.processes = kMostCudaProcesses;
    spec.isolation.seccomp = false;
    spec.env.push_back("LD_PRELOAD=" + names.string());
    spec.env.emplace_back("CUDA_CACHE_DISABLE=1");
    if (std::string arch = build_arch(options_.arch); !arch.empty())
      spec.env.push_back("TORCH_CUDA_ARCH_LIST=" + arch);
    spec.readable.push_back(names.parent_path().string());
    return {};
  }

  void stop() {
    channel_.close();
    child_.kill();
  }

  ForeignOptions options_;
  std::string python_;
  fs::path script_;
  const std::string folder_;
  std::string version_;
  sandbox::Grade grade_;
  sandbox::Child child_;
  wire::Channel channel_;
  int64_t id_ = 0;
  bool used_ = false;  // this child has loaded a solution
};

uint64_t seed_of(const std::string& text) {
  const std::string digest = sha256(text);
  uint64_t out = 0;
  for (int byte = 7; byte >= 0; --byte)  // the first eight bytes, little-endian
    out = out << 8 | std::stoul(digest.substr(static_cast<size_t>(2 * byte), 2), nullptr, 16);
  return out >> 1;
}

}  // namespace

Result<std::unique_ptr<ForeignWorker>> ForeignWorker::open(const Context& ctx,
                                                           ForeignOptions options) {
  CG_TRY(std::string python, find_interpreter(options.python));
  CG_TRY(fs::path script, find_worker(options.script));
  auto worker = std::make_unique<Worker>(std::move(options), std::move(python), std::move(script));
  CG_CHECK(worker->start(ctx));
  return std::unique_ptr<ForeignWorker>(std::move(worker));
}

// As in values.py: parts joined by zero bytes.
uint64_t model_seed_of(uint64_t seed, const std::string& family, const std::string& shape) {
  const std::string zero(1, '\0');
  const uint64_t set = seed_of(std::to_string(seed) + zero + family + zero + shape);
  return seed_of(std::to_string(set) + zero + "model");
}

}  // namespace cutegen::torch
