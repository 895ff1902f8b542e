// SPDX-License-Identifier: Apache-2.0
// `cutegen`, the command line: declares the application, runs one command, returns its exit code.
#include <CLI/CLI.hpp>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/interrupt.h"

namespace cutegen::cli {
namespace {

constexpr const char* kVersion = CUTEGEN_VERSION;

void declare(CLI::App& app, Globals& g) {
  app.description(
      "cutegen finds a faster CUDA kernel for a PyTorch module and checks it against the float64 "
      "truth.");
  app.footer(
      "Start here:\n"
      "  cutegen doctor                     show what this machine has and lacks\n"
      "  cutegen optimize tasks/softmax.py  find a kernel (on the simulator: no GPU, no model)\n"
      "  cutegen COMMAND --help             show the options of a command, with an example\n"
      "Exit codes: 0 done, 1 internal error, 2 user error, 3 no correct program, 4 rejected,\n"
      "  5 unsupported, 6 environment, 7 below --fail-under, 130 interrupted.");
  app.set_version_flag("--version", std::string("cutegen ") + kVersion);
  app.add_flag("--json", g.json, "print one JSON document on stdout");
  app.add_flag("-q,--quiet", g.quiet, "print no progress on stderr");
  app.require_subcommand(1);
  for (auto* add : {add_describe, add_optimize, add_bench, add_baselines, add_compare, add_resume,
                    add_runs, add_show, add_report, add_handout, add_import, add_export, add_eval,
                    add_certify, add_check, add_new, add_docs, add_doctor})
    add(app, g);
  // Accept the common flags after the command as well, because people write them there.
  for (CLI::App* command : app.get_subcommands({})) {
    if (!command->get_option_no_throw("--json"))
      command->add_flag("--json", g.json, "print one JSON document on stdout");
    if (!command->get_option_no_throw("--quiet"))
      command->add_flag("-q,--quiet", g.quiet, "print no progress on stderr");
  }
}

int run(int argc, char** argv) {
  Globals g;
  Interrupt interrupt;
  g.ctx = Context(interrupt.token());
  g.error_tty = stderr_is_terminal();
  for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; ++i)
    if (std::strcmp(argv[i], "--json") == 0) g.json = true;  // also for parse errors

  CLI::App app({}, "cutegen");
  declare(app, g);
  if (argc < 2) {
    print_text(app.help());
    return finish_output(kExitOk);
  }
  if (auto unknown = unknown_command(app, {argv + 1, argv + argc}))
    return finish_output(report(g, *unknown));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    g.exit = answer_parse(app, g, e, {argv + 1, argv + argc});
  }
  return finish_output(g.exit);
}

}  // namespace
}  // namespace cutegen::cli

int main(int argc, char** argv) {
  using namespace cutegen;
  const char* what = "unknown exception";
  try {
    return cli::run(argc, argv);
  } catch (const std::bad_alloc&) {
    what = "out of memory";
  } catch (const std::exception& e) {
    std::fprintf(stderr, "cutegen: internal error: %s (please report it)\n", e.what());
    return kExitInternal;
  }
  std::fprintf(stderr, "cutegen: internal error: %s\n", what);
  return kExitInternal;
}
