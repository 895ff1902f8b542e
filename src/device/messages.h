// SPDX-License-Identifier: Apache-2.0
// The messages between the evaluator and the runner (schema cutegen.runner.v1).
//
// Contract: the evaluator writes a call and reads its reply; the runner reads the call and writes
// the reply. Both use the one list of fields of the message. Errors are {"error": ...} instead
// (wire/channel.h). Descriptors travel beside the message: load has the memory with the texts of
// the modules, share has one descriptor per buffer, run has the shared memory and the ring.
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
// The type of a call; an error if its schema is another one, or if no call has this name.
Result<CallType> call_type(const Json& call);

struct OpenCall {
  DeviceName device;
  bool profiled = false;  // a profiler has started the runner
};
struct Opened {
  bool locked = false;  // the runner has installed its filter of system calls
  std::string missing;  // why not
  DeviceFacts facts;
  DeviceIdentity identity;
};

struct LoadCall {
  std::vector<uint64_t> bytes,
      code_bytes;  // sizes of each module's PTX and of its machine code
};
struct Loaded {
  std::vector<ModuleFacts> facts;
};

// The memory of the next run, in several calls if a frame cannot carry all descriptors.
struct ShareCall {
  bool first = false;
  std::vector<SharedBuffer> buffers;
};
struct Shared {};

struct RunCall {
  std::vector<RunBuffer> buffers;
  PlanSteps steps;
  RunSettings settings;
  bool keep = false;  // keep the buffers for time and read
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
