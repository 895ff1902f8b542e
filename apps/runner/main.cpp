// SPDX-License-Identifier: Apache-2.0
// cutegen-runner: runs one candidate at a time on one device, for the evaluator at descriptor 3.
//
// Requests (schema cutegen.runner.v1): open, load, share and run; then time, read and release, for
// the buffers that a run kept (docs/evaluation.md). The process ends when the evaluator does. Its
// replies do not decide a verdict, because the evaluator judges outputs in the shared memory.
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "device/buffers.h"
#include "device/codec.h"
#include "device/device.h"
#include "runner/memory.h"
#include "sandbox/sandbox.h"
#include "wire/channel.h"

namespace cutegen::runner {
namespace {

constexpr const char* kSchema = "cutegen.runner.v1";

class Runner {
 public:
  Result<Json> handle(wire::Frame& frame) {
    auto schema = frame.body.find("schema"), type = frame.body.find("type");
    if (schema == frame.body.end() || *schema != kSchema || type == frame.body.end())
      return world_error("a request of another protocol reached the runner");
    if (*type == "open") return open(frame.body);
    if (!device_) return world_error("no device is open");
    if (*type == "load") return load(frame);
    if (*type == "share") return share(frame);
    if (*type == "run") return run(frame);
    if (*type == "time") return time(frame.body);
    if (*type == "read") return read(frame.body);
    if (*type == "release") return release();
    return world_error("the runner does not know this request");
  }
  // True after a fatal error: the evaluator must start a fresh process.
  bool lost() const { return lost_; }

 private:
  Result<Json> open(const Json& body) {
    ObjectReader r(body, "open#");
    CG_TRY(std::string text, r.string("device"));
    CG_TRY(DeviceName name, DeviceName::parse(text));
    CG_TRY(bool profiled, r.boolean_or("profiled", false));
    CG_TRY(device_, device::open_device(name));
    // A GPU's driver opens its device files for writing only before this point. A profiler's
    // libraries also do so later.
    sandbox::Grade locked{.label = Protection::full};
    if (profiled)
      locked = {.label = Protection::none, .missing = "a profiler opens the GPU's devices later"};
    else if (name.is_gpu())
      locked = sandbox::harden_self({}, {.no_network = true, .seccomp = true, .deny_open = true});
    return Json{{"schema", kSchema},
                {"locked", locked.label == Protection::full},
                {"missing", locked.missing},
                {"type", "opened"},
                {"facts", device::to_json(device_->facts())},
                {"identity", device::to_json(device_->identity())}};
  }

  Result<Json> load(const wire::Frame& frame) {
    ObjectReader r(frame.body, "load#");
    CG_TRY(Json sizes, r.array("bytes"));
    CG_TRY(Json code_sizes, r.array_or_empty("code_bytes"));
    if (frame.fds.empty()) return world_error("modules came without memory");
    size_t total = 0;
    for (const Json& list : {sizes, code_sizes})
      for (const Json& n : list) {
        if (!n.is_number_unsigned() || n.get<size_t>() > (size_t{256} << 20))
          return world_error("a module has no sensible size");
        total += n.get<size_t>();
      }
    CG_TRY(Mapping text, Mapping::map(frame.fds[0].get(), total, false));
    size_t at = 0;
    auto cut = [&](const Json& list) {
      std::vector<std::string> out;
      for (const Json& n : list) {
        out.emplace_back(reinterpret_cast<const char*>(text.data()) + at, n.get<size_t>());
        at += n.get<size_t>();
      }
      return out;
    };
    const std::vector<std::string> modules = cut(sizes), code = cut(code_sizes);
    CG_TRY(auto facts, device_->load(modules, code));
    Json list = Json::array();
    for (const ModuleFacts& f : facts) list.push_back(device::to_json(f));
    return Json{{"schema", kSchema}, {"type", "loaded"}, {"facts", std::move(list)}};
  }

  // Collects the memory of the next run. This takes several requests, because a frame carries few
  // descriptors.
  Result<Json> share(wire::Frame& frame) {
    ObjectReader r(frame.body, "share#");
    CG_TRY(bool first, r.boolean("first"));
    CG_TRY(Json buffers, r.array("buffers"));
    if (first) shared_.clear();
    CG_TRY(auto more, handed_over(buffers, std::move(frame.fds)));
    for (HandedOver& one : more) shared_.push_back(std::move(one));
    return Json{{"schema", kSchema}, {"type", "shared"}};
  }

  Result<Json> run(const wire::Frame& frame) {
    std::vector<HandedOver> shared = std::move(shared_);
    shared_.clear();
    ObjectReader r(frame.body, "run#");
    CG_TRY(Json buffers, r.array("buffers"));
    CG_TRY(Json steps_json, r.object("plan"));
    CG_TRY(Json settings_json, r.object("settings"));
    CG_TRY(device::PlanSteps steps, device::plan_steps_from_json(steps_json));
    CG_TRY(device::RunSettings settings, read_json<device::RunSettings>(settings_json));
    CG_TRY(bool keep, r.boolean_or("keep", false));
    if (kept_) CG_CHECK(device_->bind({}));
    kept_.reset();
    CG_TRY(RunMemory memory, RunMemory::map(buffers, frame.fds, std::move(shared)));
    CG_CHECK(device_->bind(memory.bindings()));
    auto report = device_->run(Context(), steps, settings);
    lost_ = report ? report->device_lost : report.error().kind == ErrorKind::world;
    if (keep && report && !lost_)
      kept_.emplace(std::move(memory));
    else if (!lost_)
      CG_CHECK(device_->bind({}));  // `memory` ends with this call
    if (!report) return fail(report.error());
    return Json{{"schema", kSchema}, {"type", "ran"}, {"report", device::to_json(*report)}};
  }

  Result<Json> release() {
    if (kept_) CG_CHECK(device_->bind({}));
    kept_.reset();
    return Json{{"schema", kSchema}, {"type", "released"}};
  }

  Result<Json> time(const Json& body) {
    ObjectReader r(body, "time#");
    CG_TRY(Json request_json, r.object("request"));
    CG_TRY(device::TimeRequest request, read_json<device::TimeRequest>(request_json));
    if (!kept_) return world_error("no run has kept its buffers");
    auto report = device_->time(Context(), request);
    lost_ = report ? report->device_lost : report.error().kind == ErrorKind::world;
    if (!report) return fail(report.error());
    return Json{{"schema", kSchema}, {"type", "timed"}, {"report", device::to_json(*report)}};
  }

  // Copies parts of large buffers into the shared memory.
  Result<Json> read(const Json& body) {
    ObjectReader r(body, "read#");
    CG_TRY(Json probes, r.array("probes"));
    if (!kept_) return world_error("no run has kept its buffers");
    CG_TRY(auto wanted, read_json<std::vector<device::Probe>>(probes, "probes#"));
    for (const device::Probe& p : wanted) {
      CG_TRY(auto out, kept_->part(p.at, p.bytes));
      CG_CHECK(device_->read(p.buffer, p.offset, out));
    }
    return Json{{"schema", kSchema}, {"type", "read"}};
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
