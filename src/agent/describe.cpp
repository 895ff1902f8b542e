// SPDX-License-Identifier: Apache-2.0
#include "agent/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "agent/library.h"
#include "agent/plan_edit.h"
#include "base/text.h"
#include "core/floor.h"
#include "search/structure.h"

namespace cutegen::agent {
namespace {

constexpr size_t kLine = 200;
constexpr size_t kHotLines = 6;
constexpr size_t kRemarks = 5;
constexpr size_t kKernels = 6;
constexpr size_t kAttemptsTogether = 4;  // in one part of the history

std::string one_line(std::string_view text, size_t limit = kLine) {
  std::string out = sanitize(text, limit);
  std::replace(out.begin(), out.end(), '\n', ' ');
  return out;
}

std::string kib(int64_t bytes) {
  return fmt::format("{} KB", bytes / 1024);
}

std::string scalar_text(const Scalar& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, bool>)
          return v ? "true" : "false";
        else if constexpr (std::is_same_v<T, std::string>)
          return "'" + one_line(v, 80) + "'";
        else
          return fmt::format("{}", v);
      },
      value);
}

std::string scalars_line(const char* what, const std::vector<ScalarInfo>& all) {
  if (all.empty()) return {};
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min<size_t>(all.size(), 24); ++i)
    parts.push_back(one_line(all[i].name, 80) + " = " + scalar_text(all[i].value));
  if (all.size() > parts.size()) parts.emplace_back("...");
  return fmt::format("{}: {}\n", what, join(parts, ", "));
}

// Tells the model what forward() mutates.
std::string mutated_lines(const Task& task) {
  const bool any =
      std::any_of(task.tensors.begin(), task.tensors.end(), [](auto& t) { return t.mutated; });
  if (!any) return {};
  std::string out =
      "forward() mutates the tensors marked (mutated). Pass each one as {\"tensor\": NAME}. Its "
      "memory holds the initial values, and the kernels must write the final values there, once "
      "per call. The evaluator checks them like outputs. All other inputs are read-only.\n";
  if (!task.returns.empty())
    out += "forward() returns " + one_line(join(task.returns, ", ")) +
           ": a returned mutated tensor is not an output of its own.\n";
  return out;
}

std::string argument_text(const Json& arg) {
  if (arg.is_object() && arg.contains("ref") && arg["ref"].is_string())
    return one_line(arg["ref"].get<std::string>(), 60);
  return one_line(dump_json(arg), 60);
}

std::string node_text(const Node& node) {
  std::vector<std::string> args, outs;
  for (const Json& arg : node.args) args.push_back(argument_text(arg));
  for (const SizeArgument& s : node.sizes)
    if (s.index < args.size())
      args[s.index] +=
          (s.item > 0 ? fmt::format(", number {}", s.item) : "") + " = " + one_line(s.text(), 60);
  for (const auto& [name, value] : node.kwargs.items())
    args.push_back(name + "=" + argument_text(value));
  for (const Value& v : node.outputs)
    outs.push_back(fmt::format("{} {}", to_string(v.dtype), to_string(v.shape)));
  return one_line(
      fmt::format("{} = {}({}): {}", node.id, node.op, join(args, ", "), join(outs, "; ")), 300);
}

std::string counted_operators(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const Node& node : graph.nodes) ++counts[node.op];
  std::vector<std::string> parts;
  parts.reserve(counts.size());
  for (const auto& [op, count] : counts)
    parts.push_back(fmt::format("{} x {}", count, one_line(op, 60)));
  return "Operators: " + join(parts, ", ") + "\n";
}

// A time with four significant digits, so that small differences between programs are visible.
std::string exact_ns(double ns) {
  constexpr std::pair<double, const char*> kUnits[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
  for (const auto& [size, unit] : kUnits)
    if (std::abs(ns) >= size) return fmt::format("{:#.4g} {}", ns / size, unit);
  return fmt::format("{:.0f} ns", ns);
}

// The unit that would bound the kernel next, with its time. Empty if no other unit has a time.
std::string next_bound(const KernelProfile& k) {
  const std::string prefix = "modelled_ns.";
  std::string unit;
  double most = 0;
  for (const auto& [name, ns] : k.origin == Origin::measured ? k.modelled : k.counters) {
    if (!name.starts_with(prefix) || ns <= most) continue;
    const std::string term = name.substr(prefix.size());
    if (term != k.bound_by && term != gpu_unit::launch) unit = term, most = ns;
  }
  return unit.empty() ? "" : fmt::format(", then by {} ({})", one_line(unit, 40), exact_ns(most));
}

// One line: time and bounds.
std::string kernel_line(const KernelProfile& k) {
  return fmt::format("- {}: {} ({}), bound by {}{}", one_line(k.kernel, 80), exact_ns(k.time_ns),
                     to_string(k.origin), k.bound_by.empty() ? "?" : one_line(k.bound_by, 40),
                     next_bound(k));
}

std::string kernel_profile(const KernelProfile& k, int detail) {
  std::string out = kernel_line(k);
  if (k.limited_by != CtaLimit::unknown)
    out += fmt::format("; occupancy limited by {}", to_string(k.limited_by));
  out += "\n";
  if (!k.diagnosis.summary.empty())
    out += fmt::format("  = {} ({})\n", one_line(k.diagnosis.summary, 300),
                       to_string(k.diagnosis.origin));
  for (size_t i = 0; i < std::min(k.remarks.size(), kRemarks); ++i) {
    const ProfileRemark& r = k.remarks[i];
    out += "  ! " + (r.line > 0 ? fmt::format("line {}: ", r.line) : std::string()) +
           one_line(r.message, 300) + "\n";
  }
  if (detail < 2) return out;
  for (size_t i = 0; i < std::min(k.lines.size(), kHotLines); ++i) {
    const LineProfile& l = k.lines[i];
    std::vector<std::string> shares;
    for (const char* name : {"issue_share", "memory_share", "shared_share"})
      if (auto it = l.counters.find(name); it != l.counters.end() && it->second >= 0.01)
        shares.push_back(fmt::format("{} {:.0f}%",
                                     std::string(name).substr(0, std::string(name).find('_')),
                                     100 * it->second));
    if (shares.empty()) continue;
    out +=
        fmt::format("  line {:>4} | {} | {}\n", l.line, one_line(l.text, 100), join(shares, ", "));
  }
  return out;
}

// Advice for a kernel that `unit` bounds. Remarks name the place.
std::string advice_for(const std::string& unit) {
  static const std::map<std::string, const char*> kAdvice{
      {gpu_unit::dram,
       "move fewer bytes: read each value once, fuse steps, keep what is used again on "
       "chip. Near the reachable bound nothing else helps."},
      {gpu_unit::l2,
       "let a block use each value that it loads more often: larger tiles, shared "
       "memory, an order of blocks that shares operands."},
      {gpu_unit::l1,
       "use wider, contiguous loads, and keep what a thread uses again in registers."},
      {gpu_unit::shared,
       "read shared memory in 16-byte vectors without bank conflicts, and use each "
       "value for more results in registers."},
      {gpu_unit::latency,
       "give the SM more independent work: more warps, several loads before the "
       "first use, copies that run ahead, fewer barriers."},
      {gpu_unit::launch, "the kernel is shorter than a launch: do more in fewer steps."},
      {"issue",
       "execute fewer instructions: vector accesses, unrolled loops with constant bounds, less "
       "index arithmetic."},
      {"lsu", "execute fewer load and store instructions: use vectors."},
      {"fma",
       "do less float arithmetic, or move products to tensor cores at the accuracy that the "
       "task demands."},
      {"tensor",
       "feed the tensor cores without gaps: larger tiles for each warp, operands in "
       "registers ahead, wgmma where the device has it."},
      {"alu", "move integer and comparison work out of inner loops."},
      {"xu", "use fewer divisions, exponentials and square roots."},
      {"fp64", "use double only where float is too coarse."}};
  auto found = kAdvice.find(unit);
  return found == kAdvice.end() ? "" : found->second;
}

// How much of the accepted error a correct program uses.
std::string accuracy_line(const Accuracy& a) {
  double most = a.share;
  if (a.rms && a.rms->rms_limit > 0) most = std::max(most, a.rms->rms / a.rms->rms_limit);
  if (a.bias && a.bias->bias_limit > 0)
    most = std::max(most, std::abs(a.bias->bias) / a.bias->bias_limit);
  return fmt::format("Accuracy: {:.3g}% of the accepted error is used.\n", 100 * most);
}

std::string attempt_line(const Attempt& a) {
  std::string outcome = to_string(a.status);
  if (a.status == Status::correct)
    outcome =
        a.time_ns ? exact_ns(*a.time_ns) + (a.kept ? ", kept" : ", no gain") : "correct, no time";
  else if (!a.headline.empty())
    outcome += ": " + one_line(a.headline, 160);
  std::string from = a.parent.empty() ? "" : " (from " + a.parent + ")";
  return fmt::format("- {}{}: {} -> {}\n", a.id, from, one_line(a.summary, 160), outcome);
}

// The instructions that the architecture has and those that it lacks.
std::string instructions_text(const std::string& arch) {
  const bool hopper = arch.starts_with("sm_90"), exact = arch.ends_with('a');
  std::string out = "It runs mma.sync and cp.async";
  if (hopper) out += ", TMA and clusters";
  if (hopper && exact) return out + ", and wgmma; these three need arch \"sm_90a\" in the plan.";
  return out + (hopper ? "; it has no wgmma." : "; it has no TMA, no clusters and no wgmma.");
}

bool multiplies(const Task& task) {
  static const std::set<std::string> kProducts{"matmul", "attention",       "recurrent",
                                               "gemv",   "transposed_conv", "conv"};
  const auto classes = classes_of(task.workload);
  return std::any_of(classes.begin(), classes.end(),
                     [](const std::string& c) { return kProducts.contains(c); });
}

}  // namespace

std::string describe_device(const GpuSpec& g, const DeviceName& device, const Task& task) {
  std::string out =
      fmt::format("{} ({}), architecture {}.", g.name, one_line(device.text(), 60), g.arch);
  if (!device.is_gpu())
    out += " Programs run in a simulator of this GPU, which models times from counted work.";
  out += fmt::format(
      "\n{} multiprocessors at {:.2f} GHz; each holds {} threads, {} blocks, {} registers, {} of "
      "shared "
      "memory.\nA block: at most {} threads and {} of shared memory ({} without `shared_bytes`). "
      "L2: {}.\n",
      g.sms, g.clock_hz / 1e9, g.max_threads_per_sm, g.max_blocks_per_sm, g.registers_per_sm,
      kib(g.shared_bytes_per_sm), g.max_threads_per_block, kib(g.shared_bytes_per_block), "48 KB",
      kib(g.l2_bytes));
  out += fmt::format("Memory: {:.2f} TB/s.", g.dram_bytes_per_s / 1e12);
  for (const auto& [name, flops] : g.flops_per_s)
    if (name == to_string(MathMode::fp32) || name == to_string(task.math_mode) ||
        (name == to_string(MathMode::tf32) && task.tf32_convolutions))
      out += fmt::format(" {}: {:.0f} TFLOP/s.", name, flops / 1e12);
  out += fmt::format(" A launch costs about {}.", human_ns(g.launch_ns));
  out += "\n" + instructions_text(g.arch);
  if (!device.is_gpu())
    out += " The simulator does not run wmma, sparse products and im2col tensor maps.";
  return out;
}

std::string describe_mode(const Task& task) {
  const std::string out = fmt::format("Math mode: {}. ", one_line(mode_text(task), 400));
  if (task.tf32_convolutions)
    return out +
           "One product in tf32 with float32 sums is accurate enough for convolutions; all else "
           "must be as accurate as float32 arithmetic.";
  if (task.math_mode != MathMode::fp32)
    return out + fmt::format("One product in {} with float32 sums is accurate enough.",
                             to_string(task.math_mode));
  if (!multiplies(task)) return out + "Results must be as accurate as float32 arithmetic.";
  return out +
         "Results must be as accurate as float32 arithmetic: one product in tf32, fp16 or bf16 is "
         "too coarse, three tf32 products of split operands are accurate enough.";
}

std::string describe_tensors(const Task& task) {
  std::string out = "Tensors (contiguous, row-major), at the official shape:\n";
  size_t shown = 0;
  for (const TensorInfo& t : task.tensors) {
    if (++shown > 40) {
      out += fmt::format("- and {} more\n", task.tensors.size() - 40);
      break;
    }
    out += fmt::format("- {} {}: {} {}{}\n", to_string(t.role), one_line(t.name, 120),
                       to_string(t.dtype), to_string(t.shape),
                       t.mutated ? " (mutated: read and written)" : "");
  }
  out += mutated_lines(task);
  out += scalars_line("Attributes (attr)", task.attributes);
  out += scalars_line("Scalars of the call (arg)", task.arguments);
  std::vector<std::string> shapes;
  for (const ShapeCase& s : task.shapes) {
    if (s.kind == ShapeKind::official || shapes.size() == 4) continue;
    std::vector<std::string> inputs;
    for (const TensorInfo* t : task.with_role(TensorRole::input))
      if (auto it = s.tensors.find(t->name); it != s.tensors.end() && inputs.size() < 3)
        inputs.push_back(one_line(t->name, 40) + " " + to_string(it->second));
    shapes.push_back(one_line(s.name, 40) + ": " + join(inputs, ", "));
  }
  if (!shapes.empty()) out += "Also checked at: " + join(shapes, "; ") + "\n";
  return out;
}

std::string describe_graph(const Graph& graph, int detail) {
  if (graph.nodes.empty()) return {};
  if (detail <= 0) return counted_operators(graph);
  size_t most = detail >= 2 ? 80 : 24;
  std::string out = "Its operators, as traced:\n";
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes.size() > most && i == most / 2) {
      size_t skipped = graph.nodes.size() - most;
      out += fmt::format("  ... {} more ...\n", skipped);
      i += skipped;
    }
    out += "  " + node_text(graph.nodes[i]) + "\n";
  }
  return out;
}

std::string describe_floor(const TaskBrief& brief) {
  const ShapeCase& s = brief.task.official();
  std::string work =
      fmt::format("{} and at least {} through memory", human(s.flops), human(s.least_bytes));
  if (brief.floor_ns <= 0) return work + "; the floor is unknown.";
  std::string out = fmt::format("{}.\nFloor: {}.", work,
                                floor_text(brief.floor_ns, brief.reachable_ns, brief.bound_by));
  const std::string roofline = roofline_text(brief.roofline_ns, brief.bound_by);
  return roofline.empty() ? out : out + "\nRoofline: " + roofline + ".";
}

std::string describe_program(const KernelProgram& program) {
  std::string out;
  for (const auto& [name, text] : program.sources)
    out += fmt::format("{}:\n```cuda\n{}{}```\n", name, text, text.ends_with('\n') ? "" : "\n");
  return out + "plan.json:\n```json\n" + plan_text(program.plan) + "```\n";
}

std::string describe_cute(const KernelProgram& program) {
  constexpr double kFew = 0.2;
  if (!uses_cute(program.plan.dialect)) return {};
  const double share = search::cute_use(program).share;
  return fmt::format("CuTe: {:.0f}% of the statements.{}\n", 100 * share,
                     share < kFew ? " Use its layouts, copies and products where they are shorter "
                                    "than the same code by hand."
                                  : "");
}

std::string describe_verdict(const Verdict& v, double floor_ns, bool profile, int detail) {
  const Feedback& f = v.feedback;
  std::string out = fmt::format("The evaluator says: {}", to_string(v.status));
  if (!f.headline.empty()) out += ": " + one_line(f.headline, 400);
  out += "\n";
  if (v.status != Status::correct) {
    if (!f.detail.empty() && detail > 0) out += sanitize(f.detail, detail > 1 ? 3000 : 1000) + "\n";
    if (!f.resources.empty() && detail > 1)
      out += "Resources: " + one_line(f.resources, 400) + "\n";
    return out;
  }
  if (v.timing) {
    out += fmt::format("Time: {} ({})", exact_ns(v.timing->time_ns), to_string(v.timing->origin));
    if (floor_ns > 0) out += fmt::format(", {:#.4g} times the floor", v.timing->time_ns / floor_ns);
    out += "\n";
  }
  if (v.accuracy) out += accuracy_line(*v.accuracy);
  if (!f.resources.empty()) out += "Resources: " + one_line(f.resources, 400) + "\n";
  if (!profile) {
    for (size_t i = 0; v.profile && i < std::min(v.profile->kernels.size(), kKernels); ++i)
      out += kernel_line(v.profile->kernels[i]) + "\n";
    return out;
  }
  if (!f.bottleneck.empty()) out += "Bottleneck: " + one_line(f.bottleneck, 400) + "\n";
  if (v.profile && detail > 0) {
    out += "Profile (evidence for your choice, not a list of tasks):\n";
    for (size_t i = 0; i < std::min(v.profile->kernels.size(), kKernels); ++i)
      out += kernel_profile(v.profile->kernels[i], detail);
  }
  return out;
}

std::string describe_profile(const Verdict& v) {
  std::string out;
  if (!v.feedback.bottleneck.empty())
    out += "Bottleneck: " + one_line(v.feedback.bottleneck, 400) + "\n";
  for (size_t i = 0; i < std::min(v.profile->kernels.size(), kKernels); ++i) {
    const KernelProfile& k = v.profile->kernels[i];
    out += kernel_profile(k, 2);
    if (const std::string advice = advice_for(k.bound_by); !advice.empty())
      out += "  advice: " + advice + "\n";
  }
  return out;
}

HistoryText describe_history(const std::vector<Attempt>& history, size_t most) {
  HistoryText out;
  if (history.empty() || most == 0) return out;
  // Drops many old attempts at a time, because each drop invalidates the provider's prompt cache.
  const size_t leave = std::max<size_t>(most / 2, 1), n = history.size();
  const size_t first = n > most ? (n - most + leave - 1) / leave * leave : 0;
  std::string part =
      "# Attempts so far\n"
      "\n";
  const Attempt* best = nullptr;
  for (size_t i = 0; i < first; ++i)
    if (history[i].time_ns && (!best || *history[i].time_ns < *best->time_ns)) best = &history[i];
  if (first > 0)
    part += fmt::format("- {} earlier attempts are not shown\n", first - (best ? 1 : 0));
  if (best) part += attempt_line(*best);
  for (size_t i = first; i < n; ++i) {
    part += attempt_line(history[i]);
    if ((i - first + 1) % kAttemptsTogether != 0) continue;
    out.settled.push_back(std::move(part));
    part.clear();
  }
  if ((n - first) % kAttemptsTogether == 0) return out;
  out.recent = out.settled.empty() ? part
                                   : "# Latest attempts\n"
                                     "\n" +
                                         part;
  return out;
}

std::string describe_source(const std::string& source, size_t most) {
  auto lines = split(sanitize(source, 64 << 10), '\n');
  while (!lines.empty() && trim(lines.back()).empty()) lines.pop_back();
  if (lines.size() <= most) return join(lines, "\n");
  size_t head = most * 3 / 4, tail = most - head;
  std::vector<std::string> out(lines.begin(), lines.begin() + long(head));
  out.push_back(fmt::format("# ... {} lines are not shown ...", lines.size() - most));
  out.insert(out.end(), lines.end() - long(tail), lines.end());
  return join(out, "\n");
}

}  // namespace cutegen::agent
