// SPDX-License-Identifier: Apache-2.0
// The tools that all rungs of the ladder use, and how a rung ends.
//
// Contract: a rung returns RungEnd for every fault of the candidate. It returns an Error only for
// cutegen's own failures (the verdict is then `aborted`) or if the Context ended.
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

// The tools, and the data of the device, the open task and one evaluation. A value that shares what
// it uses, so nothing in it can dangle.
struct Services {
  std::shared_ptr<toolchain::Toolchain> toolchain;
  std::shared_ptr<toolchain::Assembler> assembler;
  std::shared_ptr<Runner> runner;
  std::shared_ptr<Runner> simulator;  // on a GPU: finds races; may be null
  std::shared_ptr<TruthPool> pool;
  std::shared_ptr<Excerpts> excerpts;          // on a simulator: values at large official shapes
  std::shared_ptr<GpuTruths> official;         // on a GPU: values at large official shapes
  std::shared_ptr<HardwareCounters> counters;  // on a GPU: counters for profiles
  DeviceName device_name;
  bool on_gpu() const { return device_name.is_gpu(); }
  DeviceFacts device;
  device::DeviceIdentity identity;  // identifies the GPU; empty on a simulator
  GpuSpec gpu;
  int threads = 0;
  // Time limit of a run at the official shape on a simulator.
  Nanoseconds official_limit = std::chrono::seconds(60);
  std::vector<std::string> families;
  bool precision_tells = true;             // lower-precision solutions fail on the open task
  uint64_t sample_seed = 1;                // secret seed of the timed CTAs, one per opened task
  std::shared_ptr<DerivedShapes> derived;  // from a program's tiles; null: no derived shapes
  std::vector<TestCase> proposed;          // additional tests from a tester
};

struct RungEnd {
  bool passed = true;
  Status status = Status::correct;  // why the rung did not pass
  std::string headline, detail;     // detail: one line if it passed
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
// A user error fails the candidate, and `unsupported` stays so. Every other error is cutegen's own.
Result<RungEnd> rung_of(const Error& error);

using Progress = std::function<void(const std::string&)>;

}  // namespace cutegen::eval
