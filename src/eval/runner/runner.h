// SPDX-License-Identifier: Apache-2.0
// Runner: the evaluator's handle on the sandboxed process that executes candidates.
//
// Contract: there is one process at a time. It starts at first use. If it dies, a new one starts
// and loads the latest modules. load() and run() return an Error only for cutegen's own failures or
// a cancelled Context. A death or hang of the process is part of the outcome, because a candidate
// may cause it; the evaluator kills a runner that hangs. The evaluator does not trust the process's
// reports: it judges the values in shared memory itself. With `spare` (on a GPU, because creating
// its context takes long), the next process starts ahead, and an old one ends in the background;
// settle() waits for both. With `around`, a profiler starts the process in a sandbox without the
// filter of system calls, because the profiler's libraries open the GPU's devices again later;
// finish() waits until both end.
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
  int64_t memory_bytes = int64_t{8} << 30;  // limit of address space, without large buffers
  bool spare = false;
  std::vector<std::string> around = {};  // a profiler's command; the runner's command is appended
  // With `around`: the profiler gets this descriptor as number 4.
  int log = -1;
  std::vector<std::string> readable = {};  // paths below /tmp that the profiler needs
  // Keep root's capabilities, because the driver may require them for counters.
  bool keep_capabilities = false;
  bool bare = false;  // use no namespaces, for a profiler that fails in them
};

using device::Probe, device::RunBuffer, device::SharedBuffer;

struct RunRequest {
  std::vector<RunBuffer> buffers;
  std::vector<SharedBuffer> shared;
  int memory = -1, ring = -1;  // descriptors
  device::PlanSteps steps;
  device::RunSettings settings;
  bool keep = false;  // keep the buffers for time() and read() until the next run
  Nanoseconds limit = std::chrono::seconds(60);
};

struct RunnerOutcome {
  enum class Kind { reported, died, hung } kind = Kind::reported;
  device::RunReport report;
  std::string text;        // how it died, or how long it hung
  Nanoseconds elapsed{0};  // time from the request to the reply, by this process's clock
};

struct LoadOutcome {
  bool ok = false, died = false;
  std::vector<ModuleFacts> facts;
  Error error;  // why the device refuses the modules
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
  // Times the buffers that the last run kept. The outcome is `died` if the process has ended since.
  Result<RunnerOutcome> time(const Context& ctx, const device::TimeRequest& request,
                             Nanoseconds limit);
  Result<void> read(const Context& ctx, const std::vector<Probe>& probes);
  // Whether other work slowed the last timed runs down. Stays valid when the process restarts.
  const QuietMemory& memory() const { return memory_; }
  // Frees what the last run kept, so that the next program's sets have the GPU's memory.
  void release();
  const sandbox::Grade& grade() const { return process_.grade; }
  // What the process reported at its start, before it saw any program.
  const DeviceFacts& facts() const { return process_.facts; }
  const device::DeviceIdentity& identity() const { return process_.identity; }
  // Starts the process if it is not running.
  Result<void> ready(const Context& ctx);
  // Sets the address space for large buffers, from the next start on.
  void allow_addresses(int64_t bytes) { large_bytes_ = bytes; }
  void stop();
  // Tells the process that no more work comes and waits until it ends. After `limit`, kills it and
  // returns an error.
  Result<sandbox::ExitStatus> finish(const Context& ctx, Nanoseconds limit);
  // Waits a few seconds at most until no process is starting or ending in the background.
  void settle(const Context& ctx);
  // Time spent waiting for the process since the last call.
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
  // A process that has opened its device.
  Result<Process> make(const Context& ctx, const sandbox::SpawnSpec& spec) const;
  Result<void> open(const Json& reply, Process& process) const;
  void start_spare();
  bool take_spare();
  Result<Answer> ask(const Context& ctx, const Json& body, std::vector<int> fds, Nanoseconds limit);
  Result<RunnerOutcome> ask_to_run(const Context& ctx, const Json& body, std::vector<int> fds,
                                   Nanoseconds limit);
  // Sends the shared buffers to the process; returns an answer only on failure.
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
  bool no_spares_ = false;  // no spare could start, perhaps because the GPU allows one context only
  std::vector<std::future<void>> ending_;
  std::vector<std::string> modules_, code_;
  bool loaded_ = false, keeps_ = false;
  Nanoseconds waited_{0};
};

}  // namespace cutegen::eval
