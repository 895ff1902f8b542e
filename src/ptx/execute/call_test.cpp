// SPDX-License-Identifier: Apache-2.0
// Device functions, printf and assert, from the compiler and written by hand.
#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

constexpr const char* kCallHead = ".version 9.0\n.target sm_90a\n.address_size 64\n";

// A kernel, preceded by `functions`, that stores %r1 to out[tid] at its end.
Module with_functions(const std::string& functions, const std::string& body) {
  auto m = Module::parse(kCallHead + functions +
                         ".visible .entry k(.param .u64 out) {\n"
                         ".reg .b32 %r<20>; .reg .b64 %rd<8>; .reg .pred %p<4>; .reg .f32 %f<4>;\n"
                         "mov.u32 %r0, %tid.x;\n" +
                         body +
                         "\nld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r0, 4;\n"
                         "add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r1; ret;\n}\n");
  if (!m) ADD_FAILURE() << m.error().text();
  return std::move(*m);
}

constexpr const char* kSquare = R"(
.visible .func (.param .b32 func_retval0) square(.param .b32 square_param_0) {
  .reg .b32 %r<4>;
  ld.param.b32 %r1, [square_param_0];
  mul.lo.s32 %r2, %r1, %r1;
  st.param.b32 [func_retval0], %r2;
  ret;
}
)";
constexpr const char* kCallSquare =
    "{ .param .b32 param0; .param .b32 retval0; st.param.b32 [param0], %r0;\n"
    "call.uni (retval0), square, (param0); ld.param.b32 %r1, [retval0]; }\n";

class Calls : public testing::Test {
 protected:
  LaunchReport run(const Module& m, LaunchStatus status = LaunchStatus::ok) {
    out.assign(64, -1);
    return sim.run(m, "k", 1, 64, {sim.output("out", out)}, 0, status);
  }
  std::vector<int> out;
  Sim sim;
};

TEST_F(Calls, ArgumentsAndResultsTravelInParameters) {
  run(with_functions(kSquare, kCallSquare));
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[size_t(i)], i * i);
}

TEST_F(Calls, OfOneFunctionTwiceInOneAnother) {
  const std::string twice = std::string(kSquare) + R"(
.func (.param .b32 func_retval0) fourth(.param .b32 fourth_param_0) {
  .reg .b32 %r<4>;
  ld.param.b32 %r1, [fourth_param_0];
  { .param .b32 param0; .param .b32 retval0; st.param.b32 [param0], %r1;
    call.uni (retval0), square, (param0); ld.param.b32 %r2, [retval0]; }
  { .param .b32 param0; .param .b32 retval0; st.param.b32 [param0], %r2;
    call.uni (retval0), square, (param0); ld.param.b32 %r3, [retval0]; }
  st.param.b32 [func_retval0], %r3;
  ret;
}
)";
  run(with_functions(twice,
                     "{ .param .b32 param0; .param .b32 retval0; st.param.b32 [param0], %r0;\n"
                     "call.uni (retval0), fourth, (param0); ld.param.b32 %r1, [retval0]; }\n"));
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[size_t(i)], i * i * i * i);
}

TEST_F(Calls, LanesReturnAtDifferentTimesAndMeetAgain) {
  const char* f = R"(
.func (.reg .b32 %result) pick(.reg .b32 %x) {
  .reg .pred %p; .reg .b32 %t;
  and.b32 %t, %x, 1; setp.eq.s32 %p, %t, 0;
  mov.b32 %result, 7;
  @%p ret;
  add.s32 %result, %x, 100;
  ret;
}
)";
  // a shuffle of all lanes after the call needs them to reconverge
  run(with_functions(f,
                     "call (%r2), pick, (%r0); shfl.sync.bfly.b32 %r1, %r2, 1, 31, 0xffffffff;\n"));
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[size_t(i)], i & 1 ? 7 : (i ^ 1) + 100);
}

TEST_F(Calls, UnderAGuardOnlyItsLanesCall) {
  run(with_functions(kSquare,
                     "mov.u32 %r1, 5; setp.gt.u32 %p1, %r0, 40;\n"
                     "{ .param .b32 param0; .param .b32 retval0; st.param.b32 [param0], %r0;\n"
                     "mov.u32 %r3, 3; st.param.b32 [retval0], %r3;\n"
                     "@%p1 call (retval0), square, (param0); ld.param.b32 %r1, [retval0]; }\n"));
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[size_t(i)], i > 40 ? i * i : 3);
}

TEST_F(Calls, StructuresAndArraysTravelByValue) {
  const char* f = R"(
.func (.param .align 8 .b8 func_retval0[8]) swap(.param .align 8 .b8 swap_param_0[8]) {
  .reg .b32 %r<4>;
  ld.param.v2.b32 {%r1, %r2}, [swap_param_0];
  st.param.b32 [func_retval0+4], %r1;
  st.param.b32 [func_retval0], %r2;
  ret;
}
)";
  run(with_functions(
      f,
      "{ .param .align 8 .b8 param0[8]; .param .align 8 .b8 retval0[8]; mov.u32 %r4, 1000;\n"
      "st.param.v2.b32 [param0], {%r0, %r4}; call.uni (retval0), swap, (param0);\n"
      "ld.param.v2.b32 {%r5, %r6}, [retval0]; sub.s32 %r1, %r5, %r6; }\n"));
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[size_t(i)], 1000 - i);
}

TEST_F(Calls, RecursionEndsAsUnsupportedOnlyWhereItGoesTooDeep) {
  const char* f = R"(
.func (.param .b32 func_retval0) sum(.param .b32 sum_param_0) {
  .reg .b32 %r<6>; .reg .pred %p;
  ld.param.b32 %r1, [sum_param_0];
  mov.u32 %r3, 0;
  setp.eq.s32 %p, %r1, 0;
  @%p bra DONE;
  sub.s32 %r2, %r1, 1;
  { .param .b32 param0; .param .b32 retval0; st.param.b32 [param0], %r2;
    call.uni (retval0), sum, (param0); ld.param.b32 %r3, [retval0]; }
  add.s32 %r3, %r3, %r1;
DONE:
  st.param.b32 [func_retval0], %r3;
  ret;
}
)";
  auto call = [](const char* argument) {
    return std::string("{ .param .b32 param0; .param .b32 retval0; ") + argument +
           "\nst.param.b32 [param0], %r2;\n"
           "call.uni (retval0), sum, (param0); ld.param.b32 %r1, [retval0]; }\n";
  };
  run(with_functions(f, call("and.b32 %r2, %r0, 7;")));
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[size_t(i)], (i & 7) * ((i & 7) + 1) / 2);
  auto r = run(with_functions(f, call("mov.u32 %r2, %r0;")), LaunchStatus::unsupported);
  EXPECT_NE(r.reason.find("a call of sum inside 16 others (recursion?)"), std::string::npos)
      << r.reason;
}

TEST_F(Calls, WhatIsNotKnownIsUnsupportedWhenReached) {
  auto r = run(with_functions(".extern .func (.param .b64 r) malloc(.param .b64 n);\n",
                              "{ .param .b64 param0; .param .b64 retval0; mov.u64 %rd4, 8;\n"
                              "st.param.b64 [param0], %rd4; call.uni (retval0), malloc, (param0); "
                              "}\nmov.u32 %r1, 1;\n"),
               LaunchStatus::unsupported);
  EXPECT_NE(r.reason.find("a call of malloc"), std::string::npos) << r.reason;
}

TEST_F(Calls, WrongArgumentsAreUserErrors) {
  auto bad = Module::parse(std::string(kCallHead) + kSquare +
                           ".visible .entry k() { .reg .b32 %r1; call square, (%r1); ret; }\n");
  ASSERT_FALSE(bad.has_value());
  EXPECT_NE(bad.error().text().find("wrong number of arguments"), std::string::npos);
  bad = Module::parse(std::string(kCallHead) + kSquare +
                      ".visible .entry k() { .reg .b64 %r1, %r2; call (%r1), square, (%r2); ret; "
                      "}\n");
  ASSERT_FALSE(bad.has_value());
  EXPECT_NE(bad.error().text().find("4 are expected"), std::string::npos) << bad.error().text();
}

constexpr const char* kPrint = R"(
.extern .func (.param .b32 func_retval0) vprintf(.param .b64 a, .param .b64 b);
.global .align 1 .b8 format[34] = {37, 100, 32, 105, 115, 32, 37, 46, 50, 102, 32, 37, 108, 108,
 117, 32, 37, 115, 32, 37, 99, 32, 37, 53, 120, 37, 37, 10, 0, 0, 0, 0, 0, 0};
.global .align 1 .b8 name[4] = {98, 111, 98, 0};
)";

TEST_F(Calls, PrintfIsAFindingWithItsText) {
  auto m = with_functions(
      kPrint,
      ".local .align 16 .b8 args[48]; .reg .f64 %fd1;\n"
      "setp.ne.s32 %p1, %r0, 35; @%p1 bra SKIP;\n"
      "neg.s32 %r5, %r0; st.local.u32 [args], %r5; mov.f64 %fd1, 0d4004000000000000;\n"
      "st.local.f64 [args+8], %fd1; mov.u64 %rd4, 99999999999; st.local.u64 [args+16], %rd4;\n"
      "mov.u64 %rd4, name; cvta.global.u64 %rd4, %rd4; st.local.u64 [args+24], %rd4;\n"
      "mov.u32 %r5, 33; st.local.u32 [args+32], %r5; mov.u32 %r5, 255; st.local.u32 [args+36], "
      "%r5;\n"
      "mov.u64 %rd5, format; cvta.global.u64 %rd5, %rd5; mov.u64 %rd6, args; cvta.local.u64 %rd6, "
      "%rd6;\n"
      "{ .param .b64 param0; .param .b64 param1; .param .b32 retval0;\n"
      "st.param.b64 [param0], %rd5; st.param.b64 [param1], %rd6;\n"
      "call.uni (retval0), vprintf, (param0, param1); ld.param.b32 %r1, [retval0]; }\nSKIP:\n"
      "mov.u32 %r1, 1;\n");
  auto r = run(m, LaunchStatus::finding);
  ASSERT_TRUE(r.finding);
  EXPECT_EQ(r.finding->kind, "printf");
  EXPECT_EQ(r.finding->message, "the kernel prints: -35 is 2.50 99999999999 bob !    ff%");
  EXPECT_EQ(r.finding->thread, 35);
}

TEST_F(Calls, PrintfSurvivesHostileArguments) {
  auto m = with_functions(
      kPrint,
      "mov.u64 %rd5, 12345; mov.u64 %rd6, -8;\n"
      "{ .param .b64 param0; .param .b64 param1; .param .b32 retval0;\n"
      "st.param.b64 [param0], %rd5; st.param.b64 [param1], %rd6;\n"
      "call.uni (retval0), vprintf, (param0, param1); ld.param.b32 %r1, [retval0]; }\n");
  auto r = run(m, LaunchStatus::finding);
  EXPECT_EQ(r.finding->message, "the kernel prints: (unmapped)");
  m = with_functions(
      kPrint,
      "mov.u64 %rd5, format; cvta.global.u64 %rd5, %rd5; mov.u64 %rd6, -8;\n"
      "{ .param .b64 param0; .param .b64 param1; .param .b32 retval0;\n"
      "st.param.b64 [param0], %rd5; st.param.b64 [param1], %rd6;\n"
      "call.uni (retval0), vprintf, (param0, param1); ld.param.b32 %r1, [retval0]; }\n");
  r = run(m, LaunchStatus::finding);
  EXPECT_EQ(r.finding->kind, "printf");
}

TEST_F(Calls, AssertTellsConditionPlaceAndFunction) {
  const char* head = R"(
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 what[4] = {120, 62, 48, 0};
.global .align 1 .b8 file[4] = {107, 46, 99, 0};
)";
  auto r =
      run(with_functions(
              head,
              "mov.u64 %rd4, what; cvta.global.u64 %rd4, %rd4; mov.u64 %rd5, file;\n"
              "cvta.global.u64 %rd5, %rd5; mov.u32 %r4, 12; mov.u64 %rd6, 1;\n"
              "{ .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 "
              "p4;\nst.param.b64 [p0], %rd4; st.param.b64 [p1], %rd5; st.param.b32 [p2], %r4;\n"
              "st.param.b64 [p3], %rd4; st.param.b64 [p4], %rd6;\n"
              "call.uni __assertfail, (p0, p1, p2, p3, p4); }\nmov.u32 %r1, 1;\n"),
          LaunchStatus::finding);
  EXPECT_EQ(r.finding->kind, "assert");
  EXPECT_EQ(r.finding->message, "assertion failed: x>0 (k.c:12, x>0)");
}

TEST_F(Calls, TrapAndBrkptSayWhich) {
  EXPECT_EQ(
      run(with_functions("", "trap; mov.u32 %r1, 1;"), LaunchStatus::finding).finding->message,
      "the kernel executed trap");
  EXPECT_EQ(
      run(with_functions("", "brkpt; mov.u32 %r1, 1;"), LaunchStatus::finding).finding->message,
      "the kernel executed brkpt");
}

}  // namespace
}  // namespace cutegen::ptx
