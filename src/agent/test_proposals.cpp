// SPDX-License-Identifier: Apache-2.0
#include "agent/test_proposals.h"

#include "base/text.h"

namespace cutegen::agent {
namespace {

constexpr size_t kMostProposal = 16 << 10;  // bytes of the JSON document
constexpr const char* kProposalForm =
    "\nAnswer with one JSON document in the given form: {\"cases\": [...]}.";

// The text from the first brace to the last one.
std::string_view document_in(std::string_view reply) {
  const size_t begin = reply.find('{'), end = reply.rfind('}');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return {};
  return reply.substr(begin, end - begin + 1);
}

struct Proposal {
  std::vector<TestCase> cases;
};
void fields(Fields& v, Proposal& p) {
  v("cases", p.cases);
}

}  // namespace

tl::expected<std::vector<TestCase>, Reask> parse_test_cases(const std::string& reply,
                                                            const Task& task) {
  std::string text = reply;
  if (size_t end = text.find("</think>"); end != std::string::npos) text.erase(0, end + 8);
  const std::string_view document = document_in(text);
  if (document.empty())
    return reask("no_tests", std::string("The answer has no test.") + kProposalForm);
  if (document.size() > kMostProposal)
    return reask("bad_tests", "The tests are longer than 16 KiB." + std::string(kProposalForm));
  auto json = parse_json(document, "cases", kMostProposal);
  if (!json) return reask("bad_tests", sanitize(json.error().text(), 400) + kProposalForm);
  auto proposal = read_json<Proposal>(*json);
  if (!proposal) return reask("bad_tests", sanitize(proposal.error().text(), 400) + kProposalForm);
  for (size_t i = 0; i < proposal->cases.size(); ++i)
    if (trim(proposal->cases[i].name).empty())
      proposal->cases[i].name = "test " + std::to_string(i + 1);
  if (auto checked = check_test_cases(proposal->cases, task); !checked)
    return reask("bad_tests", sanitize(checked.error().text(), 400) + kProposalForm);
  return std::move(proposal->cases);
}

}  // namespace cutegen::agent
