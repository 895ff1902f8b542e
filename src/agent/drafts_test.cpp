// SPDX-License-Identifier: Apache-2.0
#include "agent/drafts.h"

#include <gtest/gtest.h>

#include "agent/testing/test_program.h"

namespace cutegen::agent {
namespace {

KernelProgram program(const std::string& ending) {
  KernelProgram p = test_program();
  p.sources.begin()->second += "// " + ending + "\n";
  return p;
}

Verdict timed(double ns) {
  Verdict v;
  v.status = Status::correct;
  v.timing = Timing{.shape = "official", .time_ns = ns};
  return v;
}

TEST(Drafts, HaveANumberAParentAndAnAuthor) {
  Candidate subject;
  subject.id = "c7";
  Drafts drafts(&subject, Role::coder, "openai:gpt-5");
  const Draft& first = drafts.keep(program("a"), "wider tiles");
  const Draft& second = drafts.keep(program("b"), "");
  EXPECT_EQ(first.name, "d1");
  EXPECT_EQ(first.candidate.parent, "c7");
  EXPECT_EQ(first.candidate.edit.summary, "wider tiles");
  EXPECT_EQ(first.candidate.edit.origin, "openai:gpt-5");
  EXPECT_EQ(second.candidate.edit.summary, "draft d2 of the coder");
  EXPECT_FALSE(Drafts(nullptr, Role::coder, "").keep(program("a"), "").candidate.parent);
}

TEST(Drafts, KeepEqualProgramsOnce) {
  Drafts drafts(nullptr, Role::coder, "m");
  EXPECT_EQ(drafts.names(), "none");
  EXPECT_EQ(drafts.last(), nullptr);
  const Draft& first = drafts.keep(program("a"), "x");
  drafts.keep(program("b"), "y");
  EXPECT_EQ(&drafts.keep(program("a"), "z"), &first);
  EXPECT_EQ(first.candidate.edit.summary, "x");
  EXPECT_EQ(drafts.names(), "d1, d2");
  EXPECT_EQ(drafts.last()->name, "d2");
  EXPECT_EQ(drafts.find("d1"), &first);
  EXPECT_EQ(drafts.find(""), nullptr);
  EXPECT_EQ(drafts.missing_text("d9"), "There is no draft 'd9'; there are: d1, d2.");
}

TEST(Drafts, TheFastestIsCorrectAndHasATime) {
  Drafts drafts(nullptr, Role::coder, "m");
  drafts.keep(program("a"), "").verdict = timed(20);
  drafts.keep(program("b"), "").verdict = timed(10);
  drafts.keep(program("c"), "").verdict = timed(10);
  Draft& wrong = drafts.keep(program("d"), "");
  wrong.verdict = timed(1);
  wrong.verdict->status = Status::failed;
  drafts.keep(program("e"), "");
  EXPECT_EQ(drafts.fastest()->name, "d2");
  EXPECT_EQ(Drafts(nullptr, Role::coder, "m").fastest(), nullptr);
}

}  // namespace
}  // namespace cutegen::agent
