// SPDX-License-Identifier: Apache-2.0
// Prints modelled times of the launches that export_launches wrote, one line of JSON per file, to
// compare with the times that measure_launches.py measures on a GPU.
//
// Usage: model_launches_bench GPU FILE.json...      e.g. h200 out/*/1_Square*.json
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "base/json.h"
#include "device/device.h"
#include "tensor/dtype.h"
#include "toolchain/assembler.h"

namespace {

using namespace cutegen;
namespace fs = std::filesystem;

std::vector<std::byte> bytes_of(const std::string& hex) {
  std::vector<std::byte> out(hex.size() / 2);
  for (size_t i = 0; i < out.size(); ++i) {
    unsigned value = 0;
    std::from_chars(hex.data() + 2 * i, hex.data() + 2 * i + 2, value, 16);
    out[i] = std::byte(value);
  }
  return out;
}

Launch launch_of(const Json& j) {
  Launch out;
  out.kernel = j.at("kernel"), out.step = out.kernel, out.module = j.at("module");
  out.grid = j.at("grid"), out.block = j.at("block"), out.shared_bytes = j.at("shared_bytes");
  for (const Json& a : j.at("args")) {
    LaunchArg arg;
    if (a.contains("buffer"))
      arg.buffer = a.at("buffer");
    else
      arg.bytes = bytes_of(a.at("hex"));
    out.args.push_back(std::move(arg));
  }
  return out;
}

Result<int64_t> size_of_buffer(const Json& buffer) {
  if (buffer.contains("bytes")) return buffer.at("bytes").get<int64_t>();
  CG_TRY(DType dtype, dtype_from_name(buffer.at("dtype").get<std::string>()));
  auto size = int64_t(size_of(dtype));
  for (int64_t d : buffer.at("shape")) size *= d;
  return size;
}

Result<Json> modelled(device::Device& device, toolchain::Assembler& assembler,
                      const fs::path& file) {
  CG_TRY(std::string text, read_file(file));
  CG_TRY(Json j, parse_json(text, file.string()));
  std::vector<std::string> ptx;
  std::map<std::string, int> registers;
  for (const std::string name : j.at("modules")) {
    CG_TRY(std::string module, read_file(file.parent_path() / name));
    CG_TRY(toolchain::AssemblyReport report,
           assembler.audit(Context(), module, device.facts().arch));
    for (const KernelAudit& k : report.audit.kernels) registers[k.kernel] = int(k.registers);
    ptx.push_back(std::move(module));
  }
  CG_CHECK(device.load(ptx));
  std::vector<Mapping> memory;
  std::vector<device::BufferBinding> buffers;
  for (const Json& b : j.at("buffers")) {
    CG_TRY(int64_t size, size_of_buffer(b));
    CG_TRY(UniqueFd fd, make_memfd("buffer", size_t(size)));
    CG_TRY(Mapping map, Mapping::map(fd.get(), size_t(size), true));
    buffers.push_back({b.at("name"), {map.data(), size_t(size)}});
    memory.push_back(std::move(map));
  }
  CG_CHECK(device.bind(buffers));
  std::vector<std::variant<Launch, Fill>> steps;
  for (const Json& s : j.at("steps")) {
    Launch launch = launch_of(s);
    launch.registers = registers[launch.kernel];
    steps.emplace_back(std::move(launch));
  }
  device::RunSettings settings{.sample_ctas = 8, .sample_most = 128};
  CG_TRY(device::RunReport report, device.run(Context(), steps, settings));
  if (report.status != device::RunReport::Status::ok) return user_error(report.message);
  Json out{{"task", j.at("task")}, {"folder", file.parent_path().filename().string()}};
  double total = 0;
  Json kernels = Json::array();
  for (const KernelProfile& k : report.kernels) {
    total += k.time_ns;
    Json terms{{"bound_by", k.bound_by}};
    for (const auto& [name, value] : k.counters)
      if (name.starts_with("modelled_ns.")) terms[name.substr(12)] = value / 1000;
    kernels.push_back(std::move(terms));
  }
  out["modelled_us"] = total / 1000, out["kernels"] = std::move(kernels);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: model_launches_bench GPU FILE.json...\n");
    return kExitUser;
  }
  auto all = [&]() -> Result<void> {
    CG_TRY(auto device, cutegen::device::open_device(DeviceName::simulator_of(argv[1])));
    CG_TRY(cutegen::toolchain::ToolPaths paths, cutegen::toolchain::find_tools());
    CG_TRY(auto assembler, cutegen::toolchain::Assembler::open({.paths = paths}));
    for (int i = 2; i < argc; ++i) {
      auto one = modelled(*device, *assembler, argv[i]);
      if (one)
        fmt::print("{}\n", one->dump());
      else
        fmt::print(stderr, "model_launches: {}: {}\n", argv[i], one.error().text());
    }
    return {};
  };
  auto done = all();
  if (done) return kExitOk;
  fmt::print(stderr, "model_launches: {}\n", done.error().text());
  return exit_code(done.error());
}
