// SPDX-License-Identifier: Apache-2.0
#include "eval/runner/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "device/messages.h"
#include "eval/runner/gpu_slot.h"

namespace cutegen::eval {
namespace {

constexpr auto kStartLimit = std::chrono::seconds(20);
constexpr auto kLoadLimit = std::chrono::seconds(60);
constexpr auto kSettleLimit = std::chrono::seconds(5);

}  // namespace

Runner::~Runner() {
  stop_spare_.request_stop();
  stop();
}

void Runner::stop() {
  loaded_ = false;
  process_.channel.close();
  if (!options_.spare || !process_.child.running()) {
    process_.child = sandbox::Child();
    return;
  }
  // The driver may need 0.2 s or more to destroy a broken context, so a thread waits for it.
  auto ended = [](std::future<void>& f) {
    return f.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  };
  std::erase_if(ending_, ended);
  ending_.push_back(std::async(
      std::launch::async, [old = std::move(process_.child)]() mutable { old = sandbox::Child(); }));
  process_.child = sandbox::Child();
}

Result<sandbox::ExitStatus> Runner::finish(const Context& ctx, Nanoseconds limit) {
  loaded_ = false;
  process_.channel.close();
  auto status = process_.child.wait(ctx.with_timeout(limit));
  process_.child = sandbox::Child();
  return status;
}

void Runner::settle(const Context& ctx) {
  const Context limited = ctx.with_timeout(kSettleLimit);
  auto wait = [&](const auto& future) {
    while (!limited.done() &&
           future.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready) {
    }
  };
  for (const auto& f : ending_) wait(f);
  if (spare_.valid()) wait(spare_);
}

void Runner::start_spare() {
  if (!options_.spare || no_spares_ || spare_.valid()) return;
  auto program = sister_program("cutegen-runner");
  if (!program) return;
  Context ctx(stop_spare_.get_token());
  spare_ = std::async(std::launch::async, [this, ctx, spec = spawn_spec(program->string())] {
    return make(ctx, spec);
  });
}

sandbox::SpawnSpec Runner::spawn_spec(const std::string& program) const {
  sandbox::SpawnSpec spec{.argv = {program}, .env = sandbox::scrubbed_environment()};
  spec.limits = {.memory_bytes = options_.memory_bytes + large_bytes_,
                 .file_bytes = 0,
                 .open_files = 64,
                 .processes = 512,
                 .resident_bytes = options_.memory_bytes};
  spec.isolation = {.namespaces = true, .no_network = true, .seccomp = true, .deny_open = true};
  spec.required = options_.require_sandbox;
  if (!options_.device.is_gpu()) return spec;
  // When it starts, the driver reserves far more addresses than there is memory, opens device files
  // and creates a socket. So the runner itself installs the seccomp filter later, before it
  // receives a program.
  spec.limits.memory_bytes = 0;
  spec.limits.file_bytes = -1;
  spec.limits.open_files = 4096;
  spec.isolation.seccomp = spec.isolation.deny_open = false;
  spec.env.insert(spec.env.end(), {"CUDA_CACHE_DISABLE=1", "CUDA_MODULE_LOADING=EAGER"});
  if (const char* set = std::getenv("CUTEGEN_CUDA_DRIVER"); set && *set == '/') {
    spec.env.push_back(std::string("CUTEGEN_CUDA_DRIVER=") + set);
    spec.readable.push_back(std::filesystem::path(set).parent_path().string());
  }
  if (!options_.around.empty()) put_around(spec);
  return spec;
}

// A profiler talks to its libraries in the runner over the loopback interface and keeps files in
// /tmp.
void Runner::put_around(sandbox::SpawnSpec& spec) const {
  spec.argv.insert(spec.argv.begin(), options_.around.begin(), options_.around.end());
  std::erase_if(spec.env, [](const std::string& e) {
    return e.starts_with("HOME=") || e.starts_with("TMPDIR=") || e.starts_with("LC_") ||
           e.starts_with("LANG=");
  });
  spec.env.insert(spec.env.end(), {"HOME=/tmp", "TMPDIR=/tmp", "LC_ALL=C"});
  spec.readable.insert(spec.readable.end(), options_.readable.begin(), options_.readable.end());
  const auto folder = std::filesystem::path(spec.argv.back()).parent_path();
  spec.readable.push_back((folder.filename() == "bin" ? folder.parent_path() : folder).string());
  spec.isolation.loopback = true;
  spec.isolation.keep_capabilities = options_.keep_capabilities;
  if (!options_.bare) return;
  spec.isolation = {};
  spec.limits.processes = 0;
}

Result<Runner::Process> Runner::make(const Context& ctx, const sandbox::SpawnSpec& wanted) const {
  Process out;
  CG_TRY(auto pair, wire::Channel::make_pair());
  sandbox::SpawnSpec spec = wanted;
  spec.fds = {{pair.second.fd(), 3}};
  if (options_.log >= 0) spec.fds.emplace_back(options_.log, 4);
  CG_TRY(out.child, sandbox::spawn(spec));
  out.grade = out.child.grade();
  out.channel = std::move(pair.first);
  pair.second.close();
  const device::OpenCall call{.device = options_.device, .profiled = !options_.around.empty()};
  auto reply = out.channel.call(ctx.with_timeout(kStartLimit), device::to_json(call));
  if (reply) {
    CG_CHECK(open(reply->body, out));
    return out;
  }
  CG_CHECK(ctx.check("starting the runner"));
  if (reply.error().kind == ErrorKind::timeout)
    return world_error(fmt::format("the runner did not start within {} s", kStartLimit.count()));
  if (!wire::is_closed(reply.error())) return fail(reply.error());
  auto status = out.child.wait(Context().with_timeout(std::chrono::seconds(2)));
  return world_error("the runner did not start: " +
                     (status ? status->text() : reply.error().message));
}

Result<void> Runner::open(const Json& reply, Process& process) const {
  CG_TRY(device::Opened opened, read_json<device::Opened>(reply));
  sandbox::Grade& grade = process.grade;
  if (options_.device.is_gpu()) grade.held["seccomp"] = opened.locked;
  if (!opened.locked) {
    if (grade.label == Protection::full) grade.label = Protection::partial;
    grade.missing = "the runner's filter: " + opened.missing;
    if (options_.require_sandbox)
      return world_error("the full sandbox is not available: " + grade.missing,
                         "allow seccomp, or run without --require-sandbox");
  }
  process.facts = std::move(opened.facts);
  process.identity = std::move(opened.identity);
  return {};
}

Result<void> Runner::start(const Context& ctx) {
  stop();
  CG_TRY(auto program, sister_program("cutegen-runner"));
  CG_TRY(process_, make(ctx, spawn_spec(program.string())));
  start_spare();
  return {};
}

Result<void> Runner::ready(const Context& ctx) {
  if (process_.channel && process_.child.running()) return {};
  stop();
  if (spare_.valid()) spare_.wait();
  return take_spare() ? Result<void>{} : start(ctx);
}

// Replaces the process with the spare, if one is ready, and starts the next spare.
bool Runner::take_spare() {
  if (!spare_.valid() || spare_.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    return false;
  auto spare = spare_.get();
  no_spares_ = !spare;
  if (!spare || !spare->child.running()) return false;
  process_ = std::move(*spare);
  start_spare();
  return true;
}

Result<Runner::Answer> Runner::ask(const Context& ctx, const Json& body, std::vector<int> fds,
                                   Nanoseconds limit) {
  Context limited = ctx.with_timeout(limit);
  auto start = Clock::now();
  auto reply = process_.channel.call(limited, body, fds);
  waited_ += Clock::now() - start;
  Answer answer;
  if (reply) {
    answer.body = std::move(reply->body);
    return answer;
  }
  if (process_.channel && reply.error().kind != ErrorKind::timeout &&
      reply.error().kind != ErrorKind::cancelled && !wire::is_closed(reply.error())) {
    answer.is_error = true;
    answer.error = reply.error();
    return answer;
  }
  if (ctx.stopped()) {
    stop();
    return fail(reply.error());
  }
  answer.alive = false;
  answer.hung = reply.error().kind == ErrorKind::timeout;
  if (answer.hung) {
    answer.death = fmt::format("no answer within {} s",
                               std::chrono::duration_cast<std::chrono::seconds>(limit).count());
  } else {
    auto status = process_.child.wait(Context().with_timeout(std::chrono::seconds(2)));
    answer.death = status ? status->text() : reply.error().message;
  }
  stop();
  return answer;
}

// Takes the GPU's slot, because even loading interrupts other processes' timed runs for a
// millisecond.
Result<LoadOutcome> Runner::load_once(const Context& ctx) {
  CG_CHECK(ready(ctx));
  std::optional<GpuSlot> slot;
  if (options_.device.is_gpu()) {
    CG_TRY(slot, GpuSlot::share(ctx, identity().uuid));
  }
  size_t total = 0;
  device::LoadCall call;
  for (const auto* list : {&modules_, &code_})
    for (const std::string& text : *list) {
      (list == &code_ ? call.code_bytes : call.bytes).push_back(text.size());
      total += text.size();
    }
  CG_TRY(UniqueFd memory, make_memfd("modules", std::max<size_t>(total, 1)));
  CG_TRY(Mapping mapping, Mapping::map(memory.get(), total, true));
  size_t at = 0;
  for (const auto* list : {&modules_, &code_})
    for (const std::string& text : *list) {
      std::memcpy(mapping.data() + at, text.data(), text.size());
      at += text.size();
    }
  CG_TRY(Answer answer, ask(ctx, device::to_json(call), {memory.get()}, kLoadLimit));
  LoadOutcome out;
  if (!answer.alive) {
    out.died = true;
    out.error = {
        .kind = ErrorKind::user,
        .message = fmt::format("the runner died ({}) while loading this program", answer.death)};
    return out;
  }
  if (answer.is_error) {
    out.error = answer.error;
    return out;
  }
  CG_TRY(device::Loaded loaded, read_json<device::Loaded>(answer.body));
  if (loaded.facts.size() != modules_.size())
    return world_error("the runner's reply to 'load' has no facts");
  out.facts = std::move(loaded.facts);
  out.ok = loaded_ = true;
  return out;
}

Result<LoadOutcome> Runner::load(const Context& ctx, const std::vector<std::string>& ptx,
                                 const std::vector<std::string>& code) {
  modules_ = ptx;
  code_ = code;
  loaded_ = false;
  CG_TRY(LoadOutcome first, load_once(ctx));
  if (!first.died) return first;
  return load_once(ctx);  // tries once more in a new runner before blaming the program
}

Result<std::optional<Runner::Answer>> Runner::hand_over(const Context& ctx,
                                                        const std::vector<SharedBuffer>& shared,
                                                        Nanoseconds limit) {
  for (size_t at = 0; at < shared.size(); at += wire::kMaxFds) {
    device::ShareCall call{.first = at == 0};
    std::vector<int> descriptors;
    for (size_t i = at; i < std::min(at + wire::kMaxFds, shared.size()); ++i) {
      const SharedBuffer& b = shared[i];
      call.buffers.push_back(b);
      descriptors.push_back(b.descriptor);
    }
    CG_TRY(Answer answer, ask(ctx, device::to_json(call), std::move(descriptors), limit));
    if (!answer.alive || answer.is_error) return std::optional(std::move(answer));
  }
  return std::optional<Answer>();
}

Result<RunnerOutcome> Runner::run(const Context& ctx, const RunRequest& request) {
  CG_CHECK(ready(ctx));
  if (!loaded_) {
    CG_TRY(LoadOutcome again, load_once(ctx));
    if (!again.ok) return world_error("modules do not load again: " + again.error.message);
  }
  const device::RunCall call{.buffers = request.buffers,
                             .steps = request.steps,
                             .settings = request.settings,
                             .keep = request.keep};
  if (request.keep) keeps_ = true;
  std::vector<int> fds;
  for (int fd : {request.memory, request.ring})
    if (fd >= 0) fds.push_back(fd);
  CG_TRY(std::optional<Answer> refused, hand_over(ctx, request.shared, request.limit));
  if (refused) return outcome_of(*refused);
  return ask_to_run(ctx, device::to_json(call), std::move(fds), request.limit);
}

Result<RunnerOutcome> Runner::time(const Context& ctx, const device::TimeRequest& request,
                                   Nanoseconds limit) {
  RunnerOutcome gone;
  gone.kind = RunnerOutcome::Kind::died;
  gone.text = "it ended between two requests";
  if (!process_.channel || !process_.child.running()) return gone;
  CG_TRY(RunnerOutcome outcome,
         ask_to_run(ctx, device::to_json(device::TimeCall{request}), {}, limit));
  memory_.note(outcome.report.state, Clock::now());
  return outcome;
}

Result<void> Runner::read(const Context& ctx, const std::vector<Probe>& probes) {
  if (!process_.channel) return world_error("the runner ended before its results were read");
  CG_TRY(Answer answer, ask(ctx, device::to_json(device::ReadCall{probes}), {}, kLoadLimit));
  if (!answer.alive) return world_error("the runner ended before its results were read");
  if (answer.is_error) return fail(answer.error);
  return {};
}

void Runner::release() {
  if (!std::exchange(keeps_, false) || !process_.channel) return;
  auto answer = ask(Context(), device::to_json(device::ReleaseCall{}), {}, kLoadLimit);
  if (!answer || answer->is_error) stop();
}

Result<RunnerOutcome> Runner::ask_to_run(const Context& ctx, const Json& body, std::vector<int> fds,
                                         Nanoseconds limit) {
  RunnerOutcome out;
  const auto start = Clock::now();
  CG_TRY(Answer answer, ask(ctx, body, std::move(fds), limit));
  CG_TRY(out, outcome_of(answer));
  out.elapsed = Clock::now() - start;
  return out;
}

Result<RunnerOutcome> Runner::outcome_of(const Answer& answer) {
  RunnerOutcome out;
  if (!answer.alive) {
    out.kind = answer.hung ? RunnerOutcome::Kind::hung : RunnerOutcome::Kind::died;
    out.text = answer.death;
    return out;
  }
  if (answer.is_error) {  // the device refused a launch of the program
    bool unsupported = answer.error.kind == ErrorKind::unsupported;
    if (!unsupported && answer.error.kind != ErrorKind::user) {
      stop();  // the device may be broken, so the next call starts a new runner
      return fail(answer.error);
    }
    out.report.status =
        unsupported ? device::RunReport::Status::unsupported : device::RunReport::Status::finding;
    out.report.message = answer.error.text();
    return out;
  }
  CG_TRY(device::Ran ran, read_json<device::Ran>(answer.body));
  out.report = std::move(ran.report);
  if (out.report.device_lost) {
    stop();
    (void)take_spare();  // without a spare, the next run starts a runner
  }
  return out;
}

}  // namespace cutegen::eval
