// SPDX-License-Identifier: Apache-2.0
#include "agent/hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "agent/source_map.h"
#include "base/text.h"

namespace cutegen::agent {
namespace {

// The facts about a failure that hints use.
struct Failure {
  std::string compiler;  // the errors, if the program does not compile
  std::string finding;   // the kind: "shared_race", "misaligned", ...
  std::vector<Mismatch> values;
  std::string code;   // the sources without comments and literals
  bool cute = false;  // whether they include CuTe

  bool error(std::initializer_list<const char*> words) const { return any_in(compiler, words); }
  bool found(std::initializer_list<const char*> kinds) const {
    return std::any_of(kinds.begin(), kinds.end(), [&](const char* k) { return finding == k; });
  }
  bool uses(std::initializer_list<const char*> words) const { return any_in(code, words); }
  template <class F>
  bool some(F&& holds) const {
    return std::any_of(values.begin(), values.end(), holds);
  }

 private:
  static bool any_in(const std::string& text, std::initializer_list<const char*> words) {
    return std::any_of(words.begin(), words.end(),
                       [&](const char* w) { return text.find(w) != std::string::npos; });
  }
};

constexpr const char* kSpecial = "special";  // the input family with infinities and NaN

bool all_nan(const Mismatch& m) {
  return m.nan > 0 && m.nan == m.wrong;
}

bool at_an_edge(const Mismatch& m) {
  const std::string& p = m.pattern;
  return m.nan == 0 && m.unwritten == 0 &&
         (p.starts_with("columns from") || p.starts_with("rows from") ||
          p.starts_with("the last ") || p.find("last tile") != std::string::npos);
}

struct Known {
  bool (*answers)(const Failure&);
  const char* advice;
};

// Each hint answers one kind of failure: a compiler error, a finding of the device, or wrong
// values.
const std::vector<Known>& compiler_hints() {
  static const std::vector<Known> kKnown{
      {.answers = [](const Failure& f) { return f.error({"no operator \"[]\""}) && f.cute; },
       .advice =
           "CuTe shapes, strides and coordinates are tuples: get<0>(s) or size<0>(t), not s[0]"},
      {.answers = [](const Failure& f) { return f.error({"Stride<"}) && f.uses({"Stride<int"}); },
       .advice =
           "a parameter of type Stride<int, int> does not accept a stride with static entries: use "
           "auto or a template parameter for the layout"},
      {.answers = [](const Failure& f) { return f.error({"CopyPolicy"}); },
       .advice = "copy() needs Copy_Atom<OPERATION, T>{} or a TiledCopy, not the bare operation"},
      {.answers =
           [](const Failure& f) { return f.error({"CopyAtom", "Copy_Atom", "copy_unpack"}); },
       .advice = "an atom copies contiguous, aligned vectors of its own width: partition both "
                 "tensors with the same TiledCopy and let the value layout cover the vector"},
      {.answers = [](const Failure& f) { return f.error({"make_tensor"}); },
       .advice = "registers are make_tensor<T>(static shape) or make_fragment_like(t); pointers go "
                 "through make_gmem_ptr or make_smem_ptr"},
      {.answers =
           [](const Failure& f) {
             return f.error({"must be a constant", "not constant", "non-constant",
                             "constant expression"}) &&
                    f.cute;
           },
       .advice = "layouts of registers and shared memory need static integers: Int<N>{} or _8{}, "
                 "not int"},
      {.answers = [](const Failure& f) { return f.error({"CUDART_INF"}); },
       .advice = "write INFINITY, or include math_constants.h"},
      {.answers =
           [](const Failure& f) {
             return f.error({"is undefined", "not declared", "undeclared"}) &&
                    !f.error({"CUDART_INF"});
           },
       .advice =
           "the file uses a name that it no longer declares: check whether the last edit "
           "removed the declaration, or whether a header or 'using namespace cute' is missing"},
      {.answers =
           [](const Failure& f) {
             return f.error({"already been defined", "redefinition", "already been declared"});
           },
       .advice = "a definition occurs twice: the last edit added what it should have replaced"},
      {.answers =
           [](const Failure& f) {
             return f.error({"expected a \"", "expected an ", "expected a decl"});
           },
       .advice = "the text near this place is broken: send the whole function again"},
      {.answers =
           [](const Failure& f) { return f.error({"uses too much shared data", "0xc000 max"}); },
       .advice = "static shared memory ends at 48 KB: use extern __shared__ with shared_bytes in "
                 "the step, or smaller tiles or fewer stages"}};
  return kKnown;
}

const std::vector<Known>& finding_hints() {
  static const std::vector<Known> kKnown{
      {.answers = [](const Failure& f) { return f.found({"misaligned"}); },
       .advice =
           "a vector access needs an address that is a multiple of its size: choose the width by a "
           "define from the row length, and keep a scalar path"},
      {.answers = [](const Failure& f) { return f.found({"out_of_bounds"}); },
       .advice = "guard every load and store by the sizes of this call; check the tile's edge, the "
                 "tail of vectors, and 32-bit overflow of offsets"},
      {.answers = [](const Failure& f) { return f.found({"shared_race"}); },
       .advice =
           "all threads of the block must pass __syncthreads() between writing and reading shared "
           "memory, and before the next write"},
      {.answers = [](const Failure& f) { return f.found({"global_race"}); },
       .advice = "blocks of one launch run in any order: let one block own each result, use "
                 "atomics, or pass values to a second step"},
      {.answers = [](const Failure& f) { return f.found({"async_copy_pending"}); },
       .advice =
           "wait for the copy before its bytes are read: cp_async_wait<N> leaves the newest N "
           "groups unfinished, every stage needs its own fence, and __syncthreads() follows the "
           "wait"},
      {.answers =
           [](const Failure& f) {
             return f.found({"bad_barrier", "exited_before_barrier", "divergent_collective"});
           },
       .advice = "all threads that a barrier or a shuffle names must reach it: no early return and "
                 "no branch around it"},
      {.answers = [](const Failure& f) { return f.found({"uninitialised"}); },
       .advice = "memory is read before anything writes it: start accumulators, clear "
                 "fragments, and fill the part of a tile that lies outside of the tensor"},
      {.answers =
           [](const Failure& f) {
             return f.found({"missing_wgmma_fence", "wgmma_pending", "wgmma_operand_overwritten"});
           },
       .advice = "fence registers before wgmma (warpgroup_arrive), commit the batch, and wait for "
                 "it before you read sums or overwrite operands"},
      {.answers = [](const Failure& f) { return f.found({"missing_proxy_fence"}); },
       .advice =
           "writes by threads need fence.proxy.async before TMA or wgmma reads them from shared "
           "memory, and mbarrier.init needs a fence before a copy signals the mbarrier"}};
  return kKnown;
}

const std::vector<Known>& value_hints() {
  static const std::vector<Known> kKnown{
      {.answers =
           [](const Failure& f) {
             return f.some(all_nan) && f.uses({"expf(", "exp2f(", "exp("}) &&
                    f.uses({"fmax", "max("});
           },
       .advice =
           "exp of (-inf) - (-inf) and 0/0 give NaN: start a maximum at -INFINITY and guard rows "
           "without finite values"},
      {.answers =
           [](const Failure& f) {
             return f.some([](const Mismatch& m) { return all_nan(m) && m.family == kSpecial; });
           },
       .advice =
           "the inputs 'special' hold infinities, zeros and NaN: look for inf - inf and 0 * inf "
           "that the reference does not compute (operands split in parts, partial products, "
           "masks by zero)"},
      {.answers =
           [](const Failure& f) {
             return f.some([](const Mismatch& m) { return m.unwritten > 0; });
           },
       .advice =
           "some outputs are never written: compare the grid with the sizes, and look at early "
           "returns"},
      {.answers = [](const Failure& f) { return f.some(at_an_edge); },
       .advice = "right in the interior and wrong at an edge: check the predicates of the tail, "
                 "and sizes that are assumed to be multiples"},
      {.answers =
           [](const Failure& f) {
             return f.uses({"gemm("}) && f.some([](const Mismatch& m) {
               return m.gate == Gate::element && m.nan == 0 && m.wrong > m.elements / 2;
             });
           },
       .advice = "in CuTe's convention B is (N,K): check that B's tensor is indexed (n,k) with the "
                 "strides that its memory really has"},
      {.answers =
           [](const Failure& f) {
             return f.some(
                 [](const Mismatch& m) { return m.gate == Gate::rms || m.gate == Gate::bias; });
           },
       .advice = "every element is nearly right, but the errors add up: keep sums in float, "
                 "promote the sums of tensor cores every K tile, and split operands in two for "
                 "float32"}};
  return kKnown;
}

// The kind of a finding, which follows the kernel's name: "kernel: shared_race: ...".
std::string finding_in(const std::string& headline) {
  const size_t kernel = headline.find(": ");
  const size_t end = kernel == std::string::npos ? kernel : headline.find(": ", kernel + 2);
  if (end == std::string::npos) return {};
  const std::string kind = headline.substr(kernel + 2, end - kernel - 2);
  const bool word =
      std::all_of(kind.begin(), kind.end(), [](char c) { return c == '_' || is_word_byte(c); });
  return word ? kind : std::string();
}

Failure failure_of(const KernelProgram& program, const Verdict& v) {
  Failure out;
  for (const auto& [name, text] : program.sources) {
    out.code += code_only(text);
    out.cute = out.cute || text.find("<cute/") != std::string::npos;
  }
  const std::string& headline = v.feedback.headline;
  out.values = v.feedback.mismatches;
  const bool built = std::none_of(v.rungs.begin(), v.rungs.end(), [](const RungReport& r) {
    return r.result == RungResult::failed && (r.rung == Rung::compile || r.rung == Rung::audit);
  });
  if (!built || headline.find(": error: ") != std::string::npos)
    out.compiler = headline + "\n" + v.feedback.detail;
  else if (out.values.empty())
    out.finding = finding_in(headline);
  return out;
}

std::optional<int64_t> constant(const Expr& e) {
  Json json = e.json();
  return json.is_number_integer() ? std::optional(json.get<int64_t>()) : std::nullopt;
}

bool uses_dynamic_shared(const KernelProgram& program, const std::string& kernel) {
  for (const auto& [name, text] : program.sources) {
    std::string code = code_only(text);
    for (const Definition& d : definitions_in(text))
      if (d.name == kernel && !d.is_type &&
          code.substr(d.begin, d.size).find("extern __shared__") != std::string::npos)
        return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> hints_for(const KernelProgram& program, const Verdict& verdict) {
  constexpr size_t kMost = 4;
  if (verdict.status == Status::correct) return {};
  const Failure failure = failure_of(program, verdict);
  std::vector<std::string> out;
  for (const auto* hints : {&compiler_hints(), &finding_hints(), &value_hints()})
    for (const Known& k : *hints)
      if (out.size() < kMost && k.answers(failure)) out.emplace_back(k.advice);
  return out;
}

size_t known_hints() {
  return compiler_hints().size() + finding_hints().size() + value_hints().size();
}

std::vector<Error> certain_faults(const KernelProgram& program, const GpuSpec& gpu) {
  std::vector<Error> out;
  for (size_t i = 0; i < program.plan.steps.size(); ++i) {
    const Step& step = program.plan.steps[i];
    if (step.is_fill) continue;
    std::string where = fmt::format("plan.json#/steps/{}", i);
    bool dynamic = uses_dynamic_shared(program, step.kernel);
    auto bytes = constant(step.shared_bytes);
    if (dynamic && bytes && *bytes == 0)
      out.push_back({.kind = ErrorKind::user,
                     .message = "kernel '" + step.kernel +
                                "' has extern __shared__ memory, but the step has no shared_bytes",
                     .where = where,
                     .remedy = "add \"shared_bytes\" to the step"});
    if (bytes && *bytes > gpu.shared_bytes_per_block)
      out.push_back({.kind = ErrorKind::user,
                     .message = fmt::format("{} bytes of shared memory; a block has {} at most",
                                            *bytes, gpu.shared_bytes_per_block),
                     .where = where + "/shared_bytes",
                     .remedy = "use smaller tiles or fewer stages"});
    int64_t threads = 1;
    for (const Expr& extent : step.block) {
      auto value = constant(extent);
      threads *= value && *value > 0 && *value <= 65536 ? *value : 1;
    }
    if (threads > gpu.max_threads_per_block)
      out.push_back({.kind = ErrorKind::user,
                     .message = fmt::format("a block of {} threads; the limit is {}", threads,
                                            gpu.max_threads_per_block),
                     .where = where + "/block",
                     .remedy = "use fewer threads for each block"});
  }
  return out;
}

}  // namespace cutegen::agent
