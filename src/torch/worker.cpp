// SPDX-License-Identifier: Apache-2.0
#include "torch/worker.h"

#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/hash.h"
#include "base/text.h"
#include "core/baseline.h"
#include "core/kernel_side.h"
#include "sandbox/filter.h"
#include "torch/interpreter.h"
#include "torch/protocol.h"
#include "wire/channel.h"

namespace cutegen::torch {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostProcesses = 256, kMostCudaProcesses = 1024;
const sandbox::Isolation kIsolation{.namespaces = true, .no_network = true, .seccomp = true};
constexpr int64_t kMostCpuSeconds = int64_t{24} * 3600;
constexpr int kSlot = 4;  // the descriptor of the GPU's lock in the child

class ProcessWorker final : public TorchWorker {
 public:
  ProcessWorker(TorchWorkerOptions options, std::string python, fs::path script)
      : options_(std::move(options)), python_(std::move(python)), script_(std::move(script)) {}

  ~ProcessWorker() override { stop(); }
  Result<void> start(const Context& ctx);
  Result<Task> describe(const Context& ctx, const fs::path& file,
                        const DescribeOptions& options) override;
  Result<DescribedShapes> describe_shapes(const Context& ctx, const Task& task,
                                          const std::vector<ShapeConstants>& wanted) override {
    show_neighbours(task.file, task.source);
    CG_TRY(wire::Frame reply, call(ctx, shapes_request(task, wanted), task.file));
    return shapes_from_json(reply.body, task, wanted);
  }
  Result<TensorSet> make_set(const Context& ctx, const Task& task, const ShapeCase& shape,
                             const std::string& family, uint64_t seed) override;
  Result<Excerpt> plan_excerpt(const Context& ctx, const Task& task,
                               const ShapeCase& shape) override;
  Result<TensorSet> make_excerpt(const Context& ctx, const Task& task, const Excerpt& excerpt,
                                 const std::string& family, uint64_t seed) override;
  Result<std::vector<std::string>> fill(const Context& ctx, const Task& task,
                                        const ShapeCase& shape, const std::string& family,
                                        uint64_t seed, const std::vector<GpuMemory>& memory,
                                        const std::vector<GpuTensor>& slots) override;
  Result<std::vector<BaselineOpened>> open_baselines(
      const Context& ctx, const Task& task, const ShapeCase& shape,
      const std::vector<BaselineWanted>& wanted) override {
    for (const BaselineWanted& w : wanted)
      if (!w.target.empty()) see_folder(fs::absolute(task.file).parent_path().string());
    CG_TRY(wire::Frame reply,
           call(ctx, baselines_request(task, shape, options_.device, wanted), task.file));
    return baselines_from_json(reply.body, wanted.size());
  }
  Result<BaselineOpened> add_baseline(const Context& ctx, const BaselineWanted& wanted) override {
    Json request{{"schema", kTorchSchema},
                 {"type", "add_baseline"},
                 {"kind", to_string(wanted.kind)},
                 {"target", wanted.target}};
    const bool tunes = options_.tuned && wanted.kind == BaselineKind::compile_max;
    if (tunes) request["tuned"] = options_.tuned->all();
    CG_TRY(wire::Frame reply, call(ctx, request, "the task file", 1));
    if (auto found = reply.body.find("tuned"); tunes && found != reply.body.end())
      options_.tuned->add(*found);
    CG_TRY(auto opened, baselines_from_json(reply.body, 1));
    return std::move(opened.front());
  }
  Result<void> close_baselines(const Context& ctx) override {
    if (!channel_) return {};  // the worker died, so nothing is open
    CG_TRY(wire::Frame reply,
           call(ctx, {{"schema", kTorchSchema}, {"type", "close_baselines"}}, "the task file", 1));
    (void)reply;
    return {};
  }
  Result<std::vector<double>> time_baseline(const Context& ctx, BaselineKind kind, TimeMode mode,
                                            int samples) override {
    Json request{{"schema", kTorchSchema},
                 {"type", "time_baseline"},
                 {"kind", to_string(kind)},
                 {"mode", to_string(mode)},
                 {"samples", samples}};
    CG_TRY(wire::Frame reply, call(ctx, request, "the task file", 1));
    return samples_from_json(reply.body, samples);
  }
  Result<void> run_baseline(const Context& ctx, const Task& task, BaselineKind kind,
                            const std::vector<GpuMemory>& memory,
                            const std::vector<GpuTensor>& slots) override {
    CG_CHECK(hand_over(ctx, task, memory));
    CG_TRY(wire::Frame reply, call(ctx, run_baseline_request(task, kind, slots), task.file, 1));
    (void)reply;
    return {};
  }
  std::string version() const override { return version_; }
  std::string cudnn() const override { return cudnn_; }
  sandbox::Grade grade() const override { return grade_; }

 private:
  Result<wire::Frame> call(const Context& ctx, const Json& request, const std::string& file,
                           int attempts = 2, std::span<const int> descriptors = {});
  Result<void> spawn_child(const std::string& folder);
  Result<void> let_cuda_start(sandbox::SpawnSpec& spec) const;
  Result<void> note_lock(const Json& hello);
  static Result<TensorSet> take_set(wire::Frame reply, const Task& task, const ShapeCase& shape,
                                    const std::string& family);
  void show_neighbours(const fs::path& file, const std::string& source);
  // Makes this folder visible to the next child, although it is below the private /tmp.
  void see_folder(const std::string& folder) {
    if (folder == folder_ || !folder.starts_with("/tmp")) return;
    stop();
    folder_ = folder;
  }
  Result<void> hand_over(const Context& ctx, const Task& task,
                         const std::vector<GpuMemory>& memory);
  void stop() {
    channel_.close();
    child_.kill();
    // The child may have held the lock, which this process's descriptor would keep.
    if (options_.slot >= 0) ::flock(options_.slot, LOCK_UN);
  }

  TorchWorkerOptions options_;
  std::string python_;
  fs::path script_;
  std::string version_, cudnn_, folder_;
  sandbox::Grade grade_;
  sandbox::Child child_;
  wire::Channel channel_;
};

// `folder` stays visible to the child, because a task file may import files beside it.
Result<void> ProcessWorker::spawn_child(const std::string& folder) {
  CG_TRY(auto ends, wire::Channel::make_pair());
  sandbox::SpawnSpec spec;
  spec.argv = {python_, "-s", script_.string()};
  spec.env = sandbox::scrubbed_environment();
  spec.env.push_back("PYTHONDONTWRITEBYTECODE=1");
  spec.env.push_back("PYTHONHASHSEED=0");
  // Idle threads of OpenMP would otherwise spin and take processor time from simulators.
  spec.env.push_back("OMP_WAIT_POLICY=passive");
  spec.fds = {{ends.second.fd(), 3}};
  spec.readable = {python_, fs::path(python_).parent_path().parent_path().string(),
                   script_.parent_path().string()};
  if (!folder.empty()) spec.readable.push_back(folder);
  spec.limits.memory_bytes = options_.memory_bytes;
  spec.limits.cpu_seconds = kMostCpuSeconds;
  spec.limits.processes = kMostProcesses;
  spec.limits.resident_bytes = options_.memory_bytes;
  spec.isolation = kIsolation;
  spec.required = options_.require_sandbox;
  if (!options_.device.empty()) CG_CHECK(let_cuda_start(spec));
  CG_TRY(child_, sandbox::spawn(spec));
  grade_ = child_.grade();
  channel_ = std::move(ends.first);
  folder_ = folder;
  return {};
}

// At its start, the driver reserves far more addresses than there is memory, names its threads and
// creates a socket. So the child installs the filter later (hello).
Result<void> ProcessWorker::let_cuda_start(sandbox::SpawnSpec& spec) const {
  CG_TRY(fs::path names, sister_program(kThreadNames));
  spec.limits.memory_bytes = 0;
  spec.limits.processes = kMostCudaProcesses;
  spec.isolation.seccomp = false;
  spec.env.push_back("LD_PRELOAD=" + names.string());
  spec.env.push_back("CUDA_CACHE_DISABLE=1");
  if (options_.compiles)  // compilers write to the private /tmp
    for (const char* set : {"HOME=/tmp", "USER=cutegen", "TORCHINDUCTOR_CACHE_DIR=/tmp/inductor",
                            "TRITON_CACHE_DIR=/tmp/triton"})
      spec.env.push_back(set);
  if (options_.compiles)
    spec.env.push_back(fmt::format("TORCHINDUCTOR_COMPILE_THREADS={}", options_.compile_threads));
  if (options_.slot >= 0) spec.fds.emplace_back(options_.slot, kSlot);
  spec.readable.push_back(names.parent_path().string());
  return {};
}

// Records what the worker reported about its filter before it saw a task.
Result<void> ProcessWorker::note_lock(const Json& hello) {
  ObjectReader r(hello, "hello#");
  CG_TRY(std::string missing, r.string_or("missing", ""));
  grade_.held["seccomp"] = missing.empty();
  if (missing.empty()) return {};
  if (grade_.label == Protection::full) grade_.label = Protection::partial;
  grade_.missing = "the torch worker's filter: " + sanitize(missing, kQuoted);
  if (!options_.require_sandbox) return {};
  stop();
  return world_error("the full sandbox is not available: " + grade_.missing,
                     options_.compiles ? "run without --require-sandbox, or with --baseline eager: "
                                         "other baselines start compilers"
                                       : "allow seccomp, or run without --require-sandbox");
}

Result<void> ProcessWorker::start(const Context& ctx) {
  CG_CHECK(spawn_child(folder_));
  Json hello{{"schema", kTorchSchema}, {"type", "hello"}};
  if (!options_.device.empty()) {
    CG_TRY(std::string filter, sandbox::filter_bytes(kIsolation));
    hello["device"] = options_.device;
    if (options_.slot >= 0) hello["slot"] = options_.slot_for_opening ? "opening" : "all";
    hello["filter"] = options_.compiles ? std::string() : to_hex(filter);
  }
  auto reply = channel_.call(ctx.with_timeout(options_.start_timeout), hello);
  if (reply) {
    ObjectReader r(reply->body, "hello#");
    CG_TRY(version_, r.string("version"));
    CG_TRY(cudnn_, r.string_or("cudnn", ""));
    if (!options_.device.empty()) CG_CHECK(note_lock(reply->body));
    return {};
  }
  Error error = reply.error();
  std::string words = last_line(child_.error_text());
  stop();
  if (error.kind == ErrorKind::cancelled) return fail(std::move(error));
  if (wire::is_closed(error)) {
    error.message = "the torch worker does not start with " + python_;
    if (!words.empty()) error.message += ": " + words;
  } else if (error.kind == ErrorKind::timeout) {
    error.message = "the torch worker has not started with " + python_ + " within " +
                    human_ns(double(options_.start_timeout.count()));
    error.remedy = "end other programs on this machine, or name another interpreter: --python PATH";
  }
  if (error.remedy.empty())
    error.remedy = "run make setup, or name another interpreter: --python PATH";
  return fail(std::move(error));
}

// Sends one request. Kills a worker that hangs or dies; the next call starts another one. Repeats
// once after a death, because the machine may have caused it, but not after a hang.
Result<wire::Frame> ProcessWorker::call(const Context& ctx, const Json& request,
                                        const std::string& file, int attempts,
                                        std::span<const int> descriptors) {
  for (int attempt = 1;; ++attempt) {
    CG_CHECK(ctx.check("waiting for the torch worker"));
    if (!channel_) CG_CHECK(start(ctx));
    auto reply = channel_.call(ctx.with_timeout(options_.call_timeout), request, descriptors);
    if (reply) return reply;
    Error error = reply.error();
    bool timeout = error.kind == ErrorKind::timeout, closed = wire::is_closed(error);
    if (channel_ && !timeout && !closed && error.kind != ErrorKind::cancelled)
      return fail(std::move(error));  // an error reply from a healthy worker
    std::string how;
    if (closed)
      if (auto status = child_.wait(ctx.with_timeout(std::chrono::seconds(2))))
        how = status->text();
    std::string words = last_line(child_.error_text());
    stop();
    if (ctx.done() || error.kind == ErrorKind::cancelled) return fail(std::move(error));
    if (timeout)
      return user_error("the task file does not finish: still running after " +
                            human_ns(double(options_.call_timeout.count())),
                        file, "look for an endless loop, or for code that computes on real data");
    if (attempt == attempts)
      return user_error("the task file ends the worker process" +
                            (how.empty() ? std::string() : " (" + how + ")") +
                            (words.empty() ? std::string() : ": " + words),
                        file, "remove calls such as os._exit, and code that needs much memory");
  }
}

// The mount view hides /tmp, so a file there that imports its neighbours needs another child.
void ProcessWorker::show_neighbours(const fs::path& file, const std::string& source) {
  std::string folder = fs::absolute(file).parent_path().string();
  if (folder == folder_ || !folder.starts_with("/tmp") || !imports_neighbour(source, folder))
    return;
  stop();
  folder_ = folder;
}

Result<Task> ProcessWorker::describe(const Context& ctx, const fs::path& file,
                                     const DescribeOptions& options) {
  CG_TRY(TaskFiles files, read_task_files(file));
  show_neighbours(files.file, files.source);
  std::string folder = fs::absolute(files.file).parent_path().string();
  if (imports_neighbour(files.source, folder)) see_folder(folder);
  Json request = describe_request(files, options);
  CG_TRY(wire::Frame reply, call(ctx, request, files.file));
  ObjectReader r(reply.body, "describe#");
  CG_TRY(Json json, r.object("task"));
  CG_TRY(Task task, read_json<Task>(json));
  if (is_kernel_file(file)) task.name = file.stem().string();
  task.id = task_id(task, files);
  return task;
}

Result<TensorSet> ProcessWorker::make_set(const Context& ctx, const Task& task,
                                          const ShapeCase& shape, const std::string& family,
                                          uint64_t seed) {
  CG_TRY(wire::Frame reply, call(ctx, set_request(task, shape, family, seed), task.file));
  return take_set(std::move(reply), task, shape, family);
}

Result<TensorSet> ProcessWorker::take_set(wire::Frame reply, const Task& task,
                                          const ShapeCase& shape, const std::string& family) {
  if (reply.fds.size() != 1)
    return world_error("the torch worker answered without the memory of a set");
  CG_TRY(TensorSet set, set_from_json(reply.body, task, shape));
  set.family = family;
  set.memory = std::move(reply.fds[0]);
  CG_CHECK(check_memory(set));
  return set;
}

Result<Excerpt> ProcessWorker::plan_excerpt(const Context& ctx, const Task& task,
                                            const ShapeCase& shape) {
  show_neighbours(task.file, task.source);
  CG_TRY(wire::Frame reply, call(ctx, plan_excerpt_request(task, shape), task.file));
  return excerpt_from_json(reply.body, task, shape);
}

Result<TensorSet> ProcessWorker::make_excerpt(const Context& ctx, const Task& task,
                                              const Excerpt& excerpt, const std::string& family,
                                              uint64_t seed) {
  CG_TRY(wire::Frame reply, call(ctx, excerpt_request(task, excerpt, family, seed), task.file));
  return take_set(std::move(reply), task, excerpt.shape, family);
}

// A worker that dies loses the memory, so this repeats no request.
Result<std::vector<std::string>> ProcessWorker::fill(const Context& ctx, const Task& task,
                                                     const ShapeCase& shape,
                                                     const std::string& family, uint64_t seed,
                                                     const std::vector<GpuMemory>& memory,
                                                     const std::vector<GpuTensor>& slots) {
  if (options_.device.empty()) return world_error("this torch worker has no GPU");
  show_neighbours(task.file, task.source);
  CG_CHECK(hand_over(ctx, task, memory));
  CG_TRY(wire::Frame reply,
         call(ctx, fill_request(task, shape, family, seed, slots), task.file, 1));
  ObjectReader r(reply.body, "filled#");
  CG_TRY(auto notes, r.strings("notes"));
  CG_CHECK(r.finish());
  return notes;
}

// Sends several requests, because a frame carries few descriptors.
Result<void> ProcessWorker::hand_over(const Context& ctx, const Task& task,
                                      const std::vector<GpuMemory>& memory) {
  for (size_t at = 0; at < memory.size(); at += wire::kMaxFds) {
    Json sizes = Json::array();
    std::vector<int> descriptors;
    for (size_t i = at; i < std::min(at + wire::kMaxFds, memory.size()); ++i) {
      sizes.push_back(memory[i].bytes);
      descriptors.push_back(memory[i].descriptor);
    }
    Json request{
        {"schema", kTorchSchema}, {"type", "memory"}, {"first", at == 0}, {"bytes", sizes}};
    CG_TRY(auto taken, call(ctx, request, task.file, 1, descriptors));
    (void)taken;
  }
  return {};
}

}  // namespace

Result<Excerpt> TorchWorker::plan_excerpt(const Context&, const Task&, const ShapeCase&) {
  return unsupported_error("this worker cannot make excerpts");
}

Result<TensorSet> TorchWorker::make_excerpt(const Context&, const Task&, const Excerpt&,
                                            const std::string&, uint64_t) {
  return unsupported_error("this worker cannot make excerpts");
}

Result<std::unique_ptr<TorchWorker>> TorchWorker::open(TorchWorkerOptions options) {
  CG_TRY(std::string python, find_interpreter(options.python));
  CG_TRY(fs::path script, find_worker(options.script));
  auto worker =
      std::make_unique<ProcessWorker>(std::move(options), std::move(python), std::move(script));
  CG_CHECK(worker->start(Context()));
  return std::unique_ptr<TorchWorker>(std::move(worker));
}

}  // namespace cutegen::torch
