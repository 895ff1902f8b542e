// SPDX-License-Identifier: Apache-2.0
// launch(): checks the configuration, and allocates the memory of a launch.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/text.h"
#include "ptx/decode/module.h"
#include "ptx/execute/cta.h"
#include "ptx/execute/scheduler.h"

namespace cutegen::ptx {
namespace {

constexpr int64_t kMostTogether = int64_t{4} << 30;  // host bytes of a cooperative launch
constexpr int64_t kMostShared = 232448;              // 227 KB, the most of any modelled GPU

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
                        p.name, "change the grid, or skip a launch without work");
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

// Chooses the cluster of a launch: the plan's, or the kernel's .reqnctapercluster.
Result<void> choose_cluster(const Program& p, LaunchConfig& c) {
  int64_t ctas = 1;
  for (size_t i = 0; i < 3; ++i) {
    const char axis = "xyz"[i];
    const bool plain = c.cluster == std::array<int64_t, 3>{1, 1, 1};
    if (p.cluster[0] > 0 && !plain && c.cluster[i] != p.cluster[i]) {
      return user_error(
          fmt::format("cluster.{} is {}, the kernel requires {}", axis, c.cluster[i], p.cluster[i]),
          p.name, "launch it with the cluster it was compiled for");
    }
  }
  if (p.cluster[0] > 0) std::copy(std::begin(p.cluster), std::end(p.cluster), c.cluster.begin());
  for (size_t i = 0; i < 3; ++i) {
    const char axis = "xyz"[i];
    if (c.cluster[i] < 1 || c.cluster[i] > kMostClusterCtas || c.grid[i] % c.cluster[i] != 0) {
      return user_error(
          fmt::format("cluster.{} is {}: it must be 1 to {} and divide grid.{}, which "
                      "is {}",
                      axis, c.cluster[i], kMostClusterCtas, axis, c.grid[i]),
          p.name, "change the cluster or the grid");
    }
    ctas *= c.cluster[i];
  }
  if (ctas <= kMostClusterCtas) return {};
  return user_error(fmt::format("a cluster of {} CTAs (8 on any GPU with clusters, at most {})",
                                ctas, kMostClusterCtas),
                    p.name, "make the cluster smaller");
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

// Allocates the module's variables that this entry names, and returns their addresses.
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

// The grid barrier is in memory that the driver passes to a cooperative launch.
void place_workspace(Memory::State& memory) {
  constexpr size_t kBytes = 64;
  if (memory.workspace.empty()) {
    memory.workspace.resize(kBytes);
    memory.workspace_base = memory.place("grid workspace", memory.workspace, Access::read_write);
  }
  std::fill(memory.workspace.begin(), memory.workspace.end(), std::byte{0});
  const uint32_t bytes = kBytes;
  std::memcpy(memory.workspace.data(), &bytes, sizeof bytes);
}

Result<void> check_cooperative(const Job& job, int64_t total, int64_t resident) {
  if (resident > 0 && total > resident) {
    return user_error(
        fmt::format("a cooperative launch of {} CTAs, but only {} can be resident at once", total,
                    resident),
        job.program.name, "launch fewer CTAs and let each do more");
  }
  if (CtaState::bytes(job) > kMostTogether / total) {
    return unsupported_error(
        fmt::format("a cooperative launch of {} CTAs that need more than {} bytes to simulate",
                    total, kMostTogether),
        job.program.name);
  }
  return {};
}

}  // namespace

Result<LaunchReport> launch(const Context& ctx, Memory& memory, const Module& module,
                            const std::string& entry, const LaunchConfig& wanted,
                            const std::vector<std::vector<std::byte>>& params,
                            const RunOptions& options) {
  LaunchConfig config = wanted;
  CG_TRY(const Program* program, find_entry(module, entry));
  const bool needs_dynamic = config.shared_bytes > 0;
  const int64_t shared =
      (needs_dynamic ? program->dynamic_shared_at : program->static_shared) + config.shared_bytes;
  CG_CHECK(check_config(*program, config, shared));
  CG_CHECK(choose_cluster(*program, config));
  Job job{.program = *program,
          .memory = memory.state(),
          .config = config,
          .params = {},
          .variable_base = {},
          .shared_bytes = shared,
          .checks = options.checks,
          .budget = options.instruction_budget,
          .context = ctx};
  CG_TRY(job.params, pack_params(*program, params));
  CG_TRY(job.variable_base, place_variables(memory.state(), module, *program));
  job.stop_after = INT64_MAX;
  Grid grid;
  grid.total = config.grid[0] * config.grid[1] * config.grid[2];
  grid.cluster = job.cluster_size();
  // CTAs that wait for one another cannot be sampled. If the GPU cannot hold all of them at once,
  // they wait only for earlier CTAs, so a sample of the first CTAs represents all.
  const bool together = config.cooperative || (program->waits && options.resident_ctas > 0 &&
                                               grid.total <= options.resident_ctas);
  grid.sampled = options.sample_ctas > 0 && options.sample_ctas < grid.total && !together;
  if (grid.sampled && options.every_kind) memory.state().watch_stores();
  grid.cooperative = config.cooperative, grid.resident = options.resident_ctas;
  if (config.cooperative) {
    CG_CHECK(check_cooperative(job, grid.total, options.resident_ctas));
    place_workspace(memory.state());
    job.workspace = memory.state().workspace_base;
  }
  job.hazards =
      prepare_hazards(memory.state(), *program, options.checks,
                      config.block[0] * config.block[1] * config.block[2], config.overlaps);
  const uint32_t first = memory.state().next_epoch;
  if (config.overlaps && memory.state().settled < first) job.unsettled = memory.state().settled;
  job.order = options.order, job.order_seed = options.order_seed;
  job.fair = program->pulls && options.latency != nullptr;
  const int64_t cores = int64_t(std::max(1u, std::thread::hardware_concurrency()));
  grid.threads = std::clamp<int64_t>(options.threads > 0 ? options.threads : cores, 1,
                                     std::min<int64_t>(grid.units(), 256));
  // With several host threads, the time of a wait would depend on the host.
  if (job.fair || (program->waits && options.latency)) grid.threads = 1;
  LaunchReport report = run_grid(job, grid, options);
  if (job.hazards) memory.state().next_epoch = job.hazards->epochs.end();
  // A launch that did not wait may end before the previous launch does.
  if (!config.overlaps || job.waited.load()) memory.state().settled = first;
  report.communicates = program->communicates;
  return report;
}

}  // namespace cutegen::ptx
