// SPDX-License-Identifier: Apache-2.0
// Verdict: the evaluator's judgement of a candidate, with evidence. Feedback: a short form for a
// model or a person.
//
// Contract: each verdict has one of five statuses. Every figure carries its origin. JSON forms are
// versioned; golden files pin them.
//
// Example: if (v.status == Status::correct && v.timing) use(v.timing->time_ns);
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/fields.h"
#include "base/protection.h"
#include "core/audit.h"
#include "core/profile.h"

namespace cutegen {

enum class Status { correct, failed, rejected, unsupported, aborted };
enum class Rung { lint, compile, audit, load, correctness, timing, profile };
enum class RungResult { passed, failed, skipped };
// The limits on an output's error: per element, its root mean square, its mean (bias), and the
// user's own (--rtol, --atol).
enum class Gate { element, rms, bias, user };

struct RungReport {
  Rung rung = Rung::lint;
  RungResult result = RungResult::skipped;
  Nanoseconds elapsed{0};
  std::string detail;  // one line: why the rung failed or was skipped
};

// Describes wrong values of one output without showing any value of a secret input set.
struct Mismatch {
  std::string shape, family, output;
  int64_t elements = 0, wrong = 0, nan = 0, unwritten = 0;
  std::vector<std::vector<int64_t>> first;  // coordinates of the first wrong elements (at most 5)
  std::string pattern;                      // "every row from column 1024 on", "last tile", ...
  double worst_ratio = 0;                   // the largest error / tolerance
  Gate gate = Gate::element;                // the limit that failed; worst_ratio refers to it
};

struct Feedback {
  std::string headline;  // the first root error, one line
  std::string detail;    // <= 1.5 KB: compiler digest, findings, mismatches
  std::vector<Mismatch> mismatches;
  std::string bottleneck;  // what limits the program, from the profile; may be empty
  std::string resources;   // registers and spills per kernel, from the audit; may be empty
};

inline constexpr const char* kIncumbent = "incumbent";  // the best program of the run so far

// This program timed against another one: alternating runs in random order on one device.
struct PairedRatio {
  std::string against;     // kIncumbent or the kind of a baseline (core/baseline.h)
  std::string program_id;  // id of the other program, if it is a kernel program
  // The other's time / this program's time (above 1: this program is faster): the median over the
  // pairs, with its 95% interval.
  double speedup = 1, low = 1, high = 1;
  double other_ns = 0;  // the other's median time
  int pairs = 0;
  std::string stopped;  // why the series of pairs ended: "slower", "precise", "enough"
};

// The times at one shape, if the task has several weighted shapes.
struct ShapeTiming {
  std::string shape;
  double weight = 1, time_ns = 0, floor_ns = 0;
  std::optional<double> low_ns, high_ns;
  std::vector<PairedRatio> paired = {};
};

// The times that the runner reports, and the times by the evaluator's own clock. The overhead of
// empty runs is subtracted from both.
struct ClockCheck {
  double claimed_ns = 0, seen_ns = 0;  // over all blocks of timed runs
  bool agrees = true;
};

struct Timing {
  Origin origin = Origin::modelled;
  std::string shape;
  double time_ns = 0;
  double floor_ns = 0;      // no correct program is faster: traffic at nominal bandwidth
  double roofline_ns = 0;   // an estimate for the graph as written; 0: unknown
  double reachable_ns = 0;  // least bytes at a copy's bandwidth, plus a launch; 0: unknown
  std::optional<double> low_ns, high_ns;  // 95% interval, if measured
  std::string bound_by;
  int samples = 0;  // timed runs; 0 if nothing was measured
  // The SM clock during the timed runs: the median, and the lowest.
  std::optional<double> sm_clock_hz, sm_clock_least_hz;
  std::vector<PairedRatio> paired;
  std::optional<ClockCheck> clock;
  // Each shape, if the task has several weighted shapes. time_ns and paired are then their weighted
  // geometric means.
  std::vector<ShapeTiming> shapes;
};

// The protection that was in effect while the candidate was compiled and run.
struct SandboxGrade {
  Protection label = Protection::none;
  std::map<std::string, bool> held;  // "namespaces", "network", "seccomp", "rlimits", ...
};

// The result under the looser rule of public benchmarks, for the task's own input distribution. It
// never changes the verdict.
struct Compat {
  std::string rule;  // "allclose 1e-4"
  int64_t elements = 0, wrong = 0;
};

// The aggregate error of one output over one set, each element in units of its own scale. The
// verdict keeps the set nearest to the limit.
struct ErrorGate {
  std::string output, family, shape;
  double rms = 0, native_rms = 0, sequential_rms = 0, rms_limit = 0;
  double bias = 0, native_bias = 0, bias_limit = 0;
};

// The errors of the outputs and of the native reference against the truth. Covers floating-point
// elements at the test shapes, for the task's own input distribution.
struct Accuracy {
  int64_t elements = 0;
  // The largest |value - truth| of the outputs, and of the native reference.
  double error = 0, native_error = 0;
  double largest = 0;  // the largest |truth|
  double share = 0;    // the largest error / tolerance
  // The aggregate errors of the input sets that came nearest to their limits.
  std::optional<ErrorGate> rms, bias;
};

struct Verdict {
  Status status = Status::aborted;
  std::string program_id, task_id, device;
  std::string gpu, driver;  // "NVIDIA H200", "580.159.04"; empty for a simulated device
  std::vector<std::string> build_ids;
  // What each version added. 2: sensitivity beyond kinks. 3: floors that no program beats, limits
  // on whole outputs, math modes from dtypes. 5: a mode for each output, limits on whole sampled
  // outputs, coverage by place and opcode. 8: the simulator's sample of the official shape has each
  // kind of block.
  int policy_version = 8;
  std::string math_mode;  // the permitted rounding, in words (mode_text)
  std::vector<RungReport> rungs;
  Feedback feedback;
  std::optional<Timing> timing;
  std::optional<Profile> profile;
  std::optional<BinaryAudit> audit;
  SandboxGrade sandbox;
  std::vector<std::string> skipped;  // checks that did not run, with the reason
  // Which blocks' values at the official shape were not compared, or why none were. Empty if the
  // evaluator compared values of each kind of block.
  std::string official_not_compared;
  int sets_judged = 0;  // compared sets (shape x family)
  std::optional<Compat> compat;
  std::optional<Accuracy> accuracy;
  std::vector<std::string> marks;  // what limits this verdict: task not admitted, no float64
  Nanoseconds elapsed{0};
};

Names<Status> enum_names(Status);
Names<Rung> enum_names(Rung);
Names<Gate> enum_names(Gate);
Result<Rung> rung_from(const std::string& name);
int exit_code(Status status);
void fields(Fields& v, Verdict& verdict);
// The status in the JSON form of a verdict; empty if it has none.
std::optional<Status> status_in(const Json& verdict);
void fields(Fields& v, Profile& profile);
void fields(Fields& v, PairedRatio& pair);
void fields(Fields& v, SandboxGrade& grade);

}  // namespace cutegen
