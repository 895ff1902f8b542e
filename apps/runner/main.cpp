// SPDX-License-Identifier: Apache-2.0
// cutegen-runner: runs one candidate at a time on one device, for the evaluator at descriptor 3.
//
// Requests (schema cutegen.runner.v1): open, load, share and run; then time, read and release, for
// the buffers that a run kept (docs/protocols.md). The process ends when the evaluator does. Its
// replies do not decide a verdict, because the evaluator judges outputs in the shared memory.
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/messages.h"
#include "runner/memory.h"
#include "sandbox/sandbox.h"
#include "wire/channel.h"

namespace cutegen::runner {
namespace {

class Runner {
 public:
  Result<Json> handle(wire::Frame& frame) {
    using device::CallType;
    CG_TRY(CallType type, device::call_type(frame.body));
    if (type == CallType::open) return answer(frame, &Runner::open);
    if (!device_) return world_error("no device is open");
    switch (type) {
      case CallType::load:
        return answer(frame, &Runner::load);
      case CallType::share:
        return answer(frame, &Runner::share);
      case CallType::run:
        return answer(frame, &Runner::run);
      case CallType::time:
        return answer(frame, &Runner::time);
      case CallType::read:
        return answer(frame, &Runner::read);
      default:
        return answer(frame, &Runner::release);
    }
  }
  // True after a fatal error: the evaluator must start a fresh process.
  bool lost() const { return lost_; }

 private:
  using Descriptors = std::vector<UniqueFd>;

  // Reads the call, and writes the reply.
  template <class Call, class Reply>
  Result<Json> answer(wire::Frame& frame,
                      Result<Reply> (Runner::*work)(const Call&, Descriptors&&)) {
    CG_TRY(Call call, read_json<Call>(frame.body));
    CG_TRY(Reply reply, (this->*work)(call, std::move(frame.fds)));
    return device::to_json(reply);
  }

  Result<device::Opened> open(const device::OpenCall& call, Descriptors&&) {
    CG_TRY(device_, device::open_device(call.device));
    // A GPU's driver opens its device files for writing only before this point. A profiler's
    // libraries also do so later.
    sandbox::Grade locked{.label = Protection::full};
    if (call.profiled)
      locked = {.label = Protection::none, .missing = "a profiler opens the GPU's devices later"};
    else if (call.device.is_gpu())
      locked = sandbox::harden_self({}, {.no_network = true, .seccomp = true, .deny_open = true});
    return device::Opened{.locked = locked.label == Protection::full,
                          .missing = locked.missing,
                          .facts = device_->facts(),
                          .identity = device_->identity()};
  }

  Result<device::Loaded> load(const device::LoadCall& call, Descriptors&& fds) {
    if (fds.empty()) return world_error("modules came without memory");
    size_t total = 0;
    for (const auto* list : {&call.bytes, &call.code_bytes})
      for (uint64_t bytes : *list) total += bytes;
    CG_TRY(Mapping text, Mapping::map(fds[0].get(), total, false));
    size_t at = 0;
    auto cut = [&](const std::vector<uint64_t>& sizes) {
      std::vector<std::string> out;
      for (uint64_t bytes : sizes) {
        out.emplace_back(reinterpret_cast<const char*>(text.data()) + at, bytes);
        at += bytes;
      }
      return out;
    };
    const std::vector<std::string> modules = cut(call.bytes), code = cut(call.code_bytes);
    device::Loaded out;
    CG_TRY(out.facts, device_->load(modules, code));
    return out;
  }

  // Collects the memory of the next run. This takes several requests, because a frame carries few
  // descriptors.
  Result<device::Shared> share(const device::ShareCall& call, Descriptors&& fds) {
    if (call.first) shared_.clear();
    CG_TRY(auto more, handed_over(call.buffers, std::move(fds)));
    for (HandedOver& one : more) shared_.push_back(std::move(one));
    return device::Shared{};
  }

  Result<device::Ran> run(const device::RunCall& call, Descriptors&& fds) {
    std::vector<HandedOver> shared = std::move(shared_);
    shared_.clear();
    if (kept_) CG_CHECK(device_->bind({}));
    kept_.reset();
    CG_TRY(RunMemory memory, RunMemory::map(call.buffers, fds, std::move(shared)));
    CG_CHECK(device_->bind(memory.bindings()));
    auto report = device_->run(Context(), call.steps, call.settings);
    lost_ = report ? report->device_lost : report.error().kind == ErrorKind::world;
    if (call.keep && report && !lost_)
      kept_.emplace(std::move(memory));
    else if (!lost_)
      CG_CHECK(device_->bind({}));  // `memory` ends with this call
    if (!report) return fail(report.error());
    return device::Ran{.report = std::move(*report)};
  }

  Result<device::Released> release(const device::ReleaseCall&, Descriptors&&) {
    if (kept_) CG_CHECK(device_->bind({}));
    kept_.reset();
    return device::Released{};
  }

  Result<device::Ran> time(const device::TimeCall& call, Descriptors&&) {
    if (!kept_) return world_error("no run has kept its buffers");
    auto report = device_->time(Context(), call.request);
    lost_ = report ? report->device_lost : report.error().kind == ErrorKind::world;
    if (!report) return fail(report.error());
    return device::Ran{.type = device::ReportType::timed, .report = std::move(*report)};
  }

  // Copies parts of large buffers into the shared memory.
  Result<device::HasRead> read(const device::ReadCall& call, Descriptors&&) {
    if (!kept_) return world_error("no run has kept its buffers");
    for (const device::Probe& p : call.probes) {
      CG_TRY(auto out, kept_->part(p.at, p.bytes));
      CG_CHECK(device_->read(p.buffer, p.offset, out));
    }
    return device::HasRead{};
  }

  std::optional<RunMemory> kept_;  // must outlive the device, which is bound to it
  std::unique_ptr<device::Device> device_;
  std::vector<HandedOver> shared_;
  bool lost_ = false;
};

int serve() {
  wire::Channel channel{UniqueFd(3)};
  Runner runner;
  Context forever;
  for (;;) {
    auto frame = channel.receive(forever);
    if (!frame) return kExitOk;  // the evaluator is gone
    auto reply = runner.handle(*frame);
    auto sent = reply ? channel.send(forever, *reply) : channel.send_error(forever, reply.error());
    if (!sent || runner.lost()) return kExitOk;
  }
}

}  // namespace
}  // namespace cutegen::runner

int main(int argc, char**) {
  if (argc > 1) {
    std::fputs("cutegen-runner is started by cutegen-evaluator; it takes no arguments\n", stderr);
    return cutegen::kExitUser;
  }
  return cutegen::runner::serve();
}
