// SPDX-License-Identifier: Apache-2.0
// `cutegen export RUN --to KIND`: writes a program as files that do not need cutegen.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/export_inputs.h"
#include "cli/settings.h"

namespace cutegen::cli {
namespace {

struct ExportOptions {
  ExportWords words;
  std::vector<std::string> to;
  std::string out;
  bool force = false;
};

struct Written {
  std::string kind, folder;
  exporter::ExportFiles files;
};

std::string told(const std::vector<Written>& all, const exporter::ExportSource& source) {
  std::string out, checks;
  const std::string test = "test_" + exporter::plain_name(source.task.name) + ".py";
  for (const Written& w : all) {
    out += fmt::format("written {}/ ({} files): {} for {}\n", w.folder, w.files.size(), w.kind,
                       source.target.gpu);
    checks += fmt::format("check it: python {}/{}\n", w.folder, test);
  }
  for (const exporter::ExportShape& s : source.shapes) {
    const size_t steps = s.plan.prepare.size() + s.plan.steps.size();
    out += fmt::format("  shape {}: {} step{}\n", s.name, steps, steps == 1 ? "" : "s");
  }
  for (const std::string& why : source.left_out) out += "  not exported: " + why + "\n";
  if (!source.verdict) out += "  the program has no verdict: cutegen eval judges it\n";
  return out + checks;
}

Json document_of(const std::vector<Written>& all, const exporter::ExportSource& source) {
  Json exports = Json::array(), shapes = Json::array();
  for (const Written& w : all) {
    Json files = Json::array();
    for (const auto& [name, text] : w.files) files.push_back(name);
    exports.push_back({{"to", w.kind}, {"folder", w.folder}, {"files", files}});
  }
  for (const exporter::ExportShape& s : source.shapes) shapes.push_back(s.name);
  return Json{{"schema", "cutegen.export.v1"},
              {"task", source.task.name},
              {"gpu", source.target.gpu},
              {"arch", source.arch},
              {"shapes", shapes},
              {"left_out", source.left_out},
              {"judged", source.verdict.has_value()},
              {"exports", exports}};
}

// A single kind goes to OUT, or to TASK_KIND. Several kinds get one folder each, in OUT if given.
std::string folder_for(const ExportOptions& options, const std::string& kind, const Task& task) {
  const std::string own = exporter::plain_name(task.name) + "_" + kind;
  if (options.to.size() == 1) return options.out.empty() ? own : options.out;
  return options.out.empty() ? own : options.out + "/" + own;
}

Result<void> run(const Globals& g, const ExportOptions& options, const Settings& settings) {
  for (const std::string& kind : options.to) CG_CHECK(exporter::export_kind_from(kind));
  CG_TRY(Config config, settings.resolve());
  CG_TRY(ExportInputs in, read_export_inputs(g, options.words, config));
  CG_TRY(toolchain::ToolPaths tools,
         toolchain::find_tools({.python = config.text("python"), .most_cuda = in.cuda_version}));
  CG_TRY(exporter::ExportSource source,
         exporter::build_export(g.ctx, tools, in.task, in.program, in.target));
  if (in.start) CG_CHECK(exporter::add_start(tools, std::move(*in.start), source));
  source.origin = in.origin;
  source.verdict = std::move(in.verdict);
  source.certificate = std::move(in.certificate);
  std::vector<Written> all;
  for (const std::string& name : options.to) {
    CG_TRY(exporter::ExportKind kind, exporter::export_kind_from(name));
    Written w{.kind = name, .folder = folder_for(options, name, source.task), .files = {}};
    CG_TRY(w.files, exporter::export_files(source, kind));
    all.push_back(std::move(w));
  }
  if (options.to.size() > 1 && !options.out.empty()) {
    std::error_code ignored;  // if this fails, writing the files reports it
    std::filesystem::create_directory(options.out, ignored);
  }
  for (const Written& w : all) CG_CHECK(exporter::write_export(w.folder, w.files, options.force));
  print_result(g, document_of(all, source), told(all, source));
  return {};
}

}  // namespace

void add_export(CLI::App& app, Globals& g) {
  auto* command = app.add_subcommand("export", "write a program for PyTorch, KernelBench or C++");
  auto options = std::make_shared<ExportOptions>();
  auto settings = std::make_shared<Settings>();
  command
      ->add_option("RUN", options->words.what,
                   "a run (its id, the start of its id, or last), or a program folder")
      ->required();
  command
      ->add_option("--to", options->to,
                   "target: torch, kernelbench, cpp or source; may be repeated")
      ->delimiter(',')
      ->required();
  command->add_option("--task", options->words.task, "the task file of a program folder");
  command->add_option(
      "--out", options->out,
      "folder to write (default: TASK_TARGET); several targets get one folder each in it");
  command->add_option("--certificate", options->words.certificate,
                      "file that `certify --json` wrote (default: the folder's certificate.json)");
  command->add_flag("--force", options->force, "replace an earlier export");
  settings->add(*command, {"device", "python", "runs_dir"});
  command->footer(
      "The targets:\n"
      "  torch        a package with a drop-in Model and its operator\n"
      "  kernelbench  one file with ModelNew\n"
      "  cpp          a header and a source file that use the CUDA driver API\n"
      "  source       a file that replaces the CUDA kernel's file, with a launcher in C and an "
      "operator\n"
      "Each export contains the machine code or the sources, a test against float64, a bench.py\n"
      "that needs only PyTorch, and a README that lists the limits. It is for the GPU that\n"
      "judged the program; for a program folder, name the GPU with --device.\n"
      "Example: cutegen export last --to torch --out fast_softmax");
  command->callback([options, settings, &g] {
    auto done = run(g, *options, *settings);
    g.exit = done ? int(kExitOk) : report(g, done.error());
  });
}

}  // namespace cutegen::cli
