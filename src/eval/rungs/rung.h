// SPDX-License-Identifier: Apache-2.0
// The services that all rungs (checks) of an evaluation use, and the type of a rung's result.
//
// Contract: if the candidate is at fault, a rung returns a RungEnd with the status. It returns an
// Error only if cutegen itself fails (so the verdict is `aborted`), or if the Context was cancelled
// or timed out.
//
// Example: return rung_failed("...");
#pragma once

#include <functional>
#include <memory>

#include "core/program.h"
#include "core/test_case.h"
#include "core/verdict.h"
#include "eval/runner/runner.h"
#include "eval/sets/truth_pool.h"
#include "gpu/spec.h"
#include "toolchain/assembler.h"
#include "toolchain/toolchain.h"

namespace cutegen::eval {

class DerivedShapes;
class Excerpts;
class HardwareCounters;
class GpuTruths;

// What the rungs (checks) need to know about the device, the open task and the present evaluation.
// A copy of Services shares ownership of all services, so no reference can dangle.
struct Services {
  std::shared_ptr<toolchain::Toolchain> toolchain;
  std::shared_ptr<toolchain::Assembler> assembler;
  std::shared_ptr<Runner> runner;
  std::shared_ptr<Runner> simulator;  // on a GPU: a simulator that detects races; may be null
  std::shared_ptr<TruthPool> pool;
  std::shared_ptr<Excerpts> excerpts;          // on a simulator: input sets for large shapes
  std::shared_ptr<GpuTruths> official;         // on a GPU: input sets for large official shapes
  std::shared_ptr<HardwareCounters> counters;  // on a GPU: hardware counters for profiles
  DeviceName device_name;
  bool on_gpu() const { return device_name.is_gpu(); }
  DeviceFacts device;
  device::DeviceIdentity identity;  // GPU name, UUID, driver; empty on a simulator
  GpuSpec gpu;
  int threads = 0;
  // Time limit for a run at the official shape (the sizes in the task file) on a simulator.
  // On a busy machine, a product on tensor cores once took 98 s.
  Nanoseconds official_limit = std::chrono::seconds(180);
  std::vector<std::string> families;
  bool precision_tells = true;             // comparing outputs detects lower precision
  uint64_t sample_seed = 1;                // secret seed that selects the CTAs to simulate
  std::shared_ptr<DerivedShapes> derived;  // null: no test shapes for tile sizes and loops
  std::vector<TestCase> proposed;          // additional tests that a model proposed
};

struct RungEnd {
  bool passed = true;
  Status status = Status::correct;  // status of the verdict if the rung failed
  std::string headline, detail;     // detail: only one line if the rung passed
  std::vector<Mismatch> mismatches;
};

inline RungEnd rung_passed(std::string detail = {}) {
  return {.passed = true,
          .status = Status::correct,
          .headline = {},
          .detail = std::move(detail),
          .mismatches = {}};
}
inline RungEnd rung_ended(Status status, std::string headline, std::string detail = {}) {
  return {.passed = false,
          .status = status,
          .headline = std::move(headline),
          .detail = std::move(detail),
          .mismatches = {}};
}
inline RungEnd rung_failed(std::string headline, std::string detail = {}) {
  return rung_ended(Status::failed, std::move(headline), std::move(detail));
}
// Converts a user error to the status `failed`, and an `unsupported` error to the status
// `unsupported`. Returns any other error unchanged, because cutegen itself failed.
Result<RungEnd> rung_of(const Error& error);

using Progress = std::function<void(const std::string&)>;

}  // namespace cutegen::eval
