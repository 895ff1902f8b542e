// SPDX-License-Identifier: Apache-2.0
// The compile cache: results on disk under their build_id. A lookup needs no preprocessing of the
// includes.
//
// Contract: from the request key, a lookup finds the include closure of the earlier compile. If
// those headers are unchanged, they give the build_id, and this gives the result. Writes are
// atomic, and files carry a hash of their content. The cache removes a damaged file and treats it
// as absent. Several processes may share the folder. When the folder exceeds its limit, the cache
// removes the least recently used files. Thread-safe.
//
// Example:
//   if (auto hit = cache.find(key)) return *hit;
//   cache.store(key, base, closure, result);
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace cutegen::toolchain {

// One header of a closure: its name below the include folder, its path, and the hash of its
// content.
struct Header {
  std::string name, path, hash;
  int64_t size = 0, mtime_ns = 0;
};

class HeaderHashes {
 public:
  // Empty if the file cannot be read.
  std::optional<Header> read(const std::string& path,
                             const std::vector<std::filesystem::path>& include_dirs);
  // Whether the header on disk still has the content of `then`.
  bool unchanged(const Header& then);

 private:
  std::mutex mutex_;
  std::map<std::string, Header> known_;
};

struct CacheHit {
  std::string build_id;
  Json result;
};

class Cache {
 public:
  Cache(std::filesystem::path dir, int64_t limit_bytes);

  std::optional<CacheHit> find(const std::string& request_key);
  // A failed write is only logged; the next lookup then misses.
  void store(const std::string& request_key, const std::string& build_id,
             const std::vector<Header>& closure, const Json& result);
  HeaderHashes& headers() { return headers_; }

 private:
  using Closure = std::vector<Header>;
  std::filesystem::path place(const char* kind, const std::string& id) const;
  std::optional<std::string> load(const std::filesystem::path& path) const;
  bool save(const std::filesystem::path& path, const std::string& text) const;
  std::shared_ptr<const Closure> closure(const std::string& id);
  void evict();

  std::filesystem::path dir_;
  int64_t limit_bytes_;
  HeaderHashes headers_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Closure>> closures_;
  int64_t bytes_ = -1;  // estimated size of the folder; -1: not yet measured
};

// Hashes the closure's names and contents. The hash is the same on every machine.
std::string closure_hash(const std::vector<Header>& closure);

}  // namespace cutegen::toolchain
