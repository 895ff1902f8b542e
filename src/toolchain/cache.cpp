// SPDX-License-Identifier: Apache-2.0
#include "toolchain/cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"

namespace cutegen::toolchain {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostEntryBytes = size_t{64} << 20;
constexpr size_t kMostHeaderBytes = size_t{16} << 20;
constexpr size_t kHashBytes = 64;

bool stat_header(const std::string& path, Header& out) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  out.path = path;
  out.size = info.st_size;
  out.mtime_ns = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  return true;
}

bool same_stamp(const Header& a, const Header& b) {
  return a.size == b.size && a.mtime_ns == b.mtime_ns;
}

Json to_json(const std::vector<Header>& closure) {
  Json out = Json::array();
  for (const Header& h : closure) out.push_back({h.name, h.path, h.hash, h.size, h.mtime_ns});
  return out;
}

std::optional<std::vector<Header>> closure_from(const std::string& text) {
  auto json = parse_json(text, "closure");
  if (!json || !json->is_array()) return std::nullopt;
  std::vector<Header> out;
  for (const Json& row : *json) {
    if (!row.is_array() || row.size() != 5 || !row[0].is_string() || !row[1].is_string() ||
        !row[2].is_string() || !row[3].is_number_integer() || !row[4].is_number_integer())
      return std::nullopt;
    out.push_back(
        {.name = row[0], .path = row[1], .hash = row[2], .size = row[3], .mtime_ns = row[4]});
  }
  return out;
}

void touch(const fs::path& path) {
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
}

}  // namespace

std::optional<Header> HeaderHashes::read(const std::string& path,
                                         const std::vector<fs::path>& dirs) {
  Header now;
  if (!stat_header(path, now)) return std::nullopt;
  {
    std::lock_guard lock(mutex_);
    auto at = known_.find(path);
    if (at != known_.end() && same_stamp(at->second, now)) return at->second;
  }
  auto text = read_file(path, kMostHeaderBytes);
  if (!text) return std::nullopt;
  now.hash = sha256(*text);
  now.name = path;
  size_t longest = 0;
  std::error_code error;
  for (const fs::path& dir : dirs) {
    std::string prefix = fs::canonical(dir, error).string() + "/";
    if (!path.starts_with(prefix) || prefix.size() <= longest) continue;
    longest = prefix.size();
    now.name = path.substr(longest);
  }
  std::lock_guard lock(mutex_);
  known_[path] = now;
  return now;
}

bool HeaderHashes::unchanged(const Header& then) {
  Header now;
  if (!stat_header(then.path, now)) return false;
  if (same_stamp(now, then)) return true;
  auto again = read(then.path, {});
  return again && again->hash == then.hash;
}

Cache::Cache(fs::path dir, int64_t limit_bytes) : dir_(std::move(dir)), limit_bytes_(limit_bytes) {}

fs::path Cache::place(const char* kind, const std::string& id) const {
  return dir_ / kind / id.substr(0, 2) / id;
}

std::optional<std::string> Cache::load(const fs::path& path) const {
  auto text = read_file(path, kMostEntryBytes);
  if (!text) return std::nullopt;
  bool whole =
      text->size() > kHashBytes &&
      text->compare(0, kHashBytes, sha256(std::string_view(*text).substr(kHashBytes))) == 0;
  if (!whole) {
    log_warning("the cache entry {} is damaged; cutegen drops it", path.filename().string());
    std::error_code error;
    fs::remove(path, error);
    return std::nullopt;
  }
  return text->substr(kHashBytes);
}

bool Cache::save(const fs::path& path, const std::string& text) const {
  auto saved = private_dir(path.parent_path());
  if (saved) saved = write_file(path, sha256(text) + text);
  if (!saved) log_warning("the compile cache cannot be written: {}", saved.error().message);
  return saved.has_value();
}

std::shared_ptr<const Cache::Closure> Cache::closure(const std::string& id) {
  {
    std::lock_guard lock(mutex_);
    if (auto at = closures_.find(id); at != closures_.end()) return at->second;
  }
  auto text = load(place("closures", id));
  auto parsed = text ? closure_from(*text) : std::nullopt;
  if (!parsed) return nullptr;
  auto shared = std::make_shared<const Closure>(std::move(*parsed));
  std::lock_guard lock(mutex_);
  closures_[id] = shared;
  return shared;
}

std::optional<CacheHit> Cache::find(const std::string& request_key) {
  auto request = load(place("requests", request_key));
  if (!request || request->size() != 2 * kHashBytes) return std::nullopt;
  std::string build_id = request->substr(kHashBytes);
  auto headers = closure(request->substr(0, kHashBytes));
  if (!headers) return std::nullopt;
  for (const Header& h : *headers)
    if (!headers_.unchanged(h)) return std::nullopt;
  fs::path path = place("builds", build_id);
  auto text = load(path);
  if (!text) return std::nullopt;
  auto result = parse_json(*text, "cache entry", kMostEntryBytes);
  if (!result || !result->is_object()) return std::nullopt;
  touch(path);
  return CacheHit{.build_id = build_id, .result = std::move(*result)};
}

void Cache::store(const std::string& request_key, const std::string& build_id,
                  const std::vector<Header>& closure, const Json& result) {
  std::string headers = dump_json(to_json(closure));
  std::string closure_id = sha256(headers);
  std::string body = dump_json(result);
  std::error_code error;
  fs::path closure_path = place("closures", closure_id);
  bool ok = fs::exists(closure_path, error) || save(closure_path, headers);
  touch(closure_path);
  ok = ok && save(place("builds", build_id), body);
  ok = ok && save(place("requests", request_key), closure_id + build_id);
  if (!ok) return;
  std::lock_guard lock(mutex_);
  if (bytes_ >= 0) bytes_ += int64_t(body.size() + 4 * kHashBytes);
  if (bytes_ < 0 || bytes_ > limit_bytes_) evict();
}

// Measures the folder and, if it is over its limit, removes the oldest files down to 90% of it.
void Cache::evict() {
  struct Entry {
    fs::file_time_type time;
    int64_t size;
    fs::path path;
  };
  std::vector<Entry> all;
  bytes_ = 0;
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(dir_, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code gone;  // another process may remove files meanwhile
    if (!it->is_regular_file(gone) || gone) continue;
    Entry e{.time = it->last_write_time(gone),
            .size = int64_t(it->file_size(gone)),
            .path = it->path()};
    if (gone) continue;
    bytes_ += e.size;
    all.push_back(std::move(e));
  }
  if (bytes_ <= limit_bytes_) return;
  std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.time < b.time; });
  for (const Entry& e : all) {
    if (bytes_ <= limit_bytes_ / 10 * 9) break;
    fs::remove(e.path, error);
    bytes_ -= e.size;
  }
}

std::string closure_hash(const std::vector<Header>& closure) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Header& h : closure) rows.emplace_back(h.name, h.hash);
  std::sort(rows.begin(), rows.end());
  Hasher hasher;
  for (const auto& [name, hash] : rows) hasher.field(name).field(hash);
  return hasher.hex();
}

}  // namespace cutegen::toolchain
