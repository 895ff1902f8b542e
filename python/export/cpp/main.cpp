// SPDX-License-Identifier: Apache-2.0
// Runs @NAME@ on random inputs: prints the time of a call and a sum of each result.
#include "@FILE@.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

struct Tensor {
  const char* name;
  char type;  // 'f': float, 'd': double, 'h': half, 'b': bfloat16, '0': zeros
  size_t bytes;
  bool is_given, is_result;  // both: mutated
};
const Tensor kTensors[] = {
@TENSORS@};

template <class F>
F driver(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  F found = library ? reinterpret_cast<F>(dlsym(library, name)) : nullptr;
  if (!found) std::printf("there is no NVIDIA driver here\n"), std::exit(6);
  return found;
}

template <class... A>
void call(const char* name, A... arguments) {
  if (int status = driver<int (*)(A...)>(name)(arguments...)) {
    std::printf("%s fails: %d\n", name, status);
    std::exit(6);
  }
}

// Random values between -1 and 1.
std::vector<unsigned char> random_values(const Tensor& t, std::mt19937& random) {
  std::vector<unsigned char> out(t.bytes);
  std::uniform_real_distribution<float> draw(-1, 1);
  auto put = [&](auto make) {
    auto value = make();
    for (size_t at = 0; at + sizeof value <= t.bytes; at += sizeof value, value = make())
      std::memcpy(out.data() + at, &value, sizeof value);
  };
  if (t.type == 'f') put([&] { return draw(random); });
  if (t.type == 'd') put([&] { return static_cast<double>(draw(random)); });
  if (t.type == 'h')  // any sign and fraction, from 0.25 to 1
    put([&] { return static_cast<uint16_t>((random() & 0x83ff) | (0x3400 + 0x400 * (random() % 2))); });
  if (t.type == 'b')
    put([&] {
      float value = draw(random);
      uint32_t bits = 0;
      std::memcpy(&bits, &value, 4);
      return static_cast<uint16_t>(bits >> 16);
    });
  return out;
}

void print_sum(const Tensor& t, const std::vector<unsigned char>& bytes) {
  if (t.type != 'f') return;
  double sum = 0;
  for (size_t at = 0; at + 4 <= bytes.size(); at += 4) {
    float value = 0;
    std::memcpy(&value, bytes.data() + at, 4);
    sum += value;
  }
  std::printf("%s: sum %g\n", t.name, sum);
}

}  // namespace

int main() {
  int device = 0;
  void *context = nullptr, *stream = nullptr, *begin = nullptr, *end = nullptr;
  call("cuInit", 0U);
  call("cuDeviceGet", &device, 0);
  call("cuDevicePrimaryCtxRetain", &context, device);
  call("cuCtxSetCurrent", context);
  call("cuStreamCreate", &stream, 0U);
  call("cuEventCreate", &begin, 0U), call("cuEventCreate", &end, 0U);
  std::mt19937 random(1);
  std::vector<uint64_t> places;
  for (const Tensor& t : kTensors) {
    call("cuMemAlloc_v2", &places.emplace_back(0), t.bytes ? t.bytes : 1);
    if (!t.is_given || !t.bytes) continue;
    std::vector<unsigned char> values = random_values(t, random);
    call("cuMemcpyHtoD_v2", places.back(), static_cast<const void*>(values.data()), t.bytes);
  }
  uint64_t scratch = 0;
  if (@FILE@_scratch_bytes()) call("cuMemAlloc_v2", &scratch, @FILE@_scratch_bytes());
  @FILE@_tensors tensors{};
  static_assert(sizeof tensors == sizeof(uint64_t) * std::size(kTensors), "one pointer each");
  std::memcpy(&tensors, places.data(), sizeof tensors);
  constexpr int kRuns = 20;
  for (int run = -2; run < kRuns; ++run) {  // the first two are not timed
    if (run == 0) call("cuEventRecord", begin, stream);
    if (const char* trouble = @FILE@_run(&tensors, reinterpret_cast<void*>(scratch), stream)) {
      std::printf("%s\n", trouble);
      return 6;
    }
  }
  call("cuEventRecord", end, stream);
  call("cuStreamSynchronize", stream);
  float ms = 0;
  call("cuEventElapsedTime", &ms, begin, end);
  std::printf("%.2f us a call, one after the other\n", 1e3 * ms / kRuns);
  for (size_t i = 0; i < places.size(); ++i) {
    if (!kTensors[i].is_result) continue;
    std::vector<unsigned char> bytes(kTensors[i].bytes);
    call("cuMemcpyDtoH_v2", static_cast<void*>(bytes.data()), places[i], bytes.size());
    print_sum(kTensors[i], bytes);
  }
  return 0;
}
