// SPDX-License-Identifier: Apache-2.0
// What workers say: the bodies of frames from the torch worker, the runner and the journal. What a
// reader accepts is written back as something that it accepts again, in the same form.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/json.h"
#include "core/candidate.h"
#include "core/task.h"
#include "core/test_task.h"
#include "core/verdict.h"
#include "device/codec.h"
#include "torch/protocol.h"

namespace {

using namespace cutegen;

template <class T, class Decode>
void round_trip(const Json& json, Decode decode) {
  using cutegen::to_json;
  using device::to_json;
  Result<T> value = decode(json);
  if (!value) return;
  Json written = to_json(*value);
  Result<T> again = decode(written);
  if (!again || canonical_json(to_json(*again)) != canonical_json(written)) std::abort();
}

// Every slot of an accepted set lies inside its memory.
void read_set(const Json& json) {
  static const Task task = test_task();
  for (const ShapeCase& shape : task.shapes) {
    auto set = torch::set_from_json(json, task, shape);
    if (!set) continue;
    for (const torch::TensorSlot& slot : set->slots)
      if (slot.offset > set->bytes || slot.bytes > set->bytes - slot.offset) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto json = parse_json({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!json) return 0;
  round_trip<Task>(*json, task_from_json);
  round_trip<Graph>(*json, graph_from_json);
  round_trip<KernelProgram>(*json, program_from_json);
  round_trip<Candidate>(*json, candidate_from_json);
  round_trip<Event>(*json, event_from_json);
  round_trip<Verdict>(*json, verdict_from_json);
  round_trip<Profile>(*json, profile_from_json);
  round_trip<device::PlanSteps>(*json, device::plan_steps_from_json);
  round_trip<ModuleFacts>(*json, device::module_facts_from_json);
  round_trip<device::RunSettings>(*json, device::run_settings_from_json);
  round_trip<device::RunReport>(*json, device::run_report_from_json);
  read_set(*json);
  return 0;
}
