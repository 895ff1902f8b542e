// SPDX-License-Identifier: Apache-2.0
// launch(): checks of the configuration, host threads, and the report.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/text.h"
#include "ptx/cta.h"
#include "ptx/module.h"

namespace cutegen::ptx {
namespace {

constexpr int64_t kMostShared = 232448;  // 227 KB, the most of any modelled GPU

Result<const Program*> find_entry(const Module& module, const std::string& name) {
  std::vector<std::string> names;
  for (const Program& p : module.state().programs) {
    if (p.name == name) return &p;
    names.push_back(sanitize(p.name, 80));
  }
  return user_error("no kernel " + sanitize(name, 80) + " in the module", {},
                    names.empty() ? "the module has no kernels" : "it has " + join(names, ", "));
}

Result<void> check_config(const Program& p, const LaunchConfig& c, int64_t shared) {
  static constexpr int64_t grid_limit[] = {2147483647, 65535, 65535},
                           block_limit[] = {1024, 1024, 64};
  int64_t threads = 1;
  for (size_t i = 0; i < 3; ++i) {
    const char axis = "xyz"[i];
    if (c.grid[i] < 1 || c.grid[i] > grid_limit[i]) {
      return user_error(fmt::format("grid.{} is {} (1 to {})", axis, c.grid[i], grid_limit[i]),
                        p.name, "change the grid; skip the launch where there is nothing to do");
    }
    if (c.block[i] < 1 || c.block[i] > block_limit[i]) {
      return user_error(fmt::format("block.{} is {} (1 to {})", axis, c.block[i], block_limit[i]),
                        p.name, "change the block");
    }
    threads *= c.block[i];
    const bool fits = p.required_block ? c.block[i] == p.max_block[i] : true;
    if (p.max_block[0] > 0 && !fits) {
      return user_error(
          fmt::format("block.{} is {}, the kernel requires {}", axis, c.block[i], p.max_block[i]),
          p.name, "launch it with the block it was compiled for");
    }
  }
  if (threads > 1024) {
    return user_error(fmt::format("a block of {} threads (at most 1024)", threads), p.name,
                      "make the block smaller");
  }
  const int64_t most = p.max_block[0] * p.max_block[1] * p.max_block[2];
  if (most > 0 && threads > most) {
    return user_error(
        fmt::format("a block of {} threads, the kernel was compiled for at most {}", threads, most),
        p.name, "change the block or __launch_bounds__");
  }
  if (c.shared_bytes < 0 || shared > kMostShared) {
    return user_error(fmt::format("{} bytes of shared memory (at most {})", shared, kMostShared),
                      p.name, "use less shared memory");
  }
  return {};
}

Result<std::vector<std::byte>> pack_params(const Program& p,
                                           const std::vector<std::vector<std::byte>>& params) {
  if (params.size() != p.params.size()) {
    return user_error(
        fmt::format("{} arguments, the kernel takes {}", params.size(), p.params.size()), p.name,
        "give as many arguments as the kernel has");
  }
  std::vector<std::byte> out(size_t(p.param_bytes));
  for (size_t i = 0; i < params.size(); ++i) {
    if (int64_t(params[i].size()) != p.params[i].size) {
      return user_error(fmt::format("argument {} has {} bytes, the kernel takes {}", i,
                                    params[i].size(), p.params[i].size),
                        p.name, "give the argument the type it has in the kernel");
    }
    if (!params[i].empty())
      std::memcpy(out.data() + p.params[i].offset, params[i].data(), params[i].size());
  }
  return out;
}

// Storage and addresses of the module's variables that this entry names.
Result<std::vector<uint64_t>> place_variables(Memory::State& memory, const Module& module,
                                              const Program& p) {
  std::vector<uint64_t> out;
  for (int32_t index : p.variables) {
    const Variable& v = module.state().parsed.variables[size_t(index)];
    auto [it, fresh] = memory.variables.try_emplace({module.state().id, index});
    if (fresh) {
      if (v.bytes() > (int64_t{1} << 30))
        return unsupported_error("variable of more than 1 GiB: " + sanitize(v.name, 60));
      auto bytes = initial_bytes(v);
      if (!bytes || v.is_extern) {
        memory.variables.erase(it);
        if (!bytes) return fail(bytes.error());
        return unsupported_error("external variable " + sanitize(v.name, 60));
      }
      it->second.storage = std::move(*bytes);
      it->second.base =
          memory.place(sanitize(v.name, 60), it->second.storage,
                       v.space == Space::constant ? Access::read_only : Access::read_write);
    }
    out.push_back(it->second.base);
  }
  return out;
}

struct Outcome {
  std::mutex mutex;
  int64_t at = INT64_MAX;  // the CTA that ended the launch
  LaunchReport report;
};

int64_t nth_cta(int64_t n, int64_t total, int64_t run) {
  if (run == total) return n;
  if (run == 1) return 0;
  return int64_t(__int128(n) * (total - 1) / (run - 1));
}

void work(Job& job, int64_t total, int64_t run, std::atomic<int64_t>& next, Outcome& outcome) {
  Cta cta(job);
  int64_t done = 0;
  while (true) {
    const int64_t n = next.fetch_add(1);
    if (n >= run) break;
    const int64_t linear = nth_cta(n, total, run);
    if (linear > job.stop_after.load()) break;
    const LaunchStatus status = cta.run(linear);
    ++done;
    if (status == LaunchStatus::ok) continue;
    std::lock_guard lock(outcome.mutex);
    if (linear < outcome.at) {  // the first CTA at fault is reported, whichever thread met it
      outcome.at = linear;
      outcome.report.status = status;
      outcome.report.reason =
          status == LaunchStatus::finding ? cta.finding().message : cta.reason();
      outcome.report.finding.reset();
      if (status == LaunchStatus::finding) outcome.report.finding = cta.finding();
      job.stop_after = linear;
    }
    break;
  }
  std::lock_guard lock(outcome.mutex);
  cta.add_counters(outcome.report.counters);
  for (size_t i = 0; i < cta.traffic().size(); ++i) {
    outcome.report.traffic[i].load_sectors += cta.traffic()[i][0];
    outcome.report.traffic[i].store_sectors += cta.traffic()[i][1];
  }
  outcome.report.ctas_run += done;
}

}  // namespace

Result<LaunchReport> launch(const Context& ctx, Memory& memory, const Module& module,
                            const std::string& entry, const LaunchConfig& config,
                            const std::vector<std::vector<std::byte>>& params,
                            const RunOptions& options) {
  CG_TRY(const Program* program, find_entry(module, entry));
  const bool needs_dynamic = config.shared_bytes > 0;
  const int64_t shared =
      (needs_dynamic ? program->dynamic_shared_at : program->static_shared) + config.shared_bytes;
  CG_CHECK(check_config(*program, config, shared));
  Job job{*program, memory.state(), config,           {},
          {},       shared,         options.counters, options.instruction_budget,
          ctx};
  CG_TRY(job.params, pack_params(*program, params));
  CG_TRY(job.variable_base, place_variables(memory.state(), module, *program));
  job.stop_after = INT64_MAX;

  Outcome outcome;
  LaunchReport& report = outcome.report;
  if (config.cluster[0] * config.cluster[1] * config.cluster[2] != 1 || config.cooperative) {
    report.status = LaunchStatus::unsupported;
    report.reason = config.cooperative ? "cooperative launches are not simulated"
                                       : "thread block clusters are not simulated";
    return report;
  }
  const int64_t total = config.grid[0] * config.grid[1] * config.grid[2];
  const int64_t run = options.sample_ctas > 0 ? std::min(options.sample_ctas, total) : total;
  report.ctas_total = total;
  for (const Buffer& b : memory.state().buffers) report.traffic.push_back({b.name, b.size});
  int64_t threads = options.threads > 0
                        ? options.threads
                        : int64_t(std::max(1u, std::thread::hardware_concurrency()));
  threads = std::clamp<int64_t>(threads, 1, std::min<int64_t>(run, 256));
  std::atomic<int64_t> next{0};
  const auto start = Clock::now();
  {
    std::vector<std::jthread> helpers;
    for (int64_t i = 1; i < threads; ++i) {
      helpers.emplace_back([&] { work(job, total, run, next, outcome); });
    }
    work(job, total, run, next, outcome);
  }
  report.host_time = Clock::now() - start;
  std::erase_if(report.traffic,
                [](const BufferTraffic& t) { return t.load_sectors + t.store_sectors == 0; });
  return std::move(outcome.report);
}

}  // namespace cutegen::ptx
