// SPDX-License-Identifier: Apache-2.0
// Parses GPU files. No other file of this module knows TOML.
#include "gpu/spec.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/json.h"

namespace cutegen {

const std::map<std::string, std::string>& gpu_files();  // embedded (CMakeLists.txt)

namespace {

constexpr size_t kMaxFile = size_t{64} << 10;

// Reads one table of the file. Figures must be positive and within a limit; a source is required.
class Section {
 public:
  Section(const toml::table& file, const char* name, const std::string& file_name)
      : name_(name), file_name_(file_name), table_(file[name].as_table()) {}

  Result<void> check() {
    if (!table_) return user_error("missing table [" + name_ + "]", file_name_);
    seen_.insert("source");
    auto source = (*table_)["source"].value<std::string>();
    if (!source || source->empty())
      return user_error("[" + name_ + "] does not name the source of its figures", file_name_,
                        "add source = \"...\"");
    return {};
  }

  Result<double> real(const std::string& key, double most) {
    seen_.insert(key);
    auto value = (*table_)[key].value<double>();
    if (!value) return user_error("missing number '" + key + "'", place(key));
    if (!(*value > 0) || !(*value <= most))
      return user_error(fmt::format("{} = {} is out of range", key, *value), place(key),
                        fmt::format("it must be positive and at most {}", most));
    return *value;
  }

  Result<int64_t> integer(const std::string& key, int64_t most) {
    seen_.insert(key);
    auto value = (*table_)[key].value_exact<int64_t>();
    if (!value) return user_error("missing integer '" + key + "'", place(key));
    if (*value <= 0 || *value > most)
      return user_error(fmt::format("{} = {} is out of range", key, *value), place(key),
                        fmt::format("it must be positive and at most {}", most));
    return *value;
  }

  Result<int> small(const std::string& key, int most) {
    CG_TRY(int64_t value, integer(key, most));
    return int(value);
  }

  // An unknown key is a typing error. Keys that begin with "achievable" are only for human readers.
  Result<void> finish() const {
    std::vector<std::string> known(seen_.begin(), seen_.end());
    for (const auto& [key, value] : *table_) {
      std::string k(key.str());
      if (seen_.contains(k) || k.starts_with("achievable")) continue;
      auto near = nearest(k, known);
      return user_error("unknown key '" + k + "'", place(k),
                        near ? "did you mean '" + *near + "'?" : "remove it");
    }
    return {};
  }

 private:
  std::string place(const std::string& key) const { return file_name_ + "#" + name_ + "." + key; }
  std::string name_, file_name_;
  const toml::table* table_;
  std::set<std::string> seen_;
};

Result<void> read_limits(const toml::table& file, const std::string& name, GpuSpec& g) {
  Section s(file, "limits", name);
  CG_CHECK(s.check());
  CG_TRY(g.max_threads_per_block, s.small("max_threads_per_block", 4096));
  CG_TRY(g.max_threads_per_sm, s.small("max_threads_per_sm", 16384));
  CG_TRY(g.max_blocks_per_sm, s.small("max_blocks_per_sm", 1024));
  CG_TRY(g.registers_per_sm, s.small("registers_per_sm", 1 << 24));
  CG_TRY(g.shared_bytes_per_sm, s.integer("shared_bytes_per_sm", int64_t{1} << 30));
  CG_TRY(g.shared_bytes_per_block, s.integer("shared_bytes_per_block", g.shared_bytes_per_sm));
  return s.finish();
}

Result<void> read_chip(const toml::table& file, const std::string& name, GpuSpec& g) {
  Section chip(file, "chip", name), clock(file, "clock", name), launch(file, "launch", name);
  CG_CHECK(chip.check());
  CG_TRY(g.sms, chip.small("sms", 4096));
  CG_CHECK(chip.finish());
  CG_CHECK(clock.check());
  CG_TRY(g.clock_hz, clock.real("clock_hz", 1e11));
  CG_CHECK(clock.finish());
  CG_CHECK(launch.check());
  CG_TRY(g.launch_ns, launch.real("launch_ns", 1e9));
  CG_TRY(g.least_launch_ns, launch.real("least_launch_ns", g.launch_ns));
  return launch.finish();
}

Result<void> read_memory(const toml::table& file, const std::string& name, GpuSpec& g) {
  Section memory(file, "memory", name), l2(file, "l2", name);
  CG_CHECK(memory.check());
  CG_TRY(g.memory_bytes, memory.integer("memory_bytes", int64_t{1} << 50));
  CG_TRY(g.dram_bytes_per_s, memory.real("dram_bytes_per_s", 1e16));
  CG_CHECK(memory.finish());
  CG_CHECK(l2.check());
  CG_TRY(g.l2_bytes, l2.integer("l2_bytes", int64_t{1} << 40));
  CG_TRY(g.l2_bytes_per_s, l2.real("l2_bytes_per_s", 1e17));
  return l2.finish();
}

Result<void> read_flops(const toml::table& file, const std::string& name, GpuSpec& g) {
  Section s(file, "flops_per_s", name);
  CG_CHECK(s.check());
  for (const char* mode : {"fp32", "tf32", "fp16", "bf16"}) {
    CG_TRY(g.flops_per_s[mode], s.real(mode, 1e19));
  }
  return s.finish();
}

Result<void> read_rates(const toml::table& file, const std::string& name, GpuRates& r) {
  Section s(file, "rates", name);
  CG_CHECK(s.check());
  CG_TRY(r.schedulers, s.real("schedulers", 64));
  CG_TRY(r.fp32_lanes, s.real("fp32_lanes", 4096));
  CG_TRY(r.half_lanes, s.real("half_lanes", 4096));
  CG_TRY(r.fp64_lanes, s.real("fp64_lanes", 4096));
  CG_TRY(r.integer_lanes, s.real("integer_lanes", 4096));
  CG_TRY(r.special_lanes, s.real("special_lanes", 4096));
  CG_TRY(r.convert_lanes, s.real("convert_lanes", 4096));
  CG_TRY(r.load_store_lanes, s.real("load_store_lanes", 4096));
  CG_TRY(r.l1_bytes, s.real("l1_bytes", 65536));
  CG_TRY(r.shared_bytes, s.real("shared_bytes", 65536));
  return s.finish();
}

Result<void> read_latency(const toml::table& file, const std::string& name, GpuLatency& l) {
  Section s(file, "latency", name);
  CG_CHECK(s.check());
  CG_TRY(l.arithmetic, s.real("arithmetic_clocks", 1e4));
  CG_TRY(l.special, s.real("special_clocks", 1e4));
  CG_TRY(l.shuffle, s.real("shuffle_clocks", 1e4));
  CG_TRY(l.shared, s.real("shared_clocks", 1e4));
  CG_TRY(l.barrier, s.real("barrier_clocks", 1e4));
  CG_TRY(l.tensor, s.real("tensor_clocks", 1e4));
  CG_TRY(l.global, s.real("global_clocks", 1e5));
  CG_TRY(l.cta, s.real("cta_clocks", 1e5));
  CG_TRY(l.dram_efficiency, s.real("dram_efficiency", 1));
  return s.finish();
}

Result<void> read_mma(const toml::table& file, const std::string& name, GpuSpec& g) {
  Section s(file, "mma_flops_per_s", name);
  CG_CHECK(s.check());
  for (const char* type : {"fp64", "tf32", "fp16", "bf16", "int8"}) {
    CG_TRY(g.mma_flops_per_s[type], s.real(type, 1e19));
  }
  return s.finish();
}

bool good_arch(const std::string& arch) {
  return arch.size() >= 5 && arch.size() <= 8 && arch.starts_with("sm_") &&
         arch.find_first_not_of("0123456789", 3) >= arch.size() - 1;
}

Result<toml::table> parse_toml(const std::string& text, const std::string& name) {
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& e) {
    return user_error(
        "not valid TOML: " + std::string(e.description()),
        fmt::format("{}:{}:{}", name, e.source().begin.line, e.source().begin.column));
  }
}

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".toml");
}

}  // namespace

Result<GpuSpec> parse_gpu(const std::string& id, const std::string& text, const std::string& name) {
  CG_TRY(toml::table file, parse_toml(text, name));
  GpuSpec g;
  g.id = id;
  g.name = file["name"].value_or(std::string());
  g.arch = file["arch"].value_or(std::string());
  if (g.name.empty() || g.name.size() > 200) return user_error("missing 'name'", name);
  if (!good_arch(g.arch))
    return user_error("missing or malformed 'arch'", name, "such as arch = \"sm_90a\"");
  CG_CHECK(read_limits(file, name, g));
  CG_CHECK(read_chip(file, name, g));
  CG_CHECK(read_memory(file, name, g));
  CG_CHECK(read_flops(file, name, g));
  CG_CHECK(read_rates(file, name, g.rates));
  CG_CHECK(read_latency(file, name, g.latency));
  CG_CHECK(read_mma(file, name, g));
  return g;
}

std::vector<std::string> known_gpus() {
  std::vector<std::string> out;
  for (const auto& [path, text] : gpu_files())
    out.push_back(std::filesystem::path(path).stem().string());
  return out;
}

Result<GpuSpec> find_gpu(const std::string& name) {
  if (is_path(name)) {
    CG_TRY(std::string text, read_file(name, kMaxFile));
    return parse_gpu(std::filesystem::path(name).stem().string(), text, name);
  }
  auto it = gpu_files().find("gpus/" + name + ".toml");
  if (it != gpu_files().end()) return parse_gpu(name, it->second, it->first);
  auto known = known_gpus();
  auto near = nearest(name, known);
  std::string list = fmt::format("{}", fmt::join(known, ", "));
  return user_error("unknown GPU '" + name.substr(0, 64) + "'", {},
                    (near ? "did you mean '" + *near + "'? " : std::string()) + "known: " + list +
                        ", or the path of a .toml file");
}

Result<GpuSpec> gpu_of_product(const std::string& product) {
  for (const std::string& id : known_gpus()) {
    std::string word = id;
    for (char& c : word) c = char(std::toupper(uint8_t(c)));
    const size_t at = product.find(word);
    if (at == std::string::npos) continue;
    auto is_part = [&](size_t i) { return i < product.size() && std::isalnum(product[i]); };
    if (!is_part(at + word.size()) && (at == 0 || !is_part(at - 1))) return find_gpu(id);
  }
  return world_error("no file describes the GPU '" + product.substr(0, 64) + "'",
                     "known: " + fmt::format("{}", fmt::join(known_gpus(), ", ")) +
                         "; add gpus/NAME.toml and build again");
}

}  // namespace cutegen
