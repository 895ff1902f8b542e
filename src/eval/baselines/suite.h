// SPDX-License-Identifier: Apache-2.0
// Measures the baselines of many tasks on one GPU in parallel.
//
// Contract: `jobs` torch workers describe the tasks and judge their degenerate solutions on CPU
// cores, and then build and time the baselines. The workers build in parallel, but a worker times
// only while it has the GPU's lock. One more worker computes the float64 truth of each task at its
// official shape (the sizes in the task file), and judges the eager baselines against the truth. A
// job starts when the GPU has enough free memory. Among builds, the job with the least memory
// starts first; among truths, the job with the most memory. A job that runs out of memory runs
// again, alone on the GPU. Each task gets a row with its times, with the status `cached` (if the
// request lists the task), or with the reason for missing times. Several threads call `news` and
// `progress`, one thread at a time. If the time runs out, the remaining tasks get no final row.
//
// Example: CG_CHECK(measure_suite(real_suite_parts(o, request), ctx, request, news, progress));
#pragma once

#include "eval/api/suite.h"
#include "eval/baselines/suite_parts.h"

namespace cutegen::eval {

Result<void> measure_suite(const SuiteParts& parts, const Context& ctx, const SuiteRequest& request,
                           const OnSuiteNews& news,
                           const std::function<void(const std::string&)>& progress = {});

}  // namespace cutegen::eval
