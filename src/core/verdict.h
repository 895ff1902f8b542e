// SPDX-License-Identifier: Apache-2.0
// Verdict: the evaluator's judgement of a candidate, with the results of all checks. Feedback: a
// short text form of the verdict for a model or a user.
//
// Contract: a verdict has one `Status`. Every time has an `Origin`: measured, modelled, and so on.
// The JSON form has a version, and tests compare the JSON with golden files.
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
// The limits on an output's errors: on each element, on the root mean square, on the mean (bias),
// and the user's limits (--rtol, --atol).
enum class Gate { element, rms, bias, user };

struct RungReport {
  Rung rung = Rung::lint;
  RungResult result = RungResult::skipped;
  Nanoseconds elapsed{0};
  std::string detail;  // one line: why this check failed or was skipped
};

// Describes wrong elements of one output without revealing values of the secret inputs.
struct Mismatch {
  std::string shape, family, output;
  int64_t elements = 0, wrong = 0, nan = 0, unwritten = 0;
  std::vector<std::vector<int64_t>> first;  // coordinates of at most 5 wrong elements
  std::string pattern;                      // position of the wrong elements: "last tile", ...
  // For Gate::element: the largest ratio error / tolerance. For Gate::rms and Gate::bias: the RMS
  // or the bias of the errors, divided by its limit.
  double worst_ratio = 0;
  Gate gate = Gate::element;  // the limit that the output exceeds
};

struct Feedback {
  std::string headline;  // the first error, in one line
  std::string detail;    // at most 1.5 KB: compiler errors, lint findings, mismatches
  std::vector<Mismatch> mismatches;
  std::string bottleneck;  // the limit on the program's speed; empty without a profile
  std::string resources;   // registers and spills per kernel; empty without an audit
};

inline constexpr const char* kIncumbent = "incumbent";  // the best program of the run so far

// The speedup of this program over another program. The evaluator runs the two programs
// alternately, in random order, on one device.
struct PairedRatio {
  std::string against;     // kIncumbent, or the name of a baseline
  std::string program_id;  // the other program's id; empty for a baseline
  // The other program's time divided by this program's time: the median over the pairs of runs,
  // with its 95% interval. A speedup above 1 means that this program is faster.
  double speedup = 1, low = 1, high = 1;
  double other_ns = 0;  // the other program's median time
  int pairs = 0;
  std::string stopped;  // why the evaluator stopped timing pairs: "slower", "precise", "enough"
};

// The times at one shape of a task with several weighted shapes.
struct ShapeTiming {
  std::string shape;
  double weight = 1, time_ns = 0, floor_ns = 0;
  std::optional<double> low_ns, high_ns;
  std::vector<PairedRatio> paired = {};
};

// Compares the times that the runner (the process that executes programs) reports (claimed_ns) with
// the evaluator's own clock (seen_ns). The evaluator subtracts the time of empty runs from
// claimed_ns and seen_ns.
struct ClockCheck {
  double claimed_ns = 0, seen_ns = 0;  // sums over all timed runs
  bool agrees = true;
};

struct Timing {
  Origin origin = Origin::modelled;
  std::string shape;
  double time_ns = 0;
  double floor_ns = 0;      // no correct program is faster (Roofline::floor_ns, gpu/spec.h)
  double roofline_ns = 0;   // estimate for the task's operators as written; 0 if unknown
  double reachable_ns = 0;  // least bytes / bandwidth of a copy, plus one launch; 0 if unknown
  std::optional<double> low_ns, high_ns;  // 95% interval of time_ns
  std::string bound_by;
  int samples = 0;  // number of timed runs; 0 if the time is not measured
  // The median and the lowest SM clock during the timed runs.
  std::optional<double> sm_clock_hz, sm_clock_least_hz;
  std::vector<PairedRatio> paired;
  std::optional<ClockCheck> clock;
  // For a task with several weighted shapes: the times at each shape. Then time_ns and `paired` are
  // weighted geometric means over the shapes.
  std::vector<ShapeTiming> shapes;
};

// The sandbox protection that was in effect while the candidate was compiled and run.
struct SandboxGrade {
  Protection label = Protection::none;
  std::map<std::string, bool> held;  // true: in effect; key: "namespaces", "seccomp", ...
};

// How many elements are wrong by the looser tolerance of public benchmarks, on the task's own input
// distribution. Compat never changes the verdict.
struct Compat {
  std::string rule;  // "allclose 1e-4"
  int64_t elements = 0, wrong = 0;
};

// The error of one output as a whole, on the input set on which the error came nearest to its
// limit. Before averaging, cutegen divides each element's error by the element's scale
// (Expected::unit in tensor/compare.h). The fields with the prefix `native_` have the errors of the
// native reference (PyTorch in the task's dtypes). The fields with the prefix `sequential_` have
// the errors of a second computation, which sums one term after another (docs/tolerance.md).
struct ErrorGate {
  std::string output, family, shape;
  double rms = 0, native_rms = 0, sequential_rms = 0, rms_limit = 0;
  double bias = 0, native_bias = 0, bias_limit = 0;
};

// The errors of the program's outputs and of the native reference (PyTorch in the task's dtypes)
// against the float64 truth. The figures cover the floating-point outputs at the test shapes, on
// the task's own input distribution.
struct Accuracy {
  int64_t elements = 0;
  // The largest |value - truth| of the program's outputs, and of the native reference.
  double error = 0, native_error = 0;
  double largest = 0;  // the largest absolute value of the truth
  double share = 0;    // the largest ratio error / tolerance
  // The output whose RMS error came nearest to its limit, and the output whose bias came nearest to
  // its limit.
  std::optional<ErrorGate> rms, bias;
};

struct Verdict {
  Status status = Status::aborted;
  std::string program_id, task_id, device;
  std::string gpu, driver;  // such as "NVIDIA H200" and "580.159.04"; empty on the simulator
  std::vector<std::string> build_ids;
  // Version of the judging rules; verdicts of different versions are not comparable.
  int policy_version = 12;
  std::string math_mode;  // the task's math mode, from mode_text()
  std::vector<RungReport> rungs;
  Feedback feedback;
  std::optional<Timing> timing;
  std::optional<Profile> profile;
  std::optional<BinaryAudit> audit;
  SandboxGrade sandbox;
  std::vector<std::string> skipped;  // checks that did not run, with reasons
  // The thread blocks at the official shape whose results the evaluator did not compare, or the
  // reason if it compared no results. Empty if the evaluator compared every kind of block.
  std::string official_not_compared;
  // The same for each weighted shape, by its name. Omits shapes at which everything was compared.
  std::map<std::string, std::string> weighted_not_compared;
  int sets_judged = 0;  // number of compared input sets, over all shapes and input distributions
  std::optional<Compat> compat;
  std::optional<Accuracy> accuracy;
  std::vector<std::string> marks;  // doubts: "task not admitted" (degenerate solutions pass), ...
  Nanoseconds elapsed{0};
};

Names<Status> enum_names(Status);
Names<Rung> enum_names(Rung);
Names<Gate> enum_names(Gate);
Result<Rung> rung_from(const std::string& name);
// Names the shapes at which outputs were not compared, with the reasons: "outputs of the official
// shape were not compared (...)". Empty if all outputs were compared.
std::string not_compared_text(const Verdict& verdict);
int exit_code(Status status);
void fields(Fields& v, Verdict& verdict);
// Reads the status from a verdict's JSON form. Returns nullopt if the JSON has no status.
std::optional<Status> status_in(const Json& verdict);
void fields(Fields& v, Profile& profile);
void fields(Fields& v, PairedRatio& pair);
void fields(Fields& v, SandboxGrade& grade);

}  // namespace cutegen
