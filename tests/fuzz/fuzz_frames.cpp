// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as the body of a frame from the torch worker or the runner, or as an
// event of the journal. If a reader accepts a value, it also accepts the written form of the value,
// and writes it in the same form again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/json.h"
#include "core/candidate.h"
#include "core/task.h"
#include "core/testing/test_task.h"
#include "core/verdict.h"
#include "device/codec.h"
#include "torch/protocol.h"

namespace {

using namespace cutegen;

template <class T>
void round_trip(const Json& json) {
  Result<T> value = read_json<T>(json);
  if (!value) return;
  Json written = to_json(*value);
  Result<T> again = read_json<T>(written);
  if (!again || canonical_json(to_json(*again)) != canonical_json(written)) std::abort();
}

// A list of steps has no fields, so round_trip() cannot read it.
void round_trip_steps(const Json& json) {
  auto steps = device::plan_steps_from_json(json);
  if (!steps) return;
  Json written = device::to_json(*steps);
  auto again = device::plan_steps_from_json(written);
  if (!again || device::to_json(*again) != written) std::abort();
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
  round_trip<Task>(*json);
  round_trip<Graph>(*json);
  round_trip<KernelProgram>(*json);
  round_trip<Candidate>(*json);
  round_trip<Event>(*json);
  round_trip<Verdict>(*json);
  round_trip<Profile>(*json);
  round_trip_steps(*json);
  round_trip<ModuleFacts>(*json);
  round_trip<device::RunSettings>(*json);
  round_trip<device::RunReport>(*json);
  read_set(*json);
  return 0;
}
