// SPDX-License-Identifier: Apache-2.0
#include "agent/hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "agent/source_map.h"
#include "base/text.h"

namespace cutegen::agent {
namespace {

struct Known {
  std::vector<const char*> message;  // one of them must be in the verdict
  std::vector<const char*> source;   // one of them must be in the source; empty: any
  const char* advice;
};

const std::vector<Known>& known() {
  static const std::vector<Known> kKnown{
      {{"operator[]", "no operator \"[]\""},
       {"cute"},
       "CuTe shapes, strides and coordinates are tuples: get<0>(s) or size<0>(t), not s[0]"},
      {{"Stride<", "stride"},
       {"Stride<int", "Stride<int64_t"},
       "a parameter of type Stride<int, int> does not accept a stride with static entries: use "
       "auto or a template parameter for the layout"},
      {{"Unrecognized CopyPolicy", "CopyPolicy"},
       {},
       "copy() needs Copy_Atom<OPERATION, T>{} or a TiledCopy, not the bare operation"},
      {{"CopyAtom", "Copy_Atom", "copy_unpack", "partition_S"},
       {"Copy_Atom", "SM80_CP_ASYNC"},
       "an atom copies contiguous, aligned vectors of its own width: partition both tensors with "
       "the "
       "same TiledCopy and let the value layout cover the vector"},
      {{"make_tensor", "no instance of function template"},
       {"make_tensor("},
       "registers are make_tensor<T>(static shape) or make_fragment_like(t); pointers go through "
       "make_gmem_ptr or make_smem_ptr"},
      {{"must be a constant", "not constant", "non-constant", "constant expression"},
       {"cute"},
       "layouts of registers and shared memory need static integers: Int<N>{} or _8{}, not int"},
      {{"CUDART_INF", "undefined"}, {"CUDART_INF"}, "write INFINITY, or include math_constants.h"},
      {{"is undefined", "not declared", "undeclared"},
       {},
       "the file uses a name that it no longer declares: check whether the last edit removed the "
       "declaration, or whether a header or 'using namespace cute' is missing"},
      {{"already been defined", "redefinition", "already declared", "has already been declared"},
       {},
       "a definition occurs twice: the last edit added what it should have replaced"},
      {{"expected a", "expected an", "expected \"}\""},
       {},
       "the text near this place is broken: send the whole function again"},
      {{"shared", "0xc000", "uses too much"},
       {"__shared__"},
       "static shared memory ends at 48 KB: use extern __shared__ with shared_bytes in the step, "
       "or "
       "smaller tiles or fewer stages"},
      {{"too many resources", "registers"},
       {},
       "the block needs more registers than an SM has: use __launch_bounds__(threads), or smaller "
       "tiles per thread"},
      {{"misaligned", "alignment"},
       {},
       "a vector access needs an address that is a multiple of its size: choose the width by a "
       "define from "
       "the row length, and keep a scalar path"},
      {{"out of bounds", "outside", "illegal"},
       {},
       "guard every load and store by the sizes of this call; check the tile's edge, the tail of "
       "vectors, and 32-bit overflow of offsets"},
      {{"NaN", "nan"},
       {"exp"},
       "exp of (-inf) - (-inf) and 0/0 give NaN: start a maximum at -INFINITY and guard rows "
       "without "
       "finite values"},
      {{"never written", "unwritten"},
       {},
       "some outputs are never written: compare the grid with the sizes, and look at early "
       "returns"},
      {{"race", "barrier"},
       {"__shared__"},
       "all threads of the block must pass __syncthreads() between writing and reading shared "
       "memory, and before the next write"},
      {{"columns from", "rows from", "last tile", "odd"},
       {},
       "right on some shapes and wrong at edges: check the predicates of the tail, and sizes that "
       "are assumed to be multiples"},
      {{"wrong"},
       {"gemm(", "mma"},
       "in CuTe's convention B is (N,K): check that B's tensor is indexed (n,k) with the strides "
       "that "
       "its memory really has"}};
  return kKnown;
}

bool any_in(const std::vector<const char*>& words, const std::string& text) {
  return words.empty() || std::any_of(words.begin(), words.end(), [&](const char* w) {
           return text.find(w) != std::string::npos;
         });
}

std::string words_of(const Verdict& v) {
  std::string out = v.feedback.headline + "\n" + v.feedback.detail;
  for (const Mismatch& m : v.feedback.mismatches) out += "\n" + m.pattern + " " + m.shape;
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
  std::string message = words_of(verdict), source;
  for (const auto& [name, text] : program.sources) source += text;
  std::vector<std::string> out;
  for (const Known& k : known())
    if (!k.message.empty() && any_in(k.message, message) && any_in(k.source, source) &&
        out.size() < kMost)
      out.emplace_back(k.advice);
  return out;
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
      out.push_back({ErrorKind::user,
                     "kernel '" + step.kernel +
                         "' has extern __shared__ memory, but the step has no shared_bytes",
                     where, "add \"shared_bytes\" to the step"});
    if (bytes && *bytes > gpu.shared_bytes_per_block)
      out.push_back({ErrorKind::user,
                     fmt::format("{} bytes of shared memory; a block has {} at most", *bytes,
                                 gpu.shared_bytes_per_block),
                     where + "/shared_bytes", "use smaller tiles or fewer stages"});
    int64_t threads = 1;
    for (const Expr& extent : step.block) {
      auto value = constant(extent);
      threads *= value && *value > 0 && *value <= 65536 ? *value : 1;
    }
    if (threads > gpu.max_threads_per_block)
      out.push_back({ErrorKind::user,
                     fmt::format("a block of {} threads; the limit is {}", threads,
                                 gpu.max_threads_per_block),
                     where + "/block", "use fewer threads for each block"});
  }
  return out;
}

}  // namespace cutegen::agent
