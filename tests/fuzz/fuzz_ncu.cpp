// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as ncu's table: reading ends, and the resulting profile can be
// written and read again.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/verdict.h"
#include "eval/diagnosis/diagnose.h"
#include "eval/diagnosis/measured_remarks.h"
#include "eval/diagnosis/ncu_counters.h"
#include "toolchain/ncu_report.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cutegen;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  static const GpuSpec gpu = *find_gpu("h200");
  (void)toolchain::read_ncu_version(text);
  const auto report = toolchain::read_ncu_report(text);
  (void)toolchain::read_ncu_refusal(text, report, cutegen::eval::ncu_metrics());
  Profile profile;
  for (const auto& kernel : report.kernels) {
    for (const auto& [name, value] : kernel.metrics)
      if (!std::isfinite(value.value)) std::abort();
    profile.kernels.push_back(cutegen::eval::measured_profile(kernel));
    cutegen::eval::diagnose(profile.kernels.back(), gpu);
    cutegen::eval::remark_on_measured(profile.kernels.back());
  }
  auto again = parse_json(dump_json(to_json(profile)), "profile");
  if (!again || !read_json<Profile>(*again)) std::abort();
  return 0;
}
