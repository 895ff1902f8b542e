// SPDX-License-Identifier: Apache-2.0
// A suite of baselines: the tasks whose baselines an evaluator measures in parallel on one GPU, and
// the messages that it sends meanwhile.
//
// Contract: the evaluator must have been started with `suites`. A row that is still `pending` has
// what is known of its task so far; a row with another status is final. Only the fields of the news
// that changed are set. The evaluator does not read the cache of earlier times: the request lists
// what the cache has, and the row of such a task has only the key of its record.
//
// Example: CG_CHECK(evaluator->measure_suite(ctx, request, [&](const SuiteNews& n) { use(n); }));
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/asked_accuracy.h"
#include "core/baseline.h"
#include "eval/api/wanted_baselines.h"

namespace cutegen::eval {

enum class BaselineStatus {
  measured,
  cached,      // measured earlier
  error,       // the task could not be described
  unfinished,  // the time was up, or the user stopped
  pending,
};
Names<BaselineStatus> enum_names(BaselineStatus);

struct SuiteFile {
  int number = 0;  // identifies the task in rows
  std::string name;
  std::filesystem::path file;
};

// The key of a record of baselines (engine/run/baseline_cache.h).
struct KnownBaselines {
  std::string task_id, gpu, driver, torch;
  bool operator==(const KnownBaselines&) const = default;
};

struct SuiteRequest {
  std::vector<SuiteFile> tasks;
  AskedAccuracy asked = {};  // for every task
  std::vector<torch::BaselineWanted> baselines;
  int jobs = 1;
  BaselineLimits limits;
  double minutes = 0;                 // 0: no limit
  std::vector<KnownBaselines> known;  // tasks that need not be measured
};

struct SuiteRow {
  int number = 0;
  BaselineStatus status = BaselineStatus::pending;
  std::string reason;
  BaselineRecord record;  // without date
  double describe_s = 0;  // time to describe and admit the task
};

struct SuiteNews {
  std::string gpu, uuid, driver, torch;
  std::optional<std::vector<ControlTime>> controls = std::nullopt;
  std::string trouble = {};  // why the controls have no times
  std::optional<SuiteRow> row = std::nullopt;
};
using OnSuiteNews = std::function<void(const SuiteNews&)>;

void fields(Fields& v, SuiteFile& file);
void fields(Fields& v, KnownBaselines& known);
void fields(Fields& v, SuiteRequest& request);
void fields(Fields& v, SuiteRow& row);
void fields(Fields& v, SuiteNews& news);

}  // namespace cutegen::eval
