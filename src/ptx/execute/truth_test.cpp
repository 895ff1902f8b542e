// SPDX-License-Identifier: Apache-2.0
// Every opcode form of tests/golden/ptx/hw gives the result of a GPU (h200.bin, which
// opcode_truth.py wrote there), either exactly or within the form's bounds.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/json.h"
#include "ptx/ops/half.h"
#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

constexpr size_t kFormThreads = 128, kOutBytes = 1 << 16, kResultStride = 1024;
const std::string kFolder = std::string(CUTEGEN_SOURCE_DIR) + "/tests/golden/ptx/hw/";

struct TruthForm {
  std::string name, outs, ins, tolerance, text, entry;
};

size_t letter_bytes(char letter) {
  return std::string("hHGq").find(letter) != std::string::npos  ? 2
         : std::string("dFz").find(letter) != std::string::npos ? 8
                                                                : 4;
}

std::vector<std::string> split(const std::string& text, const std::string& by) {
  std::vector<std::string> out;
  size_t at = 0;
  for (size_t next; (next = text.find(by, at)) != std::string::npos; at = next + by.size())
    out.push_back(text.substr(at, next - at));
  out.push_back(text.substr(at));
  return out;
}

std::vector<TruthForm> forms_of(const std::string& text) {
  std::vector<TruthForm> out;
  const std::vector<std::string> parts = split(text, "\n// form ");
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::vector<std::string> fields = split(parts[i].substr(0, parts[i].find('\n')), " | ");
    const std::vector<std::string> signature = split(fields[1], ":");
    const size_t entry = parts[i].find(".entry ") + 7;
    out.push_back({fields[0], signature[0], signature[1], fields[2], fields[3],
                   parts[i].substr(entry, parts[i].find('(', entry) - entry)});
  }
  return out;
}

class Recording {
 public:
  Recording() {
    auto data = read_file(kFolder + "h200.bin");
    if (!data) return;
    const size_t line = data->find('\n');
    header_ = Json::parse(data->substr(0, line));
    body_ = data->substr(line + 1);
  }
  bool present() const { return !body_.empty(); }
  std::string pool(const std::string& key) const { return part("pools", key); }
  std::string form(const std::string& name) const { return part("forms", name); }

 private:
  std::string part(const char* table, const std::string& key) const {
    if (!header_.contains(table) || !header_[table].contains(key)) return {};
    const Json& at = header_[table][key];
    return body_.substr(at[0].get<size_t>(), at[1].get<size_t>());
  }
  Json header_;
  std::string body_;
};

std::vector<std::byte> run_form(const Module& module, const TruthForm& f,
                                const Recording& recording) {
  Sim sim;
  std::vector<std::byte> out(kOutBytes);
  std::vector<std::vector<std::byte>> pools(3);
  std::vector<Bytes8> args{sim.output("out", out)};
  const std::string letters = f.ins + "www";
  for (size_t i = 0; i < 3; ++i) {
    const std::string data = recording.pool(std::string{letters[i], char('a' + i)});
    pools[i].resize(data.size());
    std::memcpy(pools[i].data(), data.data(), data.size());
    args.push_back(sim.input(i == 0 ? "a" : i == 1 ? "b" : "c", pools[i]));
  }
  sim.options.threads = 1;
  auto report = sim.launch(module, f.entry.c_str(), 1, kFormThreads, args);
  if (!report || report->status != LaunchStatus::ok) {
    ADD_FAILURE() << f.name << ": " << (report ? report->reason : report.error().text());
    return {};
  }
  return out;
}

double number(char letter, uint64_t bits) {
  switch (letter) {
    case 'f':
      return std::bit_cast<float>(uint32_t(bits));
    case 'F':
      return std::bit_cast<double>(bits);
    case 'H':
    case 'x':
      return half_value(uint16_t(bits));
    default:
      return bfloat_value(uint16_t(bits));
  }
}
bool within(const std::string& tolerance, double got, double want) {
  for (const std::string& bound : split(tolerance, ",")) {
    const size_t eq = bound.find('=');
    if (eq == std::string::npos) continue;
    const double most = std::strtod(bound.c_str() + eq + 1, nullptr), off = std::abs(got - want);
    const std::string kind = bound.substr(0, eq);
    const double scale = kind == "abs"   ? 1
                         : kind == "rel" ? std::abs(want)
                                         : std::max(std::ldexp(std::abs(want), -23), 0x1p-149);
    if (off <= most * scale) return true;
  }
  return false;
}
bool agree_one(char letter, const std::string& tolerance, uint64_t got, uint64_t want) {
  if (got == want) return true;
  if (std::string("fFHGxy").find(letter) == std::string::npos) return false;
  const double g = number(letter, got), w = number(letter, want);
  if (std::isnan(g) || std::isnan(w)) return std::isnan(g) && std::isnan(w);
  return tolerance != "0" && within(tolerance, g, w);
}
bool agree(char letter, const std::string& tolerance, uint64_t got, uint64_t want) {
  if (letter != 'x' && letter != 'y') return agree_one(letter, tolerance, got, want);
  return agree_one(letter, tolerance, got & 0xffff, want & 0xffff) &&
         agree_one(letter, tolerance, got >> 16, want >> 16);
}

uint64_t value(const char* from, size_t i, size_t size) {
  uint64_t v = 0;
  std::memcpy(&v, from + i * size, size);
  return v;
}

void compare_form(const TruthForm& f, const std::vector<std::byte>& out,
                  const Recording& recording) {
  const std::string truth = recording.form(f.name);
  ASSERT_FALSE(truth.empty()) << f.name << " is not in h200.bin: run opcode_truth.py again";
  size_t at = 0, wrong = 0;
  std::string first;
  for (size_t k = 0; k < f.outs.size(); ++k) {
    const char letter = f.outs[k];
    const size_t size = letter_bytes(letter);
    for (size_t i = 0; i < kFormThreads; ++i) {
      const char* results = reinterpret_cast<const char*>(out.data()) + kResultStride * k;
      const uint64_t got = value(results, i, size);
      const uint64_t want = letter == 'p' ? uint64_t(truth[at + i / 8] >> (i % 8) & 1)
                                          : value(truth.data() + at, i, size);
      if (agree(letter, f.tolerance, got, want)) continue;
      if (wrong++ > 0) continue;
      first = fmt::format("result {} of thread {}: {:#x}, the GPU gave {:#x}; operands", k, i, got,
                          want);
      for (size_t o = 0; o < f.ins.size(); ++o) {
        const std::string pool = recording.pool(std::string{f.ins[o], char('a' + o)});
        first += fmt::format(" {:#x}", value(pool.data(), i, letter_bytes(f.ins[o])));
      }
    }
    at += letter == 'p' ? kFormThreads / 8 : kFormThreads * size;
  }
  EXPECT_EQ(wrong, 0u) << f.name << ": " << f.text << "\n  " << first;
}

class Truth : public testing::TestWithParam<const char*> {};

TEST_P(Truth, EveryFormGivesWhatTheGpuGave) {
  static const Recording recording;
  ASSERT_TRUE(recording.present());
  auto text = read_file(kFolder + GetParam() + ".ptx");
  ASSERT_TRUE(text.has_value());
  auto module = Module::parse(*text);
  ASSERT_TRUE(module.has_value()) << module.error().text();
  const std::vector<TruthForm> forms = forms_of(*text);
  ASSERT_GT(forms.size(), 20u);
  for (const TruthForm& f : forms) {
    const std::vector<std::byte> out = run_form(*module, f, recording);
    if (!out.empty()) compare_form(f, out, recording);
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, Truth,
                         testing::Values("integer", "bits", "float", "half", "convert", "compare",
                                         "memory", "warp", "matrix"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace cutegen::ptx
