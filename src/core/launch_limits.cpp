// SPDX-License-Identifier: Apache-2.0
#include "core/launch_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace cutegen {
namespace {

constexpr int64_t kMaxClusterBlocks = 16;
constexpr int kFirstArchWithClusters = 90;

int64_t product(const std::array<int64_t, 3>& v) {
  return v[0] * v[1] * v[2];
}

Result<void> check_grid(const Launch& l, const DeviceFacts& d, const std::string& where) {
  const int64_t most[] = {d.max_grid_x, d.max_grid_yz, d.max_grid_yz};
  for (size_t i = 0; i < 3; ++i)
    if (l.grid[i] > most[i])
      return user_error(fmt::format("grid of {}: the limit is {}", l.grid[i], most[i]),
                        fmt::format("{}/grid/{}", where, i), "use another axis or a loop");
  return {};
}

Result<void> check_block(const Launch& l, const EntryFacts& entry, const DeviceFacts& d,
                         const std::string& at) {
  int64_t most = d.max_threads_per_block, threads = product(l.block), stated = 1;
  std::string where = at + "/block";
  const int64_t axis_most[] = {most, most, 64};
  for (size_t i = 0; i < 3; ++i) {
    if (l.block[i] > axis_most[i])
      return user_error(fmt::format("block of {}: the limit is {}", l.block[i], axis_most[i]),
                        fmt::format("{}/{}", where, i));
    stated *= std::max(1, entry.max_block[i]);
  }
  if (threads > most)
    return user_error(fmt::format("{} threads per block: the limit is {}", threads, most), where);
  if (entry.max_block[0] > 0 && threads > stated)
    return user_error(fmt::format("{} threads per block, but '{}' is compiled for at most {}",
                                  threads, l.kernel, stated),
                      where, "raise its __launch_bounds__");
  return {};
}

Result<void> check_cluster(const Launch& l, const DeviceFacts& d, const std::string& where) {
  int64_t blocks = product(l.cluster);
  int arch = std::atoi(d.arch.substr(std::min<size_t>(3, d.arch.size())).c_str());  // "sm_90a"
  if (blocks > 1 && arch < kFirstArchWithClusters)
    return user_error(
        fmt::format("cluster of {} blocks: {} ({}) has no clusters", blocks, d.name, d.arch),
        where + "/cluster", "remove 'cluster'");
  for (size_t i = 0; i < 3; ++i)
    if (l.cluster[i] > kMaxClusterBlocks || l.grid[i] % l.cluster[i] != 0)
      return user_error(
          fmt::format("cluster of {} does not divide a grid of {}", l.cluster[i], l.grid[i]),
          fmt::format("{}/cluster/{}", where, i),
          fmt::format("a cluster has at most {} blocks", kMaxClusterBlocks));
  if (blocks > kMaxClusterBlocks)
    return user_error(
        fmt::format("cluster of {} blocks: the limit is {}", blocks, kMaxClusterBlocks),
        where + "/cluster");
  return {};
}

Result<void> check_shared(const Launch& l, const EntryFacts& entry, const DeviceFacts& d,
                          const std::string& at) {
  int64_t most = d.max_shared_bytes, used = entry.static_shared_bytes;
  std::string where = at + "/shared_bytes";
  if (l.shared_bytes < 0)
    return user_error(fmt::format("shared_bytes of {} is negative", l.shared_bytes), where);
  if (used > most || l.shared_bytes > most - used)
    return user_error(fmt::format("{} of shared memory: the limit on {} is {}",
                                  human(Bytes{l.shared_bytes}) +
                                      (used ? " (and " + human(Bytes{used}) + " static)" : ""),
                                  d.name, human(Bytes{most})),
                      where, "use smaller tiles or fewer stages");
  return {};
}

// All blocks of a cooperative launch wait for each other, so they must be resident at once.
Result<void> check_cooperative(const Launch& l, const EntryFacts& entry, const DeviceFacts& d,
                               const std::string& where) {
  if (!l.cooperative) return {};
  int64_t most = resident_blocks(l, entry, d) * d.sms;
  int64_t blocks = product(l.grid);  // cannot overflow within the grid limits
  if (blocks <= most) return {};
  return user_error(fmt::format("cooperative grid of {} blocks: the limit on {} is {}, the number "
                                "that its {} SMs hold at once",
                                blocks, d.name, most, d.sms),
                    where + "/grid",
                    fmt::format("use occupancy({}) * gpu.sms blocks and a loop", l.kernel));
}

}  // namespace

int64_t resident_blocks(const Launch& l, const EntryFacts& entry, const DeviceFacts& d) {
  int64_t blocks = std::min(d.max_blocks_per_sm, d.max_threads_per_sm / product(l.block));
  int64_t shared = l.shared_bytes + entry.static_shared_bytes + kReservedSharedBytes;
  if (d.shared_bytes_per_sm > 0) blocks = std::min(blocks, d.shared_bytes_per_sm / shared);
  return std::max<int64_t>(1, blocks);
}

Result<void> check_launch(const Launch& launch, const EntryFacts& entry, const DeviceFacts& device,
                          const std::string& where) {
  CG_CHECK(check_grid(launch, device, where));
  CG_CHECK(check_block(launch, entry, device, where));
  CG_CHECK(check_cluster(launch, device, where));
  CG_CHECK(check_shared(launch, entry, device, where));
  return check_cooperative(launch, entry, device, where);
}

}  // namespace cutegen
