// SPDX-License-Identifier: Apache-2.0
// The compile cache: results on disk under their build_id, found before the include closure is
// known.
//
// Contract: a lookup goes request key -> the closure that it had when it was compiled -> are those
// headers still the same -> build_id -> result. Files are written atomically, carry a hash of their
// content, and a damaged one is removed and counts as absent. Several processes may share the
// folder; the oldest results go when it exceeds its limit. Thread-safe.
//
// Example: if (auto hit = cache.find(key)) return *hit;  ...  cache.store(key, base, closure,
// result);
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

// One header of a closure: the name below its include folder, where it was, what it held.
struct Header {
  std::string name, path, hash;
  int64_t size = 0, mtime_ns = 0;
};

class HeaderHashes {
 public:
  // Nothing if the file cannot be read.
  [[nodiscard]] std::optional<Header> read(const std::string& path,
                                           const std::vector<std::filesystem::path>& include_dirs);
  // Whether the header on disk still has the content of `then`.
  [[nodiscard]] bool unchanged(const Header& then);

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

  [[nodiscard]] std::optional<CacheHit> find(const std::string& request_key);
  // Failures to write are not the caller's trouble: the next lookup misses.
  void store(const std::string& request_key, const std::string& build_id,
             const std::vector<Header>& closure, const Json& result);
  [[nodiscard]] HeaderHashes& headers() { return headers_; }

 private:
  using Closure = std::vector<Header>;
  [[nodiscard]] std::filesystem::path place(const char* kind, const std::string& id) const;
  [[nodiscard]] std::optional<std::string> load(const std::filesystem::path& path) const;
  bool save(const std::filesystem::path& path, const std::string& text) const;
  [[nodiscard]] std::shared_ptr<const Closure> closure(const std::string& id);
  void evict();

  std::filesystem::path dir_;
  int64_t limit_bytes_;
  HeaderHashes headers_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Closure>> closures_;
  int64_t bytes_ = -1;  // what this process believes the folder holds; -1 = not looked yet
};

// Names and contents of a closure as one hash, the same on every machine.
[[nodiscard]] std::string closure_hash(const std::vector<Header>& closure);

}  // namespace cutegen::toolchain
