// SPDX-License-Identifier: Apache-2.0
#include "agent/grounded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "agent/testing/test_program.h"

namespace cutegen::agent {
namespace {

using testing::HasSubstr;

std::string fault(const std::string& advice) {
  auto spans = parse_spans(advice, test_program());
  return spans ? "none" : spans.error().reason + ": " + spans.error().text;
}

constexpr const char* kSpan =
    "Load four values.\nSPAN kernel.cu\nBEGIN: float value = x[i];\nEND: value = widen<1>(value);  "
    "// \" { in a string is no brace\n";

TEST(Grounded, FindsSpansByTheirLines) {
  auto spans = parse_spans(std::string(kSpan) + "SPAN plan.json\n", test_program());
  ASSERT_TRUE(spans) << spans.error().text;
  ASSERT_EQ(spans->sources.size(), 1u);
  EXPECT_EQ(spans->sources[0].first_line + 1, spans->sources[0].last_line);
  EXPECT_TRUE(spans->plan);
}

TEST(Grounded, SaysCauseLineAndRemedyOfABadPlan) {
  EXPECT_THAT(fault("Use vectors."), HasSubstr("no_span: The plan names no span. Name what"));
  EXPECT_THAT(fault("SPAN kernel.cu\nBEGIN: float value = x[i];\n"),
              HasSubstr("anchor_missing: Line 1, span in kernel.cu: the END anchor is missing"));
  EXPECT_THAT(fault("SPAN kernel.cu\nBEGIN: float value = x[j];\nEND: return x;"),
              HasSubstr("no line of the program reads `float value = x[j];`. Copy one whole line"));
  EXPECT_THAT(fault("SPAN kernel.cu\nBEGIN: if (i >= n) return;\nEND: return x;"),
              HasSubstr("anchor_ambiguous: Line 1, span in kernel.cu, BEGIN: the lines "));
  EXPECT_THAT(fault("SPAN other.cu\nBEGIN: a\nEND: b"),
              HasSubstr("Its files: plan.json, kernel.cu"));
  EXPECT_THAT(fault("BEGIN: a\nSPAN kernel.cu"), HasSubstr("anchor_alone: Line 1"));
  EXPECT_THAT(fault(std::string(kSpan) + "END: return x;"), HasSubstr("anchor_twice: Line 5"));
}

TEST(Grounded, RefusesSpansThatOverlapOrNest) {
  const std::string body =
      "SPAN kernel.cu\nBEGIN: float value = x[i];\nEND: out[i] = value + total({value, 1.0f});\n";
  EXPECT_THAT(fault(body + kSpan), HasSubstr("spans_nested: In kernel.cu, the span of lines "));
  EXPECT_THAT(fault(std::string(kSpan) +
                    "SPAN kernel.cu\nBEGIN: value = widen<1>(value);  // \" { in a string is no "
                    "brace\nEND: out[i] = value + total({value, 1.0f});"),
              HasSubstr("spans_overlap"));
}

TEST(Grounded, RefusesFilesAndPlansThatNoSpanAllows) {
  const KernelProgram parent = test_program();
  auto spans = parse_spans(kSpan, parent);
  ASSERT_TRUE(spans);
  EXPECT_TRUE(check_outside(*spans, parent, parent));
  KernelProgram changed = parent;
  changed.sources["more.cu"] = "int x;";
  EXPECT_THAT(check_outside(*spans, parent, changed).error().text, HasSubstr("more.cu is new"));
  changed = parent;
  changed.plan.steps[0].block = {};
  EXPECT_THAT(check_outside(*spans, parent, changed).error().text, HasSubstr("SPAN plan.json"));
  spans->plan = true;
  EXPECT_TRUE(check_outside(*spans, parent, changed));
}

// The slow reference tries every way to cut the new text at the kept parts.
bool can_be(const std::vector<std::string>& kept, size_t part, const std::string& now,
            size_t from) {
  if (part + 1 == kept.size())
    return now.size() >= from + kept[part].size() && now.ends_with(kept[part]);
  for (size_t at = from; at + kept[part].size() <= now.size(); ++at)
    if (now.compare(at, kept[part].size(), kept[part]) == 0 &&
        can_be(kept, part + 1, now, at + kept[part].size()))
      return true;
  return false;
}

TEST(Grounded, AgreesWithTheSlowReferenceByteForByte) {
  std::mt19937 random(7);
  auto draw = [&](size_t n) { return random() % n; };
  int accepted = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    KernelProgram parent = test_program(), changed = parent;
    std::string& before = parent.sources["kernel.cu"];
    before.clear();
    const size_t lines = 3 + draw(6);
    for (size_t i = 0; i < lines; ++i) before += std::string(1 + draw(2), "ab"[draw(2)]) + "\n";
    Spans spans;
    std::vector<std::string> kept{""};
    size_t at = 0;
    bool was_open = false;
    for (size_t i = 0; i < lines; ++i) {
      const size_t end = before.find('\n', at);
      const bool opens = !was_open && draw(3) == 0;
      was_open = opens;
      if (opens) {
        spans.sources.push_back({.file = "kernel.cu",
                                 .begin = at,
                                 .end = end,
                                 .first_line = int(i) + 1,
                                 .last_line = int(i) + 1});
        kept.emplace_back("\n");
      } else {
        kept.back() += before.substr(at, end + 1 - at);
      }
      at = end + 1;
    }
    std::string now = before;
    for (size_t edit = draw(3); edit > 0 && !now.empty(); --edit) {
      const size_t place = draw(now.size());
      if (draw(2) == 0)
        now.erase(place, 1);
      else
        now.insert(place, 1, "ab\n"[draw(3)]);
    }
    changed.sources["kernel.cu"] = now;
    const bool allowed = kept.size() == 1
                             ? now == before
                             : now.starts_with(kept[0]) && can_be(kept, 1, now, kept[0].size());
    const auto result = check_outside(spans, parent, changed);
    ASSERT_EQ(result.has_value(), allowed) << before << "---\n" << now;
    if (!allowed) {
      EXPECT_THAT(result.error().text, HasSubstr("at line "));
    }
    (allowed ? accepted : refused)++;
  }
  EXPECT_GT(accepted, 500);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace cutegen::agent
