// SPDX-License-Identifier: Apache-2.0
#include "engine/run/baseline_cache.h"

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/hash.h"

namespace cutegen::engine {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostRecord = size_t{1} << 20;

fs::path default_folder() {
  if (const char* set = std::getenv("CUTEGEN_CACHE"); set && *set)
    return fs::path(set) / "baselines";
  if (const char* set = std::getenv("XDG_CACHE_HOME"); set && *set == '/')
    return fs::path(set) / "cutegen" / "baselines";
  if (const char* home = std::getenv("HOME"); home && *home == '/')
    return fs::path(home) / ".cache" / "cutegen" / "baselines";
  return fs::temp_directory_path() / "cutegen-cache" / "baselines";
}

std::string record_name(const std::string& task_id, const std::string& gpu,
                        const std::string& driver, const std::string& torch) {
  Hasher h;
  h.field(task_id).field(gpu).field(driver).field(torch);
  return h.hex() + ".json";
}

std::string controls_name(const std::string& gpu, const std::string& driver) {
  Hasher h;
  h.field("controls").field(gpu).field(driver);
  return h.hex() + ".json";
}

int64_t seconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

Result<Json> json_of(const fs::path& file) {
  CG_TRY(std::string text, read_file(file, kMostRecord));
  return parse_json(text, file.string(), kMostRecord);
}

bool has_times_of(const BaselineRecord& record, const std::vector<torch::BaselineWanted>& wanted) {
  return std::ranges::all_of(wanted, [&](const torch::BaselineWanted& w) {
    return std::ranges::find(record.times, w.name(), &BaselineTime::kind) != record.times.end();
  });
}

struct KeptControls {
  int64_t timed = 0;  // seconds since 1970
  std::vector<ControlTime> controls;
};

void fields(Fields& v, KeptControls& kept) {
  v.document("controls#");
  v("timed", kept.timed);
  v("controls", kept.controls);
}

}  // namespace

BaselineCache::BaselineCache(fs::path folder)
    : folder_(folder.empty() ? default_folder() : std::move(folder)) {}

std::optional<BaselineRecord> BaselineCache::find(const std::string& task_id,
                                                  const std::string& gpu, const std::string& driver,
                                                  const std::string& torch) const {
  auto json = json_of(folder_ / record_name(task_id, gpu, driver, torch));
  if (!json) return std::nullopt;
  auto record = read_json<BaselineRecord>(*json);
  const bool same = record && record->task_id == task_id && record->gpu == gpu &&
                    record->driver == driver && record->torch == torch;
  if (!same) return std::nullopt;
  drop_accuracy_of_other_policy(*record);
  return std::move(*record);
}

std::optional<BaselineRecord> BaselineCache::find(const eval::OpenedTask& o) const {
  return find(o.task.id, o.gpu, o.driver, o.torch);
}

std::vector<eval::KnownBaselines> BaselineCache::with_times_of(
    const std::vector<torch::BaselineWanted>& wanted) const {
  std::vector<eval::KnownBaselines> out;
  std::error_code none;  // there is no folder
  for (const auto& entry : fs::directory_iterator(folder_, none)) {
    auto json = json_of(entry.path());
    if (!json) continue;
    auto r = read_json<BaselineRecord>(*json);
    if (!r || r->cut || !has_times_of(*r, wanted)) continue;
    if (r->policy_version != Verdict().policy_version) continue;
    out.push_back({.task_id = r->task_id, .gpu = r->gpu, .driver = r->driver, .torch = r->torch});
  }
  return out;
}

Result<void> BaselineCache::keep(const BaselineRecord& r) const {
  CG_CHECK(private_dir(folder_));
  return write_file(folder_ / record_name(r.task_id, r.gpu, r.driver, r.torch),
                    dump_json(to_json(r), 1) + "\n");
}

std::optional<std::vector<ControlTime>> BaselineCache::controls(const std::string& gpu,
                                                                const std::string& driver) const {
  auto json = json_of(folder_ / controls_name(gpu, driver));
  if (!json) return std::nullopt;
  auto kept = read_json<KeptControls>(*json);
  if (!kept) return std::nullopt;
  const int64_t age = seconds_now() - kept->timed;
  const bool fresh = age >= 0 && age <= std::chrono::seconds(kFresh).count();
  return fresh ? std::optional(std::move(kept->controls)) : std::nullopt;
}

Result<void> BaselineCache::keep_controls(const std::string& gpu, const std::string& driver,
                                          const std::vector<ControlTime>& controls) const {
  CG_CHECK(private_dir(folder_));
  const KeptControls kept{.timed = seconds_now(), .controls = controls};
  return write_file(folder_ / controls_name(gpu, driver), dump_json(to_json(kept)) + "\n");
}

}  // namespace cutegen::engine
