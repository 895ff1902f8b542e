// SPDX-License-Identifier: Apache-2.0
#include "torch/foreign_worker.h"

#include <algorithm>

#include "base/hash.h"
#include "base/text.h"
#include "sandbox/filter.h"
#include "torch/foreign_process.h"
#include "torch/interpreter.h"

namespace cutegen::torch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = "cutegen.foreign.v1";

class ForeignProcessWorker final : public ForeignWorker {
 public:
  ForeignProcessWorker(ForeignOptions options, std::string python, fs::path script)
      : options_(std::move(options)), process_(options_, std::move(python), std::move(script)) {}

  Result<void> start(const Context& ctx) {
    CG_CHECK(process_.spawn());
    grade_ = process_.grade();
    used_ = false;
    Json hello = message("hello");
    hello["device"] = options_.device;
    hello["tf32"] = options_.tf32;
    if (options_.tf32_convolutions) hello["tf32_convolutions"] = true;
    if (!options_.device.empty()) {
      CG_TRY(std::string filter, sandbox::filter_bytes(kForeignIsolation));
      hello["filter"] = to_hex(filter);
    }
    CG_TRY(const Json reply, process_.greet(ctx, hello));
    ObjectReader r(reply, "hello#");
    CG_TRY(version_, r.string("version"));
    CG_TRY(std::string missing, r.string_or("missing", ""));
    if (!options_.device.empty()) CG_CHECK(note_lock(missing));
    return {};
  }

  Result<ForeignReply> load(const Context& ctx, const Task& task,
                            const ForeignFile& answer) override {
    if (used_) {
      process_.stop();
      CG_CHECK(start(ctx));
    }
    used_ = true;
    Json request = message("load");
    request.update({{"file", answer.name},
                    {"source", answer.source},
                    {"task_file", task.file},
                    {"task_source", task.source}});
    return process_.ask(ctx, request, options_.load_limit);
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
    return process_.ask(ctx, request, options_.call_limit * (1 + model.warm_up));
  }

  Result<ForeignReply> run(const Context& ctx, const ForeignRun& run) override {
    CG_TRY(auto trouble, hand_over(ctx, run.tensors.blocks));
    if (!trouble.ok()) return trouble;
    Json request = message("run");
    request.update({{"control", run.control},
                    {"sleep_ns", run.sleep_ns},
                    {"tensors", write_json(run.tensors.tensors)}});
    return process_.ask(ctx, request, options_.call_limit);
  }

  std::string version() const override { return version_; }
  sandbox::Grade grade() const override { return grade_; }

 private:
  Json message(const char* type) { return {{"schema", kSchema}, {"type", type}, {"id", ++id_}}; }

  // Sends several requests, because a frame carries few descriptors.
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
      CG_TRY(last, process_.ask(ctx, request, options_.call_limit, descriptors));
      at += wire::kMaxFds;
    } while (last.ok() && at < blocks.size());
    return last;
  }

  Result<void> note_lock(const std::string& missing) {
    grade_.held["seccomp"] = missing.empty();
    if (missing.empty()) return {};
    if (grade_.label == Protection::full) grade_.label = Protection::partial;
    grade_.missing = "the filter: " + sanitize(missing, kQuoted);
    if (!options_.require_sandbox) return {};
    process_.stop();
    return world_error("the full sandbox is not available: " + grade_.missing,
                       "allow seccomp, or run without --require-sandbox");
  }

  ForeignOptions options_;
  ForeignProcess process_;
  std::string version_;
  sandbox::Grade grade_;
  int64_t id_ = 0;
  bool used_ = false;  // this child has loaded a solution
};

uint64_t seed_of(const std::string& text) {
  const std::string digest = sha256(text);
  uint64_t out = 0;
  for (int byte = 7; byte >= 0; --byte)  // the first eight bytes, little-endian
    out = out << 8 | std::stoul(digest.substr(size_t(2 * byte), 2), nullptr, 16);
  return out >> 1;
}

}  // namespace

Result<std::unique_ptr<ForeignWorker>> ForeignWorker::open(const Context& ctx,
                                                           ForeignOptions options) {
  CG_TRY(std::string python, find_interpreter(options.python));
  CG_TRY(fs::path script, find_worker(options.script));
  auto worker = std::make_unique<ForeignProcessWorker>(std::move(options), std::move(python),
                                                       std::move(script));
  CG_CHECK(worker->start(ctx));
  return std::unique_ptr<ForeignWorker>(std::move(worker));
}

// Hashes the parts joined by zero bytes, as seed_of() in values.py does.
uint64_t model_seed_of(uint64_t seed, const std::string& family, const std::string& shape) {
  const std::string zero(1, '\0');
  const uint64_t set = seed_of(std::to_string(seed) + zero + family + zero + shape);
  return seed_of(std::to_string(set) + zero + "model");
}

}  // namespace cutegen::torch
