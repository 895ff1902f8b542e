// SPDX-License-Identifier: Apache-2.0
// Measures the baselines of many tasks on one GPU in parallel.
//
// Contract: `jobs` torch workers describe and admit the tasks on CPU cores, then open, build and
// time their baselines. They build in parallel, but time one at a time (under the GPU's lock). One
// more worker computes the float64 truth of each official shape. With it, the worker judges the
// baselines that need no build. A job starts when the GPU has enough free memory: the smallest
// build first, the largest truth first. A job that runs out of memory runs again with the GPU to
// itself. Each task becomes a row: measured, `cached` (in the request's list), or the reason why
// there are no times. Several threads call the callbacks, one at a time. Tasks without a final row
// had no time left.
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
