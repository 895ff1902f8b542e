// SPDX-License-Identifier: Apache-2.0
// The compile cache stores compile results on disk, each under its build_id (a hash of everything
// that determines the result). A lookup does not preprocess the source.
//
// Contract: for each request key, the cache stores the list of headers that an earlier compile
// included (the include closure). If these headers are unchanged, find() computes the build_id from
// the headers and returns the result under this build_id. Writes are atomic, and each file contains
// a hash of its content. The cache removes a damaged file and treats it as absent. Several
// processes may share the folder. If the folder exceeds its size limit, the cache removes the least
// recently used files. Thread-safe.
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

// One header of an include closure: its name relative to the include folder, its path, and the hash
// of its content.
struct Header {
  std::string name, path, hash;
  int64_t size = 0, mtime_ns = 0;
};

class HeaderHashes {
 public:
  // Reads and hashes a header. Returns nullopt if it cannot read the file.
  std::optional<Header> read(const std::string& path,
                             const std::vector<std::filesystem::path>& include_dirs);
  // Returns whether the header on disk still has the content that `then` describes.
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
  // If a write fails, store() only logs the failure, and the next lookup misses.
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
  int64_t bytes_ = -1;  // estimated size of the folder; -1: not measured
};

// Hashes names and contents of the closure's headers. The hash does not depend on the machine.
std::string closure_hash(const std::vector<Header>& closure);

}  // namespace cutegen::toolchain
