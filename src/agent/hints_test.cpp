// SPDX-License-Identifier: Apache-2.0
// Tests that each hint answers its own failure and not two others with similar words.
#include "agent/hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace cutegen::agent {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct Case {
  std::string source;
  Verdict verdict;
};

Verdict failed(const std::string& headline, const std::string& detail = {}) {
  Verdict v;
  v.status = Status::failed;
  v.feedback.headline = headline;
  v.feedback.detail = detail;
  return v;
}

// A compiler error, with the source line that it shows.
Case error(const std::string& message, const std::string& source = {}) {
  return {source, failed("kernel.cu:9:5: error: " + message, source)};
}

Case finding(const std::string& kind, const std::string& message, const std::string& source = {}) {
  return {source, failed("go: " + kind + ": " + message + " (shape odd1)", "at kernel.cu:9")};
}

Case wrong(Mismatch m, const std::string& source = {}) {
  if (m.shape.empty()) m.shape = "small";
  if (m.elements == 0) m.elements = 1024;
  if (m.wrong == 0) m.wrong = 16;
  Case out{source, failed("out: 16 of 1024 elements wrong (1.6%): " + m.pattern)};
  out.verdict.feedback.mismatches = {m};
  return out;
}

std::vector<std::string> hints(const Case& c) {
  KernelProgram program;
  program.sources["kernel.cu"] = c.source;
  return hints_for(program, c.verdict);
}

const std::string kCute = "#include <cute/tensor.hpp>\n";
const std::string kShared = "__shared__ float tile[64];\n";
const std::string kSoftmax = "float m = fmaxf(a, b); float e = expf(a - m);\n";
const std::string kScan = "float v = x[i]; // expected: exponents, a maximum\n";
const std::string kGemm = "gemm(mma, a, b, c);\n";

struct Example {
  std::string advice;
  Case answered;
  Case first, second;  // failures that the hint must not answer
};

std::vector<Example> compiler_examples() {
  return {
      {"tuples: get<0>(s)", error("no operator \"[]\" matches these operands", kCute),
       error("no operator \"+\" matches these operands", kCute),
       error("no operator \"[]\" matches these operands")},
      {"auto or a template parameter",
       error("no conversion to Stride<int, int>", "Stride<int, int> s;"),
       error("no conversion to Stride<int, int>", "Layout<S> s;"),
       finding("out_of_bounds", "the stride is 8", "Stride<int, int> s;")},
      {"copy() needs", error("Unrecognized CopyPolicy", kCute), error("copy is ambiguous", kCute),
       finding("bad_copy", "copy of 3 bytes", kCute)},
      {"an atom copies contiguous", error("static assertion in copy_unpack", kCute),
       finding("misaligned", "16 bytes at offset 4", "Copy_Atom<A, float>{}"),
       error("identifier \"i\" is undefined", "auto a = 1;")},
      {"make_fragment_like(t)",
       error("no instance of function template make_tensor matches", kCute),
       error("no instance of function template f matches"),
       wrong({.pattern = "every element"}, "make_tensor(x, l);")},
      {"layouts of registers", error("expression must be a constant value", kCute),
       error("expression must be a constant value", "int a[n];"),
       wrong({.pattern = "scattered"}, kCute)},
      {"write INFINITY", error("identifier \"CUDART_INF_F\" is undefined"),
       error("identifier \"limit\" is undefined"),
       wrong({.nan = 16, .pattern = "every element"}, "float m = CUDART_INF_F;")},
      {"no longer declares", error("identifier \"tile\" is undefined"),
       error("identifier \"CUDART_INF_F\" is undefined"),
       finding("uninitialised", "a value that is undefined")},
      {"occurs twice", error("function \"f\" has already been defined"),
       error("identifier \"f\" is undefined"),
       finding("global_race", "two blocks write element 3")},
      {"send the whole function", error("expected a \";\""),
       error("expression expected to be const"), wrong({.pattern = "columns from 8 on"}, kScan)},
      {"ends at 48 KB",
       error("Entry function 'go' uses too much shared data (0x10000 bytes, 0xc000 max)", kShared),
       finding("async_copy_pending",
               "read of 4 bytes of shared memory, which cp.async is still to write", kShared),
       finding("shared_race", "two warps touch offset 8 of shared memory", kShared)}};
}

std::vector<Example> finding_examples() {
  return {
      {"multiple of its size", finding("misaligned", "a load of 16 bytes at an odd address"),
       error("alignment of a variable must be a power of two, misaligned"),
       finding("out_of_bounds", "16 bytes, 4-byte alignment")},
      {"guard every load", finding("out_of_bounds", "a load outside every buffer"),
       wrong({.pattern = "the last 3 elements, outside of the tile"}),
       error("subscript outside of bounds, illegal")},
      {"before the next write", finding("shared_race", "two warps touch offset 8", kShared),
       finding("async_copy_pending", "read of 4 bytes of shared memory, a race with the copy",
               kShared),
       wrong({.pattern = "scattered"}, kShared + "__syncthreads(); // barrier")},
      {"run in any order", finding("global_race", "two blocks write element 3"),
       finding("shared_race", "two warps touch offset 8"), wrong({.pattern = "scattered"})},
      {"leaves the newest N groups",
       finding("async_copy_pending", "wait for its group first", kShared),
       finding("shared_race", "a copy and a read", "cp_async_wait<0>();"),
       wrong({.pattern = "last tile"}, "cp_async_wait<0>();")},
      {"no early return", finding("exited_before_barrier", "warp 3 has ended"),
       finding("shared_race", "no barrier between them"),
       finding("deadlock", "a barrier never fills")},
      {"before anything writes it", finding("uninitialised", "a branch depends on it"),
       error("variable is uninitialised"), wrong({.unwritten = 16, .pattern = "every element"})},
      {"fence registers before wgmma", finding("wgmma_pending", "a register of a product"),
       finding("missing_proxy_fence", "wgmma reads what threads wrote"),
       error("wgmma needs sm_90a")},
      {"fence.proxy.async", finding("missing_proxy_fence", "TMA reads what threads wrote"),
       finding("missing_wgmma_fence", "no fence before the product"),
       finding("async_copy_pending", "wait for its mbarrier first")}};
}

std::vector<Example> value_examples() {
  const Mismatch nan{
      .family = "signed", .wrong = 16, .nan = 16, .pattern = "rows 41 and 178, all NaN"};
  const Mismatch special{
      .family = "special", .wrong = 16, .nan = 16, .pattern = "rows 41 and 178, all NaN"};
  return {{"start a maximum at -INFINITY", wrong(nan, kSoftmax), wrong(special, kScan),
           wrong({.pattern = "every element"}, kSoftmax)},
          {"'special' hold infinities", wrong(special, kScan), wrong(nan, kScan),
           wrong({.family = "special", .pattern = "scattered"}, kScan)},
          {"never written", wrong({.unwritten = 16, .pattern = "every element"}),
           wrong({.pattern = "every element"}),
           finding("uninitialised", "memory that was never written")},
          {"wrong at an edge", wrong({.pattern = "columns from 32 on"}),
           wrong({.pattern = "every element"}),
           wrong({.wrong = 16, .nan = 16, .pattern = "columns from 32 on"})},
          {"B is (N,K)", wrong({.wrong = 1000, .pattern = "scattered"}, kGemm),
           wrong({.wrong = 3, .pattern = "scattered"}, kGemm),
           wrong({.wrong = 1000, .pattern = "scattered"}, "// gemm( of the reference\n")},
          {"promote the sums", wrong({.pattern = "its errors have a bias", .gate = Gate::bias}),
           wrong({.pattern = "every element"}, kGemm), error("bias is undefined")}};
}

TEST(Hints, EachAnswersItsFailureAndNoOther) {
  std::set<std::string> seen;
  for (const auto& examples : {compiler_examples(), finding_examples(), value_examples()})
    for (const Example& e : examples) {
      SCOPED_TRACE(e.advice);
      EXPECT_THAT(hints(e.answered), Contains(HasSubstr(e.advice)));
      EXPECT_THAT(hints(e.first), Each(Not(HasSubstr(e.advice))));
      EXPECT_THAT(hints(e.second), Each(Not(HasSubstr(e.advice))));
      seen.insert(e.advice);
    }
  EXPECT_EQ(seen.size(), known_hints()) << "every hint has its example";
}

// Failures from real answers of models.
TEST(Hints, RealFailuresGetTheirOwn) {
  const Case cumulative_product = wrong({.family = "special",
                                         .wrong = 164,
                                         .nan = 164,
                                         .pattern = "rows 41 and 178 (parts of them), all NaN"},
                                        "float carry = 1.0f; // expf is not needed\n");
  EXPECT_THAT(hints(cumulative_product), ElementsAre(HasSubstr("'special' hold infinities")));
  const Case pending_copy = finding(
      "async_copy_pending",
      "read of 4 bytes at offset 150848 of shared memory, which cp.async (ptx:1904) is still to "
      "write: wait for its group first",
      kShared);
  EXPECT_THAT(hints(pending_copy), ElementsAre(HasSubstr("cp_async_wait<N>")));
}

TEST(Hints, ACorrectProgramAndHostileTextGetNone) {
  Case c = error("expected a \";\"");
  c.verdict.status = Status::correct;
  EXPECT_THAT(hints(c), IsEmpty());
  for (const char* text :
       {"", ": ", ": : ", "a: b", "a: : b", "a: shared_race", ": shared race: x"})
    EXPECT_THAT(hints({"", failed(text)}), IsEmpty()) << text;
}

}  // namespace
}  // namespace cutegen::agent
