// SPDX-License-Identifier: Apache-2.0
// Runner: the evaluator's client of the runner process, which executes candidates in a sandbox.
//
// Contract: one runner process at a time executes candidates. The process starts at the first call.
// If the process dies, the next call starts a new process, which loads the latest modules. load()
// and run() return an Error only if cutegen itself fails or the Context is cancelled or times out.
// If the process dies or hangs, the outcome says so, because the candidate may be the cause; Runner
// kills a process that hangs. Because the evaluator does not trust the process, the evaluator
// itself compares the values in shared memory.
//
// With `spare`, the next process starts in advance and the old process ends in the background,
// because a GPU context takes long to create. settle() waits until these processes have started and
// ended. With `around`, a profiler starts the process. The sandbox then has no seccomp filter,
// because the profiler's libraries open the GPU's device files again later. finish() waits until
// profiler and process have ended.
//
// Example: CG_TRY(RunnerOutcome o, runner.run(ctx, request));
//   if (o.kind == RunnerOutcome::Kind::died) ...
#pragma once

#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/buffers.h"
#include "device/codec.h"
#include "eval/runner/quiet_memory.h"
#include "sandbox/sandbox.h"
#include "wire/channel.h"

namespace cutegen::eval {

struct RunnerOptions {
  DeviceName device;
  int threads = 0;
  bool require_sandbox = false;
  // limit of the address space, not counting large buffers
  int64_t memory_bytes = int64_t{8} << 30;
  bool spare = false;
  std::vector<std::string> around = {};  // command of a profiler that starts the runner
  // With `around`: a file descriptor that the profiler receives as number 4.
  int log = -1;
  std::vector<std::string> readable = {};  // paths below /tmp that the profiler reads
  // Keep root's capabilities, which the driver may require for reading hardware counters.
  bool keep_capabilities = false;
  bool bare = false;  // use no namespaces, for a profiler that fails in namespaces
};

using device::Probe, device::RunBuffer, device::SharedBuffer;

struct RunRequest {
  std::vector<RunBuffer> buffers;
  std::vector<SharedBuffer> shared;
  int memory = -1, ring = -1;  // descriptors of the memory files; -1: no file
  device::PlanSteps steps;
  device::RunSettings settings;
  bool keep = false;  // keep the buffers after the run, for time() and read()
  Nanoseconds limit = std::chrono::seconds(60);
};

struct RunnerOutcome {
  enum class Kind { reported, died, hung } kind = Kind::reported;
  device::RunReport report;
  std::string text;        // how the runner died, or how long the runner hung
  Nanoseconds elapsed{0};  // time from request to reply, by the evaluator's clock
};

struct LoadOutcome {
  bool ok = false, died = false;
  std::vector<ModuleFacts> facts;
  Error error;  // why the device refused the modules
};

class Runner {
 public:
  explicit Runner(RunnerOptions options) : options_(std::move(options)) {}
  virtual ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  Result<void> start(const Context& ctx);
  Result<LoadOutcome> load(const Context& ctx, const std::vector<std::string>& ptx,
                           const std::vector<std::string>& code = {});
  virtual Result<RunnerOutcome> run(const Context& ctx, const RunRequest& request);
  // Times runs with the buffers that the last run() kept. If the process has ended since then, the
  // outcome is `died`.
  Result<RunnerOutcome> time(const Context& ctx, const device::TimeRequest& request,
                             Nanoseconds limit);
  Result<void> read(const Context& ctx, const std::vector<Probe>& probes);
  // Returns the detector of other work that slows timed runs down. A restart of the process does
  // not reset the detector.
  const QuietMemory& memory() const { return memory_; }
  // Frees the buffers that the last run kept, so that the next program's input sets can use the
  // GPU's memory.
  void release();
  const sandbox::Grade& grade() const { return process_.grade; }
  // facts() and identity() return what the process reported at its start, before it loaded any
  // program.
  const DeviceFacts& facts() const { return process_.facts; }
  const device::DeviceIdentity& identity() const { return process_.identity; }
  // Starts the process if it is not running.
  Result<void> ready(const Context& ctx);
  // Sets the additional address space for large buffers, from the next start of the process on.
  void allow_addresses(int64_t bytes) { large_bytes_ = bytes; }
  void stop();
  // Closes the channel and waits until the process ends. After `limit`, kills the process and
  // returns an error.
  Result<sandbox::ExitStatus> finish(const Context& ctx, Nanoseconds limit);
  // Waits until no process starts or ends in the background, but at most a few seconds.
  void settle(const Context& ctx);
  // Returns the time spent waiting for the process since the last call of take_waited().
  Nanoseconds take_waited() { return std::exchange(waited_, Nanoseconds(0)); }

 private:
  struct Answer {
    bool alive = true, hung = false;
    Json body;
    Error error;
    bool is_error = false;
    std::string death;
  };
  struct Process {
    sandbox::Child child;
    wire::Channel channel;
    sandbox::Grade grade;
    DeviceFacts facts;
    device::DeviceIdentity identity;
  };
  // Starts a process and waits until it has opened its device.
  Result<Process> make(const Context& ctx, const sandbox::SpawnSpec& spec) const;
  Result<void> open(const Json& reply, Process& process) const;
  void start_spare();
  bool take_spare();
  Result<Answer> ask(const Context& ctx, const Json& body, std::vector<int> fds, Nanoseconds limit);
  Result<RunnerOutcome> ask_to_run(const Context& ctx, const Json& body, std::vector<int> fds,
                                   Nanoseconds limit);
  // Sends the shared buffers to the process. Returns the process's answer only after a failure.
  Result<std::optional<Answer>> hand_over(const Context& ctx,
                                          const std::vector<SharedBuffer>& shared,
                                          Nanoseconds limit);
  Result<RunnerOutcome> outcome_of(const Answer& answer);
  Result<LoadOutcome> load_once(const Context& ctx);
  sandbox::SpawnSpec spawn_spec(const std::string& program) const;
  void put_around(sandbox::SpawnSpec& spec) const;

  RunnerOptions options_;
  QuietMemory memory_;
  int64_t large_bytes_ = 0;
  Process process_;
  std::stop_source stop_spare_;
  std::future<Result<Process>> spare_;
  bool no_spares_ = false;  // whether a spare failed to start, as on a GPU that allows one context
  std::vector<std::future<void>> ending_;
  std::vector<std::string> modules_, code_;
  bool loaded_ = false, keeps_ = false;
  Nanoseconds waited_{0};
};

}  // namespace cutegen::eval
