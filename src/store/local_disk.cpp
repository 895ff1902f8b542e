// SPDX-License-Identifier: Apache-2.0
#include "store/local_disk.h"

#include <sys/vfs.h>

#include <map>

namespace cutegen::store {

std::optional<std::string> network_file_system(unsigned long magic) {
  static const std::map<unsigned long, const char*> names{
      {0x6969, "NFS"},      {0x517B, "SMB"},        {0xFF534D42, "CIFS"}, {0xFE534D42, "SMB2"},
      {0x5346414F, "AFS"},  {0x73757245, "Coda"},   {0x00C36400, "Ceph"}, {0x0BD00BD0, "Lustre"},
      {0x47504653, "GPFS"}, {0x19830326, "BeeGFS"}, {0x564C, "NCP"},      {0x01161970, "GFS2"},
  };
  auto it = names.find(magic & 0xFFFFFFFFul);
  if (it == names.end()) return std::nullopt;
  return it->second;
}

Result<void> require_local_disk(const std::filesystem::path& dir) {
  struct statfs info{};
  if (::statfs(dir.c_str(), &info) != 0) return errno_error("statfs " + dir.string());
  auto network = network_file_system(uint64_t(info.f_type));
  if (!network) return {};
  return world_error("'" + dir.string() + "' is on a network file system (" + *network +
                         "); the journal of runs needs shared memory between processes, which "
                         "works on a local disk only",
                     "choose a local folder with --runs DIR or CUTEGEN_RUNS_DIR");
}

}  // namespace cutegen::store
