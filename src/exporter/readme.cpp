// SPDX-License-Identifier: Apache-2.0
// Writes the readme of an export: how to use it, what it supports, how it was judged and measured.
#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "exporter/templates.h"

namespace cutegen::exporter {
namespace {

std::string line_of(const std::string& text) {
  return sanitize(text.substr(0, text.find('\n')), 300);
}

std::string use_of_source(const std::string& plain) {
  return fmt::format(
      "Compile `{0}.cu` instead of the kernel's source file. It contains the source kernel under\n"
      "its own name, so code that launches the kernel still compiles. Call the launcher instead:\n"
      "\n"
      "```\n"
      "extern \"C\" int {0}_launch(the kernel's parameters, further sizes, cudaStream_t stream);\n"
      "```\n"
      "\n"
      "It returns a cudaError_t and does not wait. It launches the source kernel for sizes that\n"
      "the faster program does not support, and for tensors that do not begin at a multiple of "
      "256\n"
      "bytes. It computes numbers that follow from the sizes. `d_NAME_AXIS` is the size of the\n"
      "tensor NAME along AXIS.\n"
      "\n"
      "```python\nfrom {0}_op import op   # the operator of PyTorch; nvcc builds {0}.so\n```\n"
      "\n"
      "$NVCC names the compiler. If the source includes CuTe, $CUTLASS_INCLUDE names its folder.\n",
      plain);
}

std::string use_of(const ExportSource& source, ExportKind kind) {
  const std::string plain = plain_name(source.task.name);
  if (kind == ExportKind::torch)
    return "Put this folder beside your program under a name that Python can import "
           "(here `" +
           plain +
           "`):\n\n"
           "```python\nfrom " +
           plain +
           " import Model   # instead of the module's own class\n"
           "model = Model(...).cuda()      # the same constructor, parameters and results\n"
           "```\n"
           "\n"
           "The package needs only PyTorch and NVIDIA's driver. It launches the kernels on "
           "PyTorch's current\n"
           "stream without waiting and takes memory from PyTorch's allocator. You can capture the "
           "kernels in a\n"
           "CUDA graph, use them on several streams, and compile the module with `torch.compile` "
           "(one operator in\n"
           "the graph). For gradients it runs the module of `reference.py` once more.\n";
  if (kind == ExportKind::kernelbench)
    return "`model_new.py` is a solution for KernelBench: one file with `class ModelNew`, which "
           "has the constructor,\n"
           "parameters and initialisation of the task's `Model`. It needs no other file. "
           "KernelBench need not\n"
           "compile anything: the file contains the kernels as machine code. Their sources are in "
           "`program/`.\n";
  if (kind == ExportKind::source) return use_of_source(plain);
  return "```\n"
         "g++ -std=c++17 -O2 -o " +
         plain + " main.cpp " + plain +
         ".cpp -ldl   # or CMakeLists.txt\n"
         "./" +
         plain +
         "\n```\n\n"
         "`" +
         plain +
         ".h` declares one function. It takes device pointers and a stream, and launches the "
         "kernels. The\n"
         "source contains the machine code and opens libcuda.so.1 at run time, so you need no CUDA "
         "toolkit.\n"
         "The caller must pass contiguous tensors of the shape below, at addresses that are "
         "multiples of 256.\n";
}

std::string shapes_of(const ExportSource& source) {
  std::string out = "| shape | tensor | dtype | size |\n|---|---|---|---|\n";
  for (const ExportShape& s : source.shapes)
    for (const TensorInfo& t : source.task.tensors) {
      auto at = s.shape.tensors.find(t.name);
      if (at == s.shape.tensors.end()) continue;
      out += fmt::format("| {} | {}{} `{}` | {} | {} |\n", line_of(s.name),
                         t.mutated ? "mutated " : "", to_string(t.role), line_of(t.name),
                         torch_name(t.dtype), cutegen::to_string(at->second));
    }
  for (const std::string& why : source.left_out) out += "\nNot supported: " + line_of(why) + "\n";
  return out;
}

std::string limits_of(const ExportSource& source, ExportKind kind) {
  std::string out =
      fmt::format("* GPU: {} ({}, {} multiprocessors), or another one with the same two figures.\n",
                  source.target.gpu, source.arch, source.target.facts.sms);
  for (const Expr& e : source.program.plan.requires_)
    out += "* The plan requires `" + line_of(e.text()) + "`; the shapes above satisfy it.\n";
  const auto& tensors = source.task.tensors;
  const bool mutates =
      std::any_of(tensors.begin(), tensors.end(), [](auto& t) { return t.mutated; });
  if (mutates)
    out +=
        "* The kernels write mutated tensors in place: each call starts with the values that the "
        "last call left.\n";
  if (kind == ExportKind::cpp || kind == ExportKind::source) return out;
  if (mutates) out += "* If a call needs gradients, the module of `reference.py` computes it.\n";
  return out +
         "* The module of `reference.py` computes everything else: another shape, dtype, device or "
         "GPU, memory\n"
         "  that is not contiguous, autocast, other scalar arguments, a `Model` with other\n"
         "  constructor arguments than `get_init_inputs()`, and training if it changes the "
         "result.\n"
         "  On a GPU that the kernels do not support, the package warns once. Results are\n"
         "  contiguous. Hooks on the module's parts do not run. vmap is not supported.\n";
}

std::string judged(const ExportSource& source) {
  if (!source.verdict)
    return "The program came without a verdict: run the test before you trust it.\n";
  const Verdict& v = *source.verdict;
  std::string out =
      fmt::format("Verdict: {}, judged on {}{}; {} sets of fresh inputs.\n", to_string(v.status),
                  v.gpu.empty() ? v.device : v.gpu,
                  v.gpu.empty() ? " (no GPU)" : ", driver " + v.driver, v.sets_judged);
  if (!v.math_mode.empty()) out += "Math mode: " + line_of(v.math_mode) + ".\n";
  if (v.timing)
    out += fmt::format("Time at the shape `{}`: {} ({}); the physical floor is {}.\n",
                       line_of(v.timing->shape), human_ns(v.timing->time_ns),
                       to_string(v.timing->origin), human_ns(v.timing->floor_ns));
  bool same = true;
  for (const ExportModule& m : source.modules)
    same =
        same && std::find(v.build_ids.begin(), v.build_ids.end(), m.build_id) != v.build_ids.end();
  if (!same && !v.build_ids.empty())
    out +=
        "The export compiled the modules again, with another compiler or for another GPU than the "
        "evaluator\n"
        "did.\n";
  for (const std::string& mark : v.marks) out += "* " + line_of(mark) + "\n";
  for (const std::string& s : v.skipped) out += "* not checked: " + line_of(s) + "\n";
  return out;
}

std::string certified(const Certificate& c) {
  std::string out = fmt::format(
      "\nCertificate ({}, {}, {} processes, {}{}):\n\n| mode | time | against | "
      "its time | speed-up |\n|---|---|---|---|---|\n",
      c.gpu, c.driver, c.processes, c.torch,
      c.shapes.empty() ? "" : fmt::format(", weighted means of {} shapes", c.shapes.size()));
  for (const CertifiedMode& m : c.modes)
    for (const PairedRatio& p : m.against)
      out += fmt::format("| {} | {} | {} | {} | {:.3f}x ({:.3f}-{:.3f}) |\n", to_string(m.mode),
                         human_ns(m.time_ns), line_of(p.against), human_ns(p.other_ns), p.speedup,
                         p.low, p.high);
  if (!c.baselines.empty()) out += "\n";
  for (const CertifiedBaseline& b : c.baselines)
    out += fmt::format("* {}: {}\n", line_of(b.kind), line_of(accuracy_text(b.accuracy)));
  return out;
}

}  // namespace

std::string readme(const ExportSource& source, ExportKind kind) {
  std::string out = fmt::format(
      "# {}\n\nThe `Model` of this task with kernels for {}, exported by cutegen from {}.\n\n",
      line_of(source.task.name), source.target.gpu, line_of(source.origin));
  out += use_of(source, kind);
  out +=
      "\n"
      "## What the kernels support\n"
      "\n" +
      shapes_of(source) + "\n" + limits_of(source, kind);
  out += "\n## What was judged\n\n" + judged(source);
  if (source.certificate) out += certified(*source.certificate);
  const std::string plain = plain_name(source.task.name);
  out +=
      "\n"
      "## Check it yourself\n"
      "\n"
      "```\n"
      "python test_" +
      plain + ".py     # against the module in float64\npython bench.py" +
      std::string(plain.size() + 1, ' ') +
      "# compares times with eager, TF32 and torch.compile; needs only PyTorch\n```\n\n";
  out +=
      "`program/` has the sources and the launch plan, `launches.json` has all launches as\n"
      "numbers. The compiler was " +
      line_of(source.compiler) +
      ".\n`cutegen eval reference.py program` judges it again; `cutegen export program --task\n"
      "reference.py --device cuda:0` makes it for another GPU.\n";
  return out;
}

}  // namespace cutegen::exporter
