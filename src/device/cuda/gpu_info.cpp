// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/gpu_info.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <charconv>

#include "base/text.h"

namespace cutegen::device::cuda {
namespace {

// The driver's numbers of device attributes.
enum Attribute {
  kMaxThreadsPerBlock = 1,
  kMaxGridX = 5,
  kMaxGridY = 6,
  kSms = 16,
  kL2Bytes = 38,
  kMaxThreadsPerSm = 39,
  kMajor = 75,
  kMinor = 76,
  kSharedPerSm = 81,
  kSharedOptIn = 97,
  kVirtualMemory = 102,
  kMaxBlocksPerSm = 106,
};

std::string uuid_text(const Uuid& uuid) {
  std::string out = "GPU-";
  for (int i = 0; i < 16; ++i)
    out += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid.bytes[i]);
  return out;
}

// "sm_90a": includes the instructions that only this architecture has.
std::string arch_of(int major, int minor) {
  return fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : "");
}

Result<Found> describe(const Driver& d, int index) {
  Found out;
  CG_CHECK(d.check(d.device_get(&out.device, index), "opening the GPU"));
  Status status = kOk;
  auto get = [&](Attribute a) {
    int value = 0;
    if (Status s = d.device_attribute(&value, a, out.device); s != kOk) status = s;
    return value;
  };
  DeviceFacts& f = out.facts;
  f.name = fmt::format("cuda:{}", index);
  f.arch = arch_of(get(kMajor), get(kMinor));
  f.sms = get(kSms), f.max_threads_per_block = get(kMaxThreadsPerBlock);
  f.max_shared_bytes = get(kSharedOptIn), f.max_grid_x = get(kMaxGridX);
  f.max_grid_yz = get(kMaxGridY), f.max_threads_per_sm = get(kMaxThreadsPerSm);
  f.max_blocks_per_sm = get(kMaxBlocksPerSm), f.shared_bytes_per_sm = get(kSharedPerSm);
  out.identity.l2_bytes = get(kL2Bytes);
  bool virtual_memory = get(kVirtualMemory) != 0;
  char name[256] = {};
  Uuid uuid{};
  size_t memory = 0;
  CG_CHECK(d.check(status, "reading the GPU's attributes"));
  CG_CHECK(d.check(d.device_name(name, sizeof name - 1, out.device), "reading the GPU's name"));
  CG_CHECK(d.check(d.device_memory(&memory, out.device), "reading the GPU's memory size"));
  CG_CHECK(d.check(d.device_uuid(&uuid, out.device), "reading the GPU's UUID"));
  CG_CHECK(d.check(d.version(&out.identity.cuda_version), "reading the driver's version"));
  out.identity.gpu = sanitize(name, 200), out.identity.uuid = uuid_text(uuid);
  out.identity.memory_bytes = int64_t(memory);
  if (!virtual_memory)
    return world_error(out.identity.gpu + " cannot map memory by pages, which guards need",
                       "use another GPU");
  return out;
}

Result<int> count_of(const Driver& d) {
  Status started = d.init(0);
  int count = 0;
  if (started == kOk) started = d.device_count(&count);
  if (started == kNoDevice)
    count = 0;
  else
    CG_CHECK(d.check(started, "starting the GPU's driver"));
  if (count == 0)
    return world_error("the driver is installed, but shows no GPU",
                       "look at nvidia-smi and CUDA_VISIBLE_DEVICES, or use --device sim:h200");
  return count;
}

}  // namespace

Result<Found> find_device(const Driver& driver, const DeviceName& name) {
  CG_TRY(int count, count_of(driver));
  if (name.index >= count)
    return world_error(fmt::format("there is no {}: the driver shows {} GPU{}", name.text(), count,
                                   count == 1 ? "" : "s"),
                       fmt::format("use cuda:{}", count - 1));
  return describe(driver, name.index);
}

Result<std::vector<Found>> list_devices() {
  CG_TRY(const Driver* driver, load_driver());
  CG_TRY(int count, count_of(*driver));
  std::vector<Found> out;
  for (int i = 0; i < count; ++i) {
    CG_TRY(Found one, describe(*driver, i));
    out.push_back(std::move(one));
  }
  return out;
}

template <class F>
F Watch::function(const char* name) const {
  return library_ ? reinterpret_cast<F>(::dlsym(library_, name)) : nullptr;
}

Watch::Watch(const std::string& uuid) : library_(open_library("libnvidia-ml.so.1").library) {
  auto* init = function<int (*)()>("nvmlInit_v2");
  auto* find = function<int (*)(const char*, void**)>("nvmlDeviceGetHandleByUUID");
  if (!init || !find || init() != 0) {
    library_ = nullptr;
    return;
  }
  if (find(uuid.c_str(), &device_) != 0) device_ = nullptr;
}

std::map<std::string, double> Watch::read() const {
  std::map<std::string, double> out;
  if (!device_) return out;
  using Clock = int (*)(void*, int, unsigned*);
  unsigned value = 0;
  unsigned long long reasons = 0;
  constexpr int kSmClock = 1, kMemoryClock = 2, kGpuSensor = 0;
  if (auto* f = function<Clock>("nvmlDeviceGetClockInfo"); f && f(device_, kSmClock, &value) == 0)
    out["sm_clock_hz"] = value * 1e6;
  if (auto* f = function<Clock>("nvmlDeviceGetClockInfo");
      f && f(device_, kMemoryClock, &value) == 0)
    out["memory_clock_hz"] = value * 1e6;
  if (auto* f = function<Clock>("nvmlDeviceGetMaxClockInfo");
      f && f(device_, kSmClock, &value) == 0)
    out["sm_clock_most_hz"] = value * 1e6;
  if (auto* f = function<Clock>("nvmlDeviceGetTemperature");
      f && f(device_, kGpuSensor, &value) == 0)
    out["temperature_c"] = value;
  if (auto* f = function<int (*)(void*, unsigned*)>("nvmlDeviceGetPowerUsage");
      f && f(device_, &value) == 0)
    out["power_w"] = value / 1e3;
  if (auto* f = function<int (*)(void*, unsigned long long*)>(
          "nvmlDeviceGetCurrentClocksThrottleReasons");
      f && f(device_, &reasons) == 0)
    out["throttle_reasons"] = double(reasons);
  return out;
}

std::string Watch::driver_version() const {
  char text[96] = {};
  auto* f = function<int (*)(char*, unsigned)>("nvmlSystemGetDriverVersion");
  if (!f || f(text, sizeof text - 1) != 0) return {};
  return sanitize(text, sizeof text);
}

}  // namespace cutegen::device::cuda
