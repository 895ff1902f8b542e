// SPDX-License-Identifier: Apache-2.0
// A suite of baselines: many tasks whose baselines one evaluator times on one GPU, and the messages
// with which the evaluator reports results.
//
// Contract: the evaluator needs the option `suites`. Each task has a row of results, which is final
// unless its status is `pending`. In SuiteNews, only fields that changed have values. The evaluator
// does not read the cache of earlier times. If the request lists a task's cached record, the task's
// row has only the record's key.
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
  cached,      // the cache has the times
  error,       // the torch worker could not describe the task
  unfinished,  // the time limit or the user stopped the measurement
  pending,
};
Names<BaselineStatus> enum_names(BaselineStatus);

struct SuiteFile {
  int number = 0;  // identifies the task in SuiteRow
  std::string name;
  std::filesystem::path file;
};

// The cache key of a BaselineRecord (engine/run/baseline_cache.h).
struct KnownBaselines {
  std::string task_id, gpu, driver, torch;
  bool operator==(const KnownBaselines&) const = default;
};

struct SuiteRequest {
  std::vector<SuiteFile> tasks;
  AskedAccuracy asked = {};  // accuracy settings of the user, for every task
  std::vector<torch::BaselineWanted> baselines;
  int jobs = 1;
  BaselineLimits limits;
  double minutes = 0;                 // 0: no limit
  std::vector<KnownBaselines> known;  // cached records; the evaluator skips their tasks
};

struct SuiteRow {
  int number = 0;
  BaselineStatus status = BaselineStatus::pending;
  std::string reason;
  BaselineRecord record;  // record without a date
  double describe_s = 0;  // time to describe the task and judge degenerate solutions
};

struct SuiteNews {
  std::string gpu, uuid, driver, torch;
  std::optional<std::vector<ControlTime>> controls = std::nullopt;
  std::string trouble = {};  // why the control kernels have no times
  std::optional<SuiteRow> row = std::nullopt;
};
using OnSuiteNews = std::function<void(const SuiteNews&)>;

void fields(Fields& v, SuiteFile& file);
void fields(Fields& v, KnownBaselines& known);
void fields(Fields& v, SuiteRequest& request);
void fields(Fields& v, SuiteRow& row);
void fields(Fields& v, SuiteNews& news);

}  // namespace cutegen::eval
