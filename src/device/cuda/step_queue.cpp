// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/step_queue.h"

#include <fmt/format.h>

#include <cstring>
#include <thread>

#include "base/text.h"
#include "device/cuda/tensor_map.h"
#include "device/fill.h"

namespace cutegen::device::cuda {
namespace {

constexpr int kNonPortableCluster = 14;                      // attributes of a function
constexpr int kCooperative = 2, kCluster = 4, kOverlap = 6;  // attributes of a launch
constexpr int64_t kPortableCluster = 8;
// Polls without sleep at first, because the host may sleep for longer than asked.
constexpr auto kQueueSpin = std::chrono::milliseconds(2);

// Describes the kernel's fault as the simulator would. Empty if a kernel cannot cause the status.
std::string fault_of(Status status) {
  switch (status) {
    case kIllegalAddress:
      return "out_of_bounds: a load or store outside every buffer, or a store to an input";
    case kMisaligned:
      return "misaligned: an address that is not a multiple of the access's size";
    case kIllegalInstruction:
      return "trap: an illegal instruction, or __trap()";
    case kInvalidAddressSpace:
      return "address_space: a generic address in the wrong address space";
    case kInvalidPc:
      return "bad_jump: a jump to an address without an instruction";
    case kStackError:
      return "stack: a corrupt or overflowing stack";
    case kAssert:
      return "assertion: a device assert failed";
    case kLaunchFailed:
      return "fault: the kernel failed, perhaps in shared or local memory";
    case kLaunchTimeout:
      return "timeout: the driver ended the kernel";
    default:
      return {};
  }
}

// Whether the device refused the launch: nothing ran, and the context stays usable.
bool refuses_launch(Status status) {
  return status == kInvalidValue || status == kOutOfResources || status == kCooperativeTooLarge ||
         status == kInvalidCluster;
}

std::string where_of(const std::variant<Launch, Fill>& step) {
  return "step " + sanitize(std::visit([](const auto& s) { return s.step; }, step), 80);
}

}  // namespace

std::string name_of(const std::variant<Launch, Fill>& step) {
  if (const auto* launch = std::get_if<Launch>(&step)) return launch->kernel;
  return "fill " + std::get<Fill>(step).buffer;
}

Result<void> StepQueue::prepare() {
  constexpr unsigned kDefault = 0;
  CG_CHECK(driver_.check(driver_.stream_create(&stream_, kDefault), "making a stream"));
  CG_CHECK(driver_.check(driver_.event_create(&begin_, kDefault), "making an event"));
  return driver_.check(driver_.event_create(&end_, kDefault), "making an event");
}

void StepQueue::close() {
  for (Handle e : {begin_, end_})
    if (e) driver_.event_destroy(e);
  if (stream_) driver_.stream_destroy(stream_);
}

Result<Status> StepQueue::wait(const Context& ctx, Nanoseconds limit) {
  const auto start = Clock::now();
  for (;;) {
    Status s = driver_.stream_query(stream_);
    if (s != kNotReady) return s;
    const auto waited = Clock::now() - start;
    if (waited > limit) return kNotReady;
    if (ctx.done()) {
      lost_ = true;
      CG_CHECK(ctx.check("waiting for the GPU"));
    }
    if (waited > kQueueSpin) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

Result<Status> StepQueue::queue_launch(const Launch& step, bool first) {
  const std::string where = "step " + sanitize(step.step, 80);
  CG_TRY(Handle function, modules_.function(step.module, step.kernel));
  std::vector<std::vector<std::byte>> values;
  std::vector<TensorMap> maps(step.args.size());  // never resized: `pointers` refers to elements
  std::vector<void*> pointers;
  values.reserve(step.args.size());
  for (size_t i = 0; i < step.args.size(); ++i) {
    const LaunchArg& arg = step.args[i];
    values.push_back(arg.bytes);
    if (!arg.buffer.empty()) {
      CG_TRY(const PlacedBuffer* b, buffers_.find(arg.buffer, step.step));
      if (!arg.bytes.empty()) {
        CG_TRY(maps[i], encode_map(driver_, arg.bytes, b->at, where));
        pointers.push_back(&maps[i]);
        continue;
      }
      values.back().resize(sizeof b->at);
      std::memcpy(values.back().data(), &b->at, sizeof b->at);
    }
    pointers.push_back(values.back().data());
  }
  // The driver takes up to 48 KiB without this, but static shared memory counts as well.
  if (step.shared_bytes > 0)
    if (Status s = driver_.function_set(function, kDynamicShared, int(step.shared_bytes)); s != kOk)
      return s;
  LaunchAttribute attributes[3];
  unsigned count = 0;
  const int64_t cluster = step.cluster[0] * step.cluster[1] * step.cluster[2];
  if (cluster > 1) {
    if (cluster > kPortableCluster)
      if (Status s = driver_.function_set(function, kNonPortableCluster, 1); s != kOk) return s;
    attributes[count].id = kCluster;
    for (size_t i = 0; i < 3; ++i) attributes[count].value.dims[i] = unsigned(step.cluster[i]);
    ++count;
  }
  for (auto [wanted, id] :
       {std::pair(step.cooperative, kCooperative), std::pair(step.pdl && !first, kOverlap)}) {
    if (!wanted) continue;
    attributes[count].id = id;
    attributes[count++].value.number = 1;
  }
  LaunchSettings settings{};
  for (size_t i = 0; i < 3; ++i)
    settings.grid[i] = unsigned(step.grid[i]), settings.block[i] = unsigned(step.block[i]);
  settings.shared_bytes = unsigned(step.shared_bytes);
  settings.stream = stream_;
  settings.attributes = attributes;
  settings.attribute_count = count;
  return driver_.launch(&settings, function, pointers.data(), nullptr);
}

Result<Status> StepQueue::queue_fill(const Fill& step) {
  CG_TRY(const PlacedBuffer* b, buffers_.find(step.buffer, step.step));
  if (b->read_only)
    return user_error("fill of " + sanitize(step.buffer, 80) + ", which is read-only",
                      "step " + sanitize(step.step, 80), "fill outputs and scratch only");
  std::byte bytes[8] = {};
  const size_t size = size_of(step.dtype);
  CG_CHECK(fill_bytes(std::span(bytes, size), step.dtype, step.value));
  const size_t count = b->bytes / size;
  if (count == 0) return kOk;
  uint32_t words[2];
  std::memcpy(words, bytes, sizeof words);
  if (size == 1) return driver_.set8(b->at, uint8_t(words[0]), count, stream_);
  if (size == 2) return driver_.set16(b->at, uint16_t(words[0]), count, stream_);
  if (size == 4) return driver_.set32(b->at, words[0], count, stream_);
  if (words[0] == words[1]) return driver_.set32(b->at, words[0], 2 * count, stream_);
  Status s = driver_.set_2d32(b->at, 8, words[0], 1, count, stream_);
  return s == kOk ? driver_.set_2d32(b->at + 4, 8, words[1], 1, count, stream_) : s;
}

Result<Status> StepQueue::queue(const std::variant<Launch, Fill>& step, bool first) {
  const auto* launch = std::get_if<Launch>(&step);
  CG_TRY(Status s, launch ? queue_launch(*launch, first) : queue_fill(std::get<Fill>(step)));
  if (!refuses_launch(s)) return s;
  return user_error(name_of(step) + ": the GPU does not take this launch: " + driver_.text(s),
                    where_of(step), "use fewer threads, registers, blocks or less shared memory");
}

Result<void> StepQueue::note_fault(Status status, const std::string& kernel, RunReport& report) {
  if (status == kOk) return {};
  lost_ = report.device_lost = true;
  if (status == kNotReady) {
    report.status = RunReport::Status::out_of_budget;
    report.message = sanitize(kernel + ": the kernel was still running at the time limit", 600);
    return {};
  }
  std::string fault = fault_of(status);
  if (fault.empty()) return driver_.check(status, "running " + sanitize(kernel, 80));
  report.status = RunReport::Status::finding;
  report.message = sanitize(kernel + ": " + fault, 600);
  report.detail =
      driver_.text(status) + "\nA GPU does not say where: --device sim:NAME names the instruction.";
  return {};
}

}  // namespace cutegen::device::cuda
