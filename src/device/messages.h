// SPDX-License-Identifier: Apache-2.0
// The messages between the evaluator and the runner, the sandboxed process that executes programs
// (schema cutegen.runner.v1).
//
// Contract: the evaluator sends a call, and the runner sends a reply. Evaluator and runner use the
// same fields() function for a message. If a call fails, the reply is {"error": ...}
// (wire/channel.h). Some calls carry file descriptors: `load` carries the memory with the texts of
// the modules, `share` carries one descriptor per buffer, and `run` carries the shared memory and a
// small memory file, which the runner maps repeatedly to fill large writable buffers.
//
// Example: CG_TRY(auto call, read_json<device::LoadCall>(frame.body));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"
#include "device/buffers.h"
#include "device/codec.h"

namespace cutegen::device {

enum class CallType { open, load, share, run, time, read, release };
Names<CallType> enum_names(CallType);
// Returns the type of a call, or an error if the schema differs or the type is unknown.
Result<CallType> call_type(const Json& call);

struct OpenCall {
  DeviceName device;
  bool profiled = false;  // a profiler has started the runner
};
struct Opened {
  bool locked = false;  // the runner has installed its seccomp filter
  std::string missing;  // why not
  DeviceFacts facts;
  DeviceIdentity identity;
};

struct LoadCall {
  // The numbers of bytes of each module's PTX, and of its machine code.
  std::vector<uint64_t> bytes, code_bytes;
};
struct Loaded {
  std::vector<ModuleFacts> facts;
};

// Passes the shared GPU buffers of the next run. The evaluator sends several ShareCalls if one
// message cannot carry all descriptors.
struct ShareCall {
  bool first = false;
  std::vector<SharedBuffer> buffers;
};
struct Shared {};

struct RunCall {
  std::vector<RunBuffer> buffers;
  PlanSteps steps;
  RunSettings settings;
  bool keep = false;  // whether later `time` and `read` calls use the buffers
};
struct TimeCall {
  TimeRequest request;
};
// The reply to a `run` or `time` call.
enum class ReportType { ran, timed };
Names<ReportType> enum_names(ReportType);
struct Ran {
  ReportType type = ReportType::ran;
  RunReport report;
};

struct ReadCall {
  std::vector<Probe> probes;
};
struct HasRead {};

struct ReleaseCall {};
struct Released {};

void fields(Fields& v, OpenCall& call);
void fields(Fields& v, Opened& reply);
void fields(Fields& v, LoadCall& call);
void fields(Fields& v, Loaded& reply);
void fields(Fields& v, ShareCall& call);
void fields(Fields& v, Shared& reply);
void fields(Fields& v, RunCall& call);
void fields(Fields& v, TimeCall& call);
void fields(Fields& v, Ran& reply);
void fields(Fields& v, ReadCall& call);
void fields(Fields& v, HasRead& reply);
void fields(Fields& v, ReleaseCall& call);
void fields(Fields& v, Released& reply);

}  // namespace cutegen::device
