// SPDX-License-Identifier: Apache-2.0
// A generated corpus of replies like those of models. Each is applied exactly as meant, or refused
// with the right reason; never applied in another way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "agent/edit.h"
#include "agent/plan_edit.h"
#include "agent/source_map.h"
#include "agent/testing/test_program.h"
#include "base/text.h"

namespace cutegen::agent {
namespace {

using Random = std::mt19937;

int pick(Random& random, size_t n) {
  return int(random() % n);
}

// One change to the test program: some consecutive lines with unique text, and their replacement.
struct Meant {
  std::string search, replace, function, result;
};

bool balanced(const std::string& text) {
  return !first_imbalance(text);
}

Meant draw(Random& random) {
  std::string source = test_source();
  auto lines = split(source, '\n');
  for (;;) {
    size_t from = 9 + size_t(pick(random, lines.size() - 11));
    size_t count = 1 + size_t(pick(random, 4));
    if (from + count >= lines.size()) continue;
    std::vector<std::string> run(lines.begin() + long(from), lines.begin() + long(from + count));
    Meant m;
    m.search = join(run, "\n");
    size_t at = source.find(m.search);
    if (trim(m.search).empty() || !balanced(m.search) || trim(run.front()).empty() ||
        trim(run.back()).empty() || source.find(m.search, at + 1) != std::string::npos)
      continue;
    // Lines that differ only in indentation would make an anchor ambiguous.
    run[size_t(pick(random, count))] += "  // tuned " + std::to_string(random() % 1000);
    m.replace = join(run, "\n");
    m.result = source;
    m.result.replace(at, m.search.size(), m.replace);
    for (const Definition& d : definitions_in(m.result))
      if (!d.is_type && at >= d.begin && at + m.replace.size() <= d.begin + d.size)
        m.function = m.result.substr(d.begin, d.size);
    return m;
  }
}

std::string prose(Random& random) {
  static const std::vector<std::string> kTexts{
      "",
      "Here is the change.\n\n",
      "SUMMARY: one change\nWHY: it pays\n\n",
      "The loads of `x` are not wide enough; see `scale(...)`.\n",
      "Ich \xC3\xA4ndere nur eine Zeile \xE2\x86\x92 schneller.\n\n",
      "1. first\n2. then `if (i >= n)`\n\n> note: {unbalanced\n\n",
      "As an illustration:\n```cuda\nvalue = other;\n```\nNow the edit:\n"};
  return kTexts[size_t(pick(random, kTexts.size()))];
}

std::string block(const std::string& search, const std::string& replace, int marks = 7) {
  auto run = [&](char c) { return std::string(size_t(marks), c); };
  return run('<') + " SEARCH\n" + search + "\n" + run('=') + "\n" + replace + "\n" + run('>') +
         " REPLACE\n";
}

std::string fenced(const std::string& info, const std::string& text) {
  return "```" + info + "\n" + text + (text.ends_with('\n') ? "" : "\n") + "```\n";
}

std::string each_line(const std::string& text, const std::function<std::string(std::string)>& f) {
  std::string out;
  for (const std::string& line : split(text, '\n')) out += (out.empty() ? "" : "\n") + f(line);
  return out;
}

using Maker = std::function<std::string(Random&, const Meant&)>;

const std::vector<Maker>& good_makers() {
  static const std::vector<Maker> kMakers{
      [](Random& r, const Meant& m) {
        return prose(r) + fenced("edit kernel.cu", block(m.search, m.replace)) + "Done.\n";
      },
      [](Random& r, const Meant& m) { return prose(r) + block(m.search, m.replace); },
      [](Random& r, const Meant& m) {
        return replace_all(prose(r) + fenced("edit kernel.cu", block(m.search, m.replace)), "\n",
                           "\r\n");
      },
      [](Random& r, const Meant& m) {
        return prose(r) + fenced("cuda", block(m.search, m.replace, 5 + pick(r, 5)));
      },
      [](Random& r, const Meant& m) {
        return prose(r) + "**kernel.cu**\n" + fenced("cpp", block(m.search, m.replace));
      },
      [](Random& r, const Meant& m) {  // blanks at the ends of the anchor
        std::string search = each_line(m.search, [](std::string l) { return l + "  \t"; });
        return prose(r) + fenced("edit kernel.cu", block(search, m.replace));
      },
      [](Random& r, const Meant& m) { return prose(r) + fenced("file kernel.cu", m.result); },
      [](Random& r, const Meant& m) { return prose(r) + fenced("cuda", m.result); },
      [](Random& r, const Meant& m) { return prose(r) + fenced("", m.result); },
      [](Random& r, const Meant& m) {
        return prose(r) + replace_all(fenced("c++ kernel.cu", m.result), "\n", "\r\n");
      },
      [](Random&, const Meant& m) { return m.result; },
      [](Random& r, const Meant& m) {
        if (m.function.empty()) return fenced("file kernel.cu", m.result);
        return prose(r) + fenced("function kernel.cu", m.function);
      },
      [](Random& r, const Meant& m) {
        if (m.function.empty()) return fenced("file kernel.cu", m.result);
        return prose(r) + fenced("function", "\n" + m.function + "\n\n");
      },
      [](Random& r, const Meant& m) {
        return "```markdown\n" + prose(r) + fenced("edit kernel.cu", block(m.search, m.replace)) +
               "```\n";
      },
      [](Random& r, const Meant& m) {
        return "<think>\nmaybe ```edit other.cu\n</think>\n" + prose(r) +
               fenced("edit kernel.cu", block(m.search, m.replace));
      },
      [](Random& r, const Meant& m) {  // the same block twice
        std::string one = fenced("edit kernel.cu", block(m.search, m.replace));
        return prose(r) + one + "Again:\n" + one;
      },
      [](Random&, const Meant& m) {
        return "~~~edit kernel.cu\n" + block(m.search, m.replace) + "~~~\n";
      },
      [](Random&, const Meant& m) {
        return "````edit kernel.cu\n" + block(m.search, m.replace) + "````\n";
      },
      [](Random& r, const Meant& m) {
        return "\xEF\xBB\xBF" + prose(r) + fenced("edit kernel.cu", block(m.search, m.replace));
      },
      [](Random& r, const Meant& m) {
        return prose(r) + fenced("edit kernel.cu", "\n" + block(m.search, m.replace) + "\n");
      }};
  return kMakers;
}

struct Fault {
  std::string reason;
  Maker make;
};

// Every faulty reply also contains the good edit, so that the test notices a partial application.
const std::vector<Fault>& bad_makers() {
  static const std::vector<Fault> kMakers{
      {"anchor_missing",
       [](Random& r, const Meant& m) {
         return prose(r) + fenced("edit kernel.cu", block(m.search + " + oops", m.replace));
       }},
      {"anchor_missing",
       [](Random& r, const Meant& m) {
         return prose(r) + fenced("edit kernel.cu",
                                  block(m.search, m.replace) + block("int never_there = 1;", "x"));
       }},
      {"anchor_repeated",
       [](Random& r, const Meant&) {
         static const std::vector<std::string> kTwice{"  if (i >= n) return;",
                                                      "if (i >= n) return;",
                                                      "extern \"C\" __global__ void",
                                                      "kThreads",
                                                      "}",
                                                      "float* out, int n) {"};
         return prose(r) +
                fenced("edit kernel.cu", block(kTwice[size_t(pick(r, kTwice.size()))], "x"));
       }},
      {"cut",
       [](Random& r, const Meant& m) {
         std::string text = "```edit kernel.cu\n" + block(m.search, m.replace);
         return prose(r) + text.substr(0, 18 + size_t(pick(r, text.size() - 18)));
       }},
      {"cut",
       [](Random& r, const Meant& m) {
         return prose(r) + "```file kernel.cu\n" +
                m.result.substr(0, size_t(pick(r, m.result.size())));
       }},
      {"no_block", [](Random&, const Meant&) { return "I would change `scale`.\n"; }},
      {"diff",
       [](Random&, const Meant& m) {
         return fenced("diff", "--- kernel.cu\n+++ kernel.cu\n@@ -1,2 +1,2 @@\n-" + m.search +
                                   "\n+" + m.replace);
       }},
      {"no_change",
       [](Random& r, const Meant& m) {
         return prose(r) + fenced("edit kernel.cu", block(m.search, m.search));
       }},
      {"no_change",
       [](Random& r, const Meant&) { return prose(r) + fenced("file kernel.cu", test_source()); }},
      {"overlap",
       [](Random& r, const Meant& m) {
         return prose(r) + fenced("edit kernel.cu",
                                  block(m.search, m.replace) + block(m.search, m.replace + ";"));
       }},
      {"unbalanced",
       [](Random& r, const Meant& m) {
         static const std::vector<std::string> kBrackets{"{", "}", "(", ")", "[", "]"};
         return prose(r) + fenced("edit kernel.cu", block(m.search, kBrackets[size_t(pick(r, 6))] +
                                                                        "\n" + m.replace));
       }},
      {"gap",
       [](Random& r, const Meant& m) {
         static const std::vector<std::string> kGaps{"  // ... rest of the code unchanged ...",
                                                     "...", "// ...existing code...",
                                                     "/* ... same as before ... */"};
         std::string gap = kGaps[size_t(pick(r, kGaps.size()))];
         return prose(r) +
                fenced("file kernel.cu", replace_all(m.result, "  if (i >= n) return;", gap));
       }},
      {"bad_json",
       [](Random& r, const Meant& m) {
         return prose(r) + fenced("edit kernel.cu", block(m.search, m.replace)) +
                fenced("plan", "[{\"path\": \"/defines/STAGES\", \"value\": 3,}]");
       }},
      {"bad_pointer",
       [](Random& r, const Meant& m) {
         return fenced("edit kernel.cu", block(m.search, m.replace)) +
                fenced("plan", "[{\"path\": \"/steps/" + std::to_string(2 + pick(r, 9)) +
                                   "/block/0\", \"value\": 3}]");
       }},
      {"bad_plan",
       [](Random&, const Meant& m) {
         return fenced("edit kernel.cu", block(m.search, m.replace)) +
                fenced("plan", "[{\"path\": \"/steps/0/grid\", \"value\": \"ceil_div(n\"}]");
       }},
      {"no_file",
       [](Random& r, const Meant& m) {
         return prose(r) + fenced("edit kernel2.cu", block(m.search, m.replace));
       }},
      {"bad_edit",
       [](Random& r, const Meant& m) {
         std::string text = block(m.search, m.replace);
         static const std::vector<std::string> kMarks{"=======\n", ">>>>>>> REPLACE\n"};
         return prose(r) +
                fenced("edit kernel.cu", replace_all(text, kMarks[size_t(pick(r, 2))], "\n"));
       }},
      {"function_missing",
       [](Random& r, const Meant&) {
         return prose(r) + fenced("function kernel.cu", "int fresh(int a) {\n  return a;\n}");
       }},
      {"snippet",
       [](Random&, const Meant& m) { return "Change it to\n" + fenced("cuda", m.replace); }},
      {"ambiguous",
       [](Random&, const Meant& m) {
         return "Either\n" + fenced("cuda", m.result) + "or\n" +
                fenced("cuda", m.result + "// b\n");
       }},
      {"ambiguous",
       [](Random&, const Meant& m) {
         return fenced("file kernel.cu", m.result) +
                fenced("edit kernel.cu", block(m.search, m.replace));
       }},
      {"anchor_empty",
       [](Random&, const Meant& m) { return fenced("edit kernel.cu", block("", m.replace)); }},
      {"bad_plan", [](Random&, const Meant& m) {
         return fenced("file kernel.cu", m.result) + fenced("file extra.cu", "int a;");
       }}};
  return kMakers;
}

tl::expected<KernelProgram, Reask> apply_text(const std::string& text, const KernelProgram& base) {
  auto reply = parse_reply(text, &base);
  if (!reply) return tl::unexpected(reply.error());
  return apply_reply(*reply, &base, {});
}

constexpr unsigned kSeeds = 40;

TEST(Corpus, EveryGoodReplyIsAppliedAsMeant) {
  const KernelProgram base = test_program();
  int replies = 0;
  for (unsigned seed = 1; seed <= kSeeds; ++seed)
    for (size_t k = 0; k < good_makers().size(); ++k, ++replies) {
      Random random(seed * 1000 + unsigned(k));
      Meant meant = draw(random);
      std::string text = good_makers()[k](random, meant);
      auto got = apply_text(text, base);
      ASSERT_TRUE(got) << "maker " << k << " seed " << seed << "\n"
                       << got.error().text << "\n"
                       << text;
      ASSERT_EQ(got->sources.at("kernel.cu"), meant.result) << "maker " << k << "\n" << text;
    }
  EXPECT_GE(replies, 200);
}

TEST(Corpus, EveryFaultyReplyIsAskedForAgainWithItsReason) {
  const KernelProgram base = test_program();
  int replies = 0;
  for (unsigned seed = 1; seed <= kSeeds; ++seed)
    for (const Fault& fault : bad_makers()) {
      Random random(seed * 77 + unsigned(replies++));
      Meant meant = draw(random);
      std::string text = fault.make(random, meant);
      auto got = apply_text(text, base);
      ASSERT_FALSE(got) << "wanted " << fault.reason << "\n" << text;
      ASSERT_EQ(got.error().reason, fault.reason) << got.error().text << "\n" << text;
      ASSERT_GT(got.error().text.size(), 20u);
    }
  EXPECT_GE(replies, 200);
}

// A truncated reply is refused, or it gives the same change.
TEST(Corpus, NoBeginningOfAReplyIsAppliedInAnotherWay) {
  const KernelProgram base = test_program();
  for (unsigned seed = 1; seed <= 6; ++seed)
    for (size_t k = 0; k < good_makers().size(); ++k) {
      Random random(seed * 31 + unsigned(k));
      Meant meant = draw(random);
      std::string text = good_makers()[k](random, meant);
      if (text == meant.result) continue;  // a bare file has no end mark
      for (size_t size = 0; size < text.size(); size += 1 + size_t(pick(random, 7))) {
        auto got = apply_text(text.substr(0, size), base);
        if (got) {
          ASSERT_EQ(got->sources.at("kernel.cu"), meant.result) << text.substr(0, size);
        }
      }
    }
}

// Deleted, repeated or swapped lines never crash the parser and never apply half a reply; the
// result always has balanced brackets.
TEST(Corpus, DamagedRepliesNeverGiveAProgramOutOfBalance) {
  const KernelProgram base = test_program();
  for (unsigned seed = 1; seed <= 600; ++seed) {
    Random random(seed);
    Meant meant = draw(random);
    std::string text = good_makers()[seed % good_makers().size()](random, meant);
    auto lines = split(text, '\n');
    for (int n = 0; n < 3; ++n) {
      size_t a = size_t(pick(random, lines.size()));
      size_t b = size_t(pick(random, lines.size()));
      if (pick(random, 2))
        std::swap(lines[a], lines[b]);
      else
        lines[a] = lines[b];
    }
    if (auto got = apply_text(join(lines, "\n"), base)) {
      ASSERT_FALSE(first_imbalance(got->sources.at("kernel.cu")));
    }
  }
}

}  // namespace
}  // namespace cutegen::agent
