// SPDX-License-Identifier: Apache-2.0
#include "core/device_name.h"

#include <charconv>

#include "base/text.h"
#include "gpu/spec.h"

namespace cutegen {
namespace {

constexpr std::string_view kSimulatorWord = "sim:", kGpuWord = "cuda:";

}  // namespace

DeviceName::DeviceName(const char* literal) {
  auto parsed = parse(literal);
  CG_ASSERT(parsed);
  *this = std::move(*parsed);
}

DeviceName DeviceName::simulator_of(const std::string& model) {
  DeviceName out;
  out.model = model;
  return out;
}

Result<DeviceName> DeviceName::parse(const std::string& text) {
  if (text.starts_with(kSimulatorWord)) return simulator_of(text.substr(kSimulatorWord.size()));
  DeviceName out;
  if (text.starts_with(kGpuWord)) {
    const char* first = text.data() + kGpuWord.size();
    const char* last = text.data() + text.size();
    auto [end, error] = std::from_chars(first, last, out.index);
    if (first == last || error != std::errc() || end != last || out.index < 0)
      return user_error("'" + sanitize(text, 60) + "' does not name a GPU", {},
                        "write cuda:0 or cuda:1");
    out.kind = Kind::gpu;
    out.model.clear();
    return out;
  }
  std::vector<std::string> known;
  for (const std::string& id : known_gpus()) known.push_back(std::string(kSimulatorWord) + id);
  return user_error("unknown device " + sanitize(text, 60), {},
                    "use cuda:0 or one of " + join(known, ", "));
}

std::string DeviceName::text() const {
  return is_gpu() ? std::string(kGpuWord) + std::to_string(index)
                  : std::string(kSimulatorWord) + model;
}

}  // namespace cutegen
