// SPDX-License-Identifier: Apache-2.0
// `cutegen docs [SYMBOL]`: shows people the component pages that models get.
#include <fmt/format.h>

#include <memory>

#include "agent/library.h"
#include "base/text.h"
#include "cli/command.h"

namespace cutegen::cli {
namespace {

Json page_json(const agent::Component& c) {
  return {{"name", c.name},  {"title", c.title},     {"symbols", c.symbols},
          {"arch", c.archs}, {"classes", c.classes}, {"text", c.text}};
}

Result<int> show_page(const Globals& g, const std::string& symbol) {
  const agent::Component* c = agent::find_component(symbol);
  if (!c) {
    auto near = nearest(symbol, agent::component_names());
    return user_error("no page about '" + sanitize(symbol, 80) + "'", "cutegen docs",
                      near ? "did you mean '" + *near + "'?" : "cutegen docs lists the pages");
  }
  Json document = page_json(*c);
  document["schema"] = "cutegen.docs.v1";
  print_result(g, document,
               fmt::format("{}\n\nsymbols    {}\ncompiled   for {}\n\n{}\n", c->title,
                           join(c->symbols, ", "), join(c->archs, ", "), c->text));
  return kExitOk;
}

int list_pages(const Globals& g) {
  Json pages = Json::array();
  std::string text;
  for (const agent::Component& c : agent::components()) {
    pages.push_back(page_json(c));
    text += fmt::format("{:<12} {}\n{:<12} {}\n", c.name, c.title, "", join(c.symbols, ", "));
  }
  print_result(g, {{"schema", "cutegen.docs.v1"}, {"pages", pages}}, text);
  return kExitOk;
}

}  // namespace

void add_docs(CLI::App& app, Globals& g) {
  CLI::App* command = app.add_subcommand("docs", "show the pages about device components");
  auto symbol = std::make_shared<std::string>();
  command->add_option("SYMBOL", *symbol,
                      "name of a page, a symbol or a header (default: list the pages)");
  command->footer(
      "Language models get the same pages. The tests compile the kernel of each page.\n"
      "Examples:\n"
      "  cutegen docs                 list the pages\n"
      "  cutegen docs combine_row     the page about a symbol");
  command->callback([symbol, &g] {
    if (symbol->empty()) {
      g.exit = list_pages(g);
      return;
    }
    auto code = show_page(g, *symbol);
    g.exit = code ? *code : report(g, code.error());
  });
}

}  // namespace cutegen::cli
