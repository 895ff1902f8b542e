// SPDX-License-Identifier: Apache-2.0
#include "eval/api/suite.h"

#include "base/fields.h"

namespace cutegen::eval {
namespace {

constexpr size_t kMostSuiteTasks = 10'000, kMostKnown = 100'000, kMostWanted = 64;
constexpr int64_t kMostJobs = 64;

}  // namespace

Names<BaselineStatus> enum_names(BaselineStatus) {
  static constexpr Name<BaselineStatus> names[] = {{BaselineStatus::measured, "measured"},
                                                   {BaselineStatus::cached, "cached"},
                                                   {BaselineStatus::error, "error"},
                                                   {BaselineStatus::unfinished, "unfinished"},
                                                   {BaselineStatus::pending, "pending"}};
  return names;
}

void fields(Fields& v, SuiteFile& f) {
  v("number", f.number);
  v("name", f.name);
  v("file", f.file);
}

void fields(Fields& v, KnownBaselines& k) {
  v("task_id", k.task_id);
  v("gpu", k.gpu);
  v("driver", k.driver);
  v("torch", k.torch);
}

void fields(Fields& v, SuiteRequest& q) {
  v("tasks", q.tasks, field::most(kMostSuiteTasks));
  v("asked", q.asked, field::written_if(!q.asked.empty()));
  v("baselines", q.baselines, field::most(kMostWanted));
  v("jobs", q.jobs, field::between(1, kMostJobs));
  v("open_ns", q.limits.open);
  v("build_ns", q.limits.build);
  v("minutes", q.minutes);
  v("known", q.known, field::list(kMostKnown));
}

void fields(Fields& v, SuiteRow& r) {
  v("number", r.number);
  v("status", r.status);
  v("reason", r.reason, field::if_set);
  v("record", r.record);
  v("describe_s", r.describe_s);
}

void fields(Fields& v, SuiteNews& n) {
  v("gpu", n.gpu, field::if_set);
  v("uuid", n.uuid, field::if_set);
  v("driver", n.driver, field::if_set);
  v("torch", n.torch, field::if_set);
  v("controls", n.controls);
  v("trouble", n.trouble, field::if_set);
  v("row", n.row);
}

}  // namespace cutegen::eval
