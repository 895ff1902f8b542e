// SPDX-License-Identifier: Apache-2.0
#include "device/sim_device.h"

#include <fmt/format.h>

#include <cstring>

#include "base/text.h"
#include "device/fill.h"
#include "device/map_rules.h"
#include "device/module_facts.h"
#include "device/sim_profile.h"

namespace cutegen::device {
namespace {

constexpr int64_t kMostRegisters = 255;  // per thread; beyond it the assembler spills
constexpr int64_t kRegisterSlack = 2;
ModuleFacts facts_of(const ptx::Module& module) {
  ModuleFacts out;
  for (const ptx::Entry& e : module.entries()) {
    EntryFacts f;
    f.name = e.name;
    for (const ptx::Param& p : e.params) f.params.push_back({.size = p.size, .align = p.align});
    f.max_block = e.max_block;
    f.static_shared_bytes = e.static_shared_bytes;
    out.entries.push_back(std::move(f));
  }
  out.constants = module.integer_constants();
  for (const std::string& name : module.constant_names()) {
    auto bytes = module.constant_bytes(name);
    if (!bytes) continue;
    if (auto words = spec_words(*bytes)) out.tma_specs[name] = std::move(*words);
  }
  return out;
}

// Uses the assembler's register count if there is one. The time model adds kUncounted to an
// estimate, so assembled() subtracts kUncounted from the count.
ptx::Entry assembled(ptx::Entry entry, int registers) {
  constexpr int kUncounted = 6;
  if (registers > 0) entry.registers_estimate = registers - kUncounted;
  return entry;
}

ptx::RunOptions options_of(const RunSettings& settings) {
  ptx::RunOptions out;
  out.threads = settings.threads;
  out.instruction_budget = settings.instruction_budget;
  out.sample_ctas = settings.sample_ctas, out.sample_most = settings.sample_most;
  out.sample_error = settings.sample_error, out.sample_seed = settings.sample_seed;
  out.every_kind = settings.trace;
  out.line_counters = settings.lines;
  out.whole_instructions = settings.whole_instructions;
  out.counters = settings.order == RunOrder::in_order;
  out.order = ptx::Order(settings.order), out.order_seed = settings.order_seed;
  if (!settings.checks) out.checks.uninitialised = out.checks.races = false;
  return out;
}

std::string describe(const ptx::Finding& f) {
  std::string where = f.source_line > 0 ? fmt::format("source line {}, ", f.source_line) : "";
  std::string out =
      fmt::format("{}: {}\n{}ptx line {}: {}\nCTA ({},{},{}), thread {}, address {:#x}{}", f.kind,
                  f.message, where, f.ptx_line, f.instruction, f.cta[0], f.cta[1], f.cta[2],
                  f.thread, f.address, f.buffer.empty() ? "" : ", buffer " + f.buffer);
  if (!f.other) return out;
  const ptx::Finding::Party& o = *f.other;
  return out +
         fmt::format("\nthe other side: source line {}, ptx line {}, CTA ({},{},{}), thread {}",
                     o.source_line, o.ptx_line, o.cta[0], o.cta[1], o.cta[2], o.thread);
}

// Null if the module has no such kernel; launch() reports it.
const ptx::Entry* entry_of(const ptx::Module& module, const std::string& kernel) {
  for (const ptx::Entry& e : module.entries()) {
    if (e.name == kernel) return &e;
  }
  return nullptr;
}

KernelProfile fill_profile(const GpuSpec& gpu, const std::string& buffer, double bytes) {
  KernelProfile profile;
  profile.kernel = "fill " + buffer, profile.origin = Origin::modelled;
  profile.time_ns = gpu.launch_ns + bytes / gpu.dram_bytes_per_s * 1e9;
  profile.bound_by = profile.time_ns > 2 * gpu.launch_ns ? "dram" : "launch";
  profile.counters["global_store_bytes"] = bytes;
  return profile;
}

}  // namespace

DeviceFacts SimDevice::facts() const {
  return sim_facts(name_, gpu_);
}

Result<std::vector<ModuleFacts>> SimDevice::load(const std::vector<std::string>& ptx,
                                                 const std::vector<std::string>&) {
  std::vector<ptx::Module> modules;
  std::vector<ModuleFacts> out;
  for (const std::string& text : ptx) {
    CG_TRY(ptx::Module m, ptx::Module::parse(text));
    out.push_back(facts_of(m));
    modules.push_back(std::move(m));
  }
  modules_ = std::move(modules);
  return out;
}

Result<void> SimDevice::bind(const std::vector<BufferBinding>& buffers) {
  ptx::Memory memory;
  std::map<std::string, Bound> bound;
  for (const BufferBinding& b : buffers) {
    const auto access = b.read_only ? ptx::Access::read_only : ptx::Access::read_write;
    const auto content = b.content == BufferContent::data     ? ptx::Content::given
                         : b.content == BufferContent::output ? ptx::Content::output
                                                              : ptx::Content::scratch;
    Bound entry{.address = memory.add(b.name, b.bytes, access, content),
                .bytes = b.bytes,
                .read_only = b.read_only};
    if (!bound.emplace(b.name, entry).second) {
      return user_error("buffer " + sanitize(b.name, 80) + " is bound twice", {},
                        "bind each name once");
    }
  }
  memory_ = std::move(memory);
  bound_ = std::move(bound);
  return {};
}

Result<const SimDevice::Bound*> SimDevice::find(const std::string& buffer,
                                                const std::string& step) const {
  auto it = bound_.find(buffer);
  if (it != bound_.end()) return &it->second;
  return user_error("buffer " + sanitize(buffer, 80) + " is not bound",
                    "step " + sanitize(step, 80), "bind it before the run");
}

Result<void> SimDevice::check_limits(const Launch& step, const ptx::Entry& entry) const {
  const std::string where = "step " + sanitize(step.step, 80);
  const int64_t threads = step.block[0] * step.block[1] * step.block[2];
  if (threads > gpu_.max_threads_per_block) {
    return user_error(fmt::format("a block of {} threads, {} allows {}", threads, gpu_.name,
                                  gpu_.max_threads_per_block),
                      where, "make the block smaller");
  }
  const int64_t shared = step.shared_bytes + entry.static_shared_bytes;
  if (step.shared_bytes < 0 || shared > gpu_.shared_bytes_per_block) {
    return user_error(fmt::format("{} bytes of shared memory, {} allows {} per block", shared,
                                  gpu_.name, gpu_.shared_bytes_per_block),
                      where, "use less shared memory");
  }
  if (step.registers > 0) {  // an SM allocates them in units of eight, for whole warps
    const int64_t needed = (int64_t{step.registers} + 7) / 8 * 8 * ((threads + 31) / 32 * 32);
    if (needed <= gpu_.registers_per_sm) return {};
    return user_error(fmt::format("{} threads with {} registers each do not fit an SM of {}, which "
                                  "has {} registers",
                                  threads, step.registers, gpu_.name, gpu_.registers_per_sm),
                      where, "use fewer threads, or __launch_bounds__");
  }
  // Without an assembler the register count is an estimate, up to twice the real one. With stated
  // __launch_bounds__ the assembler spills, so the launch fits.
  const int64_t registers = std::min(kMostRegisters, int64_t(entry.registers_estimate));
  if (entry.max_block[0] == 0 && registers * threads > kRegisterSlack * gpu_.registers_per_sm) {
    return user_error(
        fmt::format("{} threads of about {} registers need {}, but an SM of {} has {} registers",
                    threads, registers, registers * threads, gpu_.name, gpu_.registers_per_sm),
        where, "use fewer threads, or state __launch_bounds__");
  }
  return {};
}

Result<void> SimDevice::run_launch(const Context& ctx, const Launch& step, bool first,
                                   const RunSettings& settings, RunReport& report) {
  const std::string where = "step " + sanitize(step.step, 80);
  if (step.module >= modules_.size())
    return user_error("no such module is loaded", where, "load it first");
  const ptx::Module& module = modules_[step.module];
  const ptx::Entry* entry = entry_of(module, step.kernel);
  if (entry) CG_CHECK(check_limits(step, *entry));
  std::vector<std::vector<std::byte>> params;
  for (const LaunchArg& arg : step.args) {
    params.push_back(arg.bytes);
    if (arg.buffer.empty()) continue;
    CG_TRY(const Bound* b, find(arg.buffer, step.step));
    if (!arg.bytes.empty()) {
      CG_TRY(MapFields fields, map_fields(arg.bytes, where));
      CG_TRY(ptx::TensorMap map, checked_map(fields, b->address, where));
      const auto bytes = ptx::encode(map);
      params.back().assign(bytes.begin(), bytes.end());
      continue;
    }
    params.back().resize(8);
    std::memcpy(params.back().data(), &b->address, 8);
  }
  ptx::LaunchConfig config{.grid = step.grid,
                           .block = step.block,
                           .cluster = step.cluster,
                           .shared_bytes = step.shared_bytes,
                           .cooperative = step.cooperative,
                           .overlaps = step.pdl && !first};
  ptx::RunOptions options = options_of(settings);
  const bool in_order = settings.order == RunOrder::in_order;
  if (!settings.checks && in_order) options.latency = &gpu_.latency;
  if (step.code) options.machine_code = &*step.code;
  if (entry) options.resident_ctas = ptx::resident_ctas(gpu_, *entry, config);
  CG_TRY(ptx::LaunchReport r,
         ptx::launch(ctx, memory_, module, step.kernel, config, params, options));
  if (r.status == ptx::LaunchStatus::cancelled) {
    CG_CHECK(ctx.check("simulating " + sanitize(step.kernel, 80)));
    return fail({.kind = ErrorKind::cancelled, .message = r.reason, .where = where});
  }
  if (r.communicates) report.state["communicates"] = 1;
  const std::string prefix = step.kernel + ": ";
  if (r.status == ptx::LaunchStatus::finding) {
    report.status = RunReport::Status::finding;
    report.message = sanitize(prefix + r.finding->kind + ": " + r.finding->message, 600);
    report.detail = sanitize(describe(*r.finding), 1500);
  } else if (r.status != ptx::LaunchStatus::ok) {
    report.status = r.status == ptx::LaunchStatus::unsupported ? RunReport::Status::unsupported
                                                               : RunReport::Status::out_of_budget;
    report.message = sanitize(prefix + r.reason, 600);
  }
  if (!in_order) return {};
  if (settings.trace) report.traces.push_back(sim_trace(step, r));
  report.kernels.push_back(sim_profile(
      step.kernel, r, ptx::model_time(gpu_, r, assembled(*entry, step.registers), config)));
  return {};
}

Result<void> SimDevice::run_fill(const Fill& step, RunReport& report) {
  CG_TRY(const Bound* b, find(step.buffer, step.step));
  if (b->read_only) {
    return user_error("fill of " + sanitize(step.buffer, 80) + ", which is read-only",
                      "step " + sanitize(step.step, 80), "fill outputs and scratch only");
  }
  CG_CHECK(fill_bytes(b->bytes, step.dtype, step.value));
  memory_.set_defined(b->address);
  memory_.settle();
  report.kernels.push_back(fill_profile(gpu_, step.buffer, double(b->bytes.size())));
  return {};
}

Result<void> SimDevice::read(const std::string& buffer, int64_t offset, std::span<std::byte> out) {
  CG_TRY(const Bound* b, find(buffer, "read"));
  if (offset < 0 || out.size() > b->bytes.size() || size_t(offset) > b->bytes.size() - out.size())
    return world_error("a part that is read lies outside its buffer");
  if (!out.empty()) std::memcpy(out.data(), b->bytes.data() + offset, out.size());
  return {};
}

Result<RunReport> SimDevice::run(const Context& ctx,
                                 const std::vector<std::variant<Launch, Fill>>& steps,
                                 const RunSettings& settings) {
  RunReport report;
  memory_.settle();
  for (const auto& step : steps) {
    RunSettings own = settings;
    if (&step == &steps.back()) own.whole_instructions = 0;
    if (const auto* launch = std::get_if<Launch>(&step)) {
      CG_CHECK(run_launch(ctx, *launch, &step == steps.data(), own, report));
    } else {
      CG_CHECK(run_fill(std::get<Fill>(step), report));
    }
    if (report.status != RunReport::Status::ok) break;
  }
  return report;
}

}  // namespace cutegen::device
