// SPDX-License-Identifier: Apache-2.0
#include "cli/eval_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/text.h"
#include "base/units.h"
#include "cli/table_console.h"
#include "device/device.h"
#include "engine/exchange/judge_folder.h"

namespace cutegen::cli {
namespace {

constexpr size_t kMostEvaluators = 64;
constexpr int kCoresOfOne = 4, kMostByDefault = 3;

std::string header() {
  return fmt::format("{:<40} {:<12} {:>10} {:>8}", "entry", "verdict", "time", "took") + "\n";
}

std::string line_of(const engine::FolderRow& row) {
  std::string time = row.time_ns ? human_ns(*row.time_ns) : "-";
  std::string took = row.kept ? "kept" : fmt::format("{:.2f} s", row.seconds);
  std::string out = fmt::format("{:<40} {:<12} {:>10} {:>8}", sanitize(row.name, 40),
                                to_string(row.status), time, took);
  if (row.foreign) out += "  foreign";
  if (row.status != engine::RowStatus::correct)
    out += "  " + sanitize(row.detail.substr(0, row.detail.find('\n')), 100);
  return out + "\n";
}

class ConsoleFolder final : public engine::FolderObserver {
 public:
  explicit ConsoleFolder(const Globals& g) : console_(g) {}
  void on_row(const engine::FolderRow& row, size_t ended, size_t total) override {
    console_.row(header(), line_of(row), ended, total);
  }

 private:
  TableConsole console_;
};

// On a GPU, one evaluator can compile and check while another measures. A simulator already uses
// all cores.
int default_evaluators(const DeviceName& device) {
  const int cores = int(std::thread::hardware_concurrency());
  return device.is_gpu() ? std::clamp(cores / kCoresOfOne, 1, kMostByDefault) : 1;
}

Result<std::vector<eval::EvaluatorOptions>> for_devices(const eval::EvaluatorOptions& options,
                                                        const std::string& devices,
                                                        int evaluators) {
  std::vector<eval::EvaluatorOptions> out;
  for (const std::string& device : split(devices, ',')) {
    eval::EvaluatorOptions one = options;
    CG_TRY(one.device, DeviceName::parse(device));
    one.sharing = evaluators ? evaluators : default_evaluators(one.device);
    out.insert(out.end(), size_t(one.sharing), one);
  }
  if (out.size() > kMostEvaluators)
    return user_error("too many evaluators", "--device and --evaluators", "64 at most");
  return out;
}

Json json_of(const engine::FolderRow& row) {
  Json out{{"name", row.name}, {"status", to_string(row.status)}, {"kept", row.kept}};
  if (row.time_ns) out["time_ns"] = *row.time_ns;
  if (row.foreign) out["label"] = "foreign";
  if (!row.detail.empty()) out["detail"] = row.detail;
  out["seconds"] = row.seconds;
  return out;
}

}  // namespace

Result<int> judge_batch(const Globals& g, const BatchOptions& batch, const std::string& task,
                        Rung up_to, double seconds, const eval::EvaluatorOptions& options) {
  if (batch.out.empty())
    return user_error("--batch has no folder for its verdicts", "", "add --out DIR");
  engine::JudgeFolderSettings settings{.in = batch.in,
                                       .out = batch.out,
                                       .task = task,
                                       .evaluators = {},
                                       .up_to = up_to,
                                       .again = batch.again,
                                       .seconds = seconds};
  settings.asked = batch.asked;
  CG_TRY(settings.evaluators, for_devices(options, batch.devices, batch.evaluators));
  const auto begin = Clock::now();
  std::vector<engine::FolderRow> rows;
  {
    ConsoleFolder observer(g);
    CG_TRY(rows, engine::judge_folder(engine::real_parts(), g.ctx, settings, observer));
  }
  const double took = std::chrono::duration<double>(Clock::now() - begin).count();
  Json list = Json::array(), counts = Json::object();
  std::string text = header();
  int code = kExitOk;
  size_t judged = 0;
  for (const engine::FolderRow& row : rows) {
    list.push_back(json_of(row));
    const char* status = to_string(row.status);
    counts[status] = counts.value(status, 0) + 1;
    text += line_of(row);
    judged += !row.kept && row.status != engine::RowStatus::pending &&
              row.status != engine::RowStatus::error;
    if (code == kExitOk) code = row.code;
    if (code == kExitOk && row.status == engine::RowStatus::aborted) code = kExitEnvironment;
  }
  if (g.ctx.done()) code = kExitInterrupted;
  text += fmt::format("{} entries", rows.size());
  for (const auto& [status, count] : counts.items())
    text += fmt::format(", {} {}", count.get<int>(), status);
  text += fmt::format("; {} judged in {:.1f} s: {:.2f} a second\n", judged, took,
                      double(judged) / std::max(took, 1e-9));
  if (code == kExitInterrupted) text += "Interrupted. Run the same command again to continue.\n";
  print_result(g,
               {{"schema", "cutegen.eval_batch.v1"},
                {"device", batch.devices},
                {"out", batch.out},
                {"counts", counts},
                {"judged", judged},
                {"seconds", took},
                {"entries", list}},
               text);
  return code;
}

}  // namespace cutegen::cli
