// SPDX-License-Identifier: Apache-2.0
// `cutegen export RUN --to KIND`: a program as files that need nothing of cutegen.
#include <fmt/format.h>

#include <memory>

#include "cli/export_inputs.h"
#include "cli/settings.h"

namespace cutegen::cli {
namespace {

struct ExportOptions {
  ExportWords words;
  std::string to, out;
  bool force = false;
};

std::string told(const ExportOptions& options, const ExportSource& source,
                 const ExportFiles& files) {
  std::string out = fmt::format("written {}/ ({} files): {} for {}\n", options.out, files.size(),
                                options.to, source.target.gpu);
  for (const ExportShape& s : source.shapes)
    out +=
        fmt::format("  shape {}: {} step{}\n", s.name, s.plan.prepare.size() + s.plan.steps.size(),
                    s.plan.prepare.size() + s.plan.steps.size() == 1 ? "" : "s");
  for (const std::string& why : source.left_out) out += "  left out: " + why + "\n";
  if (!source.verdict) out += "  no verdict came with the program\n";
  return out +
         fmt::format("check it: python {}/test_{}.py\n", options.out, plain_name(source.task.name));
}

Result<void> run(const Globals& g, ExportOptions options, const Settings& settings) {
  CG_TRY(ExportKind kind, export_kind_from(options.to));
  CG_TRY(Config config, settings.resolve());
  CG_TRY(ExportInputs in, read_export_inputs(g, options.words, config));
  if (options.out.empty()) options.out = plain_name(in.task.name) + "_" + options.to;
  CG_TRY(ToolPaths tools, find_tools({config.text("python"), in.cuda_version}));
  CG_TRY(ExportSource source, build_export(g.ctx, tools, in.task, in.program, in.target));
  source.origin = in.origin;
  source.verdict = std::move(in.verdict);
  source.certificate = std::move(in.certificate);
  CG_TRY(ExportFiles files, export_files(source, kind));
  CG_CHECK(write_export(options.out, files, options.force));
  Json names = Json::array(), shapes = Json::array();
  for (const auto& [name, text] : files) names.push_back(name);
  for (const ExportShape& s : source.shapes) shapes.push_back(s.name);
  Json document{{"schema", "cutegen.export.v1"},
                {"to", options.to},
                {"folder", options.out},
                {"task", source.task.name},
                {"gpu", source.target.gpu},
                {"arch", source.arch},
                {"shapes", shapes},
                {"left_out", source.left_out},
                {"judged", source.verdict.has_value()},
                {"files", names}};
  print_result(g, document, told(options, source, files));
  return {};
}

}  // namespace

void add_export(CLI::App& app, Globals& g) {
  auto* command = app.add_subcommand("export", "write a program for PyTorch, KernelBench or C++");
  auto options = std::make_shared<ExportOptions>();
  auto settings = std::make_shared<Settings>();
  command
      ->add_option("RUN", options->words.what,
                   "a run (id, its beginning, or last), or a program folder")
      ->required();
  command->add_option("--to", options->to, "torch, kernelbench or cpp")->required();
  command->add_option("--task", options->words.task, "the task file of a program folder");
  command->add_option("--out", options->out, "the folder that is made (default: TASK_KIND)");
  command->add_option("--certificate", options->words.certificate,
                      "what `certify --json` wrote (default: certificate.json of the folder)");
  command->add_flag("--force", options->force, "replace an earlier export");
  settings->add(*command, {"device", "python", "runs_dir"});
  command->footer(
      "torch: a package with a drop-in Model and its operator. kernelbench: one file with "
      "ModelNew.\n"
      "cpp: a header and a source over the driver's API. Each has the machine code and the "
      "sources,\n"
      "a test against float64, a bench.py that needs PyTorch alone, and a README with the limits.\n"
      "The GPU is the one that the program was judged on; a program folder takes --device.\n"
      "Example: cutegen export last --to torch --out fast_softmax");
  command->callback([options, settings, &g] {
    auto done = run(g, *options, *settings);
    g.exit = done ? static_cast<int>(kExitOk) : report(g, done.error());
  });
}

}  // namespace cutegen::cli
