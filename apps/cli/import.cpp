// SPDX-License-Identifier: Apache-2.0
// `cutegen import RUN DIR OUT`: adds verdicts from another machine to a run, as candidates.
#include "base/text.h"
#include "cli/command.h"
#include "cli/run_observer.h"
#include "cli/runs_folder.h"
#include "cli/settings.h"
#include "engine/exchange/import_verdicts.h"

namespace cutegen::cli {
namespace {

struct ImportOptions {
  Settings settings;
  std::string run, programs, verdicts;
};

// Shows progress only; the command reports the imported candidates at the end.
class Quiet final : public engine::RunObserver {
 public:
  explicit Quiet(const Globals& g) : console_(g) {}
  void on_event(const Event&) override {}
  void on_progress(const std::string& line) override { console_.on_progress(line); }

 private:
  ConsoleObserver console_;
};

Result<int> run(const Globals& g, const ImportOptions& options) {
  CG_TRY(Config config, options.settings.resolve());
  CG_TRY(auto store, open_runs(config));
  engine::Imported done;
  {
    Quiet observer(g);
    CG_TRY(done, engine::import_verdicts(
                     engine::real_parts(), g.ctx, *store, options.run,
                     {.programs = options.programs, .verdicts = options.verdicts}, observer));
  }
  print_result(g, engine::to_json(done), sanitize(engine::to_text(done), size_t{16} << 20));
  return done.refused() > 0 ? kExitUser : kExitOk;
}

}  // namespace

void add_import(CLI::App& app, Globals& g) {
  CLI::App* command =
      app.add_subcommand("import", "import verdicts from another machine into a finished run");
  auto options = std::make_shared<ImportOptions>();
  command->add_option("RUN", options->run, "a run: its id, the start of its id, or last")
      ->required();
  command
      ->add_option("DIR", options->programs, "the folder of programs that the other machine judged")
      ->required();
  command->add_option("OUT", options->verdicts, "the folder of verdicts (--out of eval --batch)")
      ->required();
  options->settings.add(*command, {"runs_dir"});
  command->footer(
      "Each verdict becomes a candidate of the run. Its figures are labelled `imported` and\n"
      "name their device. cutegen compares them only with figures from the same GPU and driver,\n"
      "so also import the verdict of the run's best program. cutegen refuses broken entries by\n"
      "name and imports the others. Importing an entry twice adds nothing.\n"
      "Example: cutegen import last proposed verdicts\n"
      "Exit codes: 0 all imported, 2 some entries refused (or a user error), 6 environment");
  command->callback([&g, options] {
    auto code = run(g, *options);
    g.exit = code ? *code : report(g, code.error());
  });
}

}  // namespace cutegen::cli
