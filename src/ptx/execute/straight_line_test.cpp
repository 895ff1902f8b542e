// SPDX-License-Identifier: Apache-2.0
// Generated straight-line programs, run by the simulator, and by the reference thread by thread.
//
// CUTEGEN_PROGRAMS=N runs N programs instead of 60. CUTEGEN_SEED=S begins at another seed.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>

#include "ptx/testing/reference.h"
#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

constexpr size_t kLineThreads = 48, kLength = 60, kPerClass = 6;
// Register classes: letter -> register type. Values never go from floats to bits, because the ISA
// does not specify the bits of a NaN.
constexpr std::string_view kClasses = "hrdfgp";
constexpr const char* kTypes[] = {"b16", "b32", "b64", "f32", "f64", "pred"};

struct Line {
  std::string guard, opcode, to;      // guard "" or "p3" or "!p3"
  std::vector<std::string> operands;  // registers or numbers
  std::string text() const {
    std::string out = (guard.empty()     ? ""
                       : guard[0] == '!' ? "@!%" + guard.substr(1) + " "
                                         : "@%" + guard + " ") +
                      opcode + " %" + to;
    for (const std::string& o : operands)
      out += ", " + std::string(std::isalpha(o[0]) ? "%" : "") + o;
    return out + ";";
  }
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}
  std::vector<Line> program() {
    std::vector<Line> out;
    while (out.size() < kLength) out.push_back(line());
    return out;
  }
  uint64_t value(char letter);

 private:
  size_t below(size_t n) { return random_() % n; }
  std::string pick(std::initializer_list<const char*> list) {
    return list.begin()[below(list.size())];
  }
  std::string reg(char letter) { return letter + std::to_string(below(kPerClass)); }
  std::string small(char letter) {  // a register or a number
    return below(3) ? reg(letter) : std::to_string(below(70));
  }
  Line make(std::string opcode, char to, std::vector<std::string> operands) {
    Line l{"", std::move(opcode), reg(to), std::move(operands)};
    if (below(4) == 0) l.guard = (below(2) ? "!" : "") + reg('p');
    return l;
  }
  Line line();
  Line integer();
  Line bits();
  Line floating();
  Line conversion();
  Line predicate();
  std::mt19937_64 random_;
};

uint64_t Generator::value(char letter) {
  static const float floats[] = {0.f, -0.f, 1.f, -1.5f, INFINITY, NAN, 1e-40f, 3e38f, 2147483648.f};
  const bool special = below(3) == 0;
  const double moderate = std::ldexp(double(int64_t(random_()) >> 11), int(below(60)) - 80);
  switch (letter) {
    case 'f':
      return std::bit_cast<uint32_t>(special ? floats[below(std::size(floats))] : float(moderate));
    case 'g':
      return std::bit_cast<uint64_t>(special ? double(floats[below(std::size(floats))]) : moderate);
    case 'p':
      return below(2);
    default:
      return special ? (below(2) ? ~uint64_t{0} << below(64) : below(3)) : random_() >> below(64);
  }
}

Line Generator::integer() {
  const std::string width = pick({"16", "32", "64"});
  const char c = width == "16" ? 'h' : width == "32" ? 'r' : 'd';
  const std::string t = pick({"s", "u"}) + width;
  switch (below(7)) {
    case 0:
      return make(pick({"add.", "sub.", "min.", "max.", "mul.lo.", "mul.hi.", "div.", "rem."}) + t,
                  c, {reg(c), reg(c)});
    case 1:
      return make("mad.lo." + t, c, {reg(c), reg(c), reg(c)});
    case 2:
      return make("sad." + t, c, {reg(c), reg(c), reg(c)});
    case 3:
      return make(pick({"neg.s", "abs.s"}) + width, c, {reg(c)});
    case 4:
      return make("shr." + t, c, {reg(c), small('r')});
    case 5: {
      const bool shorter = below(2) == 0;
      const std::string s = pick({"s", "u"}) + (shorter ? "16" : "32");
      const char from = shorter ? 'h' : 'r', to = shorter ? 'r' : 'd';
      if (below(2)) return make("mul.wide." + s, to, {reg(from), reg(from)});
      return make("mad.wide." + s, to, {reg(from), reg(from), reg(to)});
    }
    default:
      return make(pick({"add.sat.s32", "sub.sat.s32", "mul.hi.u32", "mul.hi.s32"}), 'r',
                  {reg('r'), small('r')});
  }
}

Line Generator::bits() {
  const std::string width = pick({"16", "32", "64"});
  const char c = width == "16" ? 'h' : width == "32" ? 'r' : 'd', q = below(2) ? 'r' : 'd';
  const std::string w = q == 'r' ? "32" : "64";
  switch (below(9)) {
    case 0:
      return make(pick({"and.b", "or.b", "xor.b"}) + width, c, {reg(c), reg(c)});
    case 1:
      return make(pick({"not.b", "cnot.b"}) + width, c, {reg(c)});
    case 2:
      return make("shl.b" + width, c, {reg(c), small('r')});
    case 3:
      return make(pick({"popc.b", "clz.b", "bfind.s", "bfind.u", "bfind.shiftamt.u"}) + w, 'r',
                  {reg(q)});
    case 4:
      return make("brev.b" + w, q, {reg(q)});
    case 5:
      return make(pick({"bfe.u", "bfe.s"}) + w, q, {reg(q), small('r'), small('r')});
    case 6:
      return make("bfi.b" + w, q, {reg(q), reg(q), small('r'), small('r')});
    case 7:
      return make(pick({"shf.l.wrap.b32", "shf.r.wrap.b32", "shf.l.clamp.b32", "shf.r.clamp.b32",
                        "prmt.b32", "dp4a.s32.s32", "dp4a.u32.u32", "dp4a.s32.u32"}),
                  'r', {reg('r'), reg('r'), reg('r')});
    default:
      return make("lop3.b32", 'r', {reg('r'), reg('r'), reg('r'), std::to_string(below(256))});
  }
}

Line Generator::floating() {
  const char c = below(2) ? 'f' : 'g';
  const std::string t = c == 'f' ? "f32" : "f64";
  switch (below(5)) {
    case 0:
      return make(pick({"fma.rn."}) + t, c, {reg(c), reg(c), reg(c)});
    case 1:
      return make(pick({"neg.", "abs.", "sqrt.rn.", "rcp.rn."}) + t, c, {reg(c)});
    case 2:
      return make(pick({"add.sat.", "mul.sat.", "sub.sat."}) + "f32", 'f', {reg('f'), reg('f')});
    default:
      return make(pick({"add.", "sub.", "mul.", "min.", "max.", "div.rn."}) + t, c,
                  {reg(c), reg(c)});
  }
}

Line Generator::conversion() {
  const std::string a = pick({"8", "16", "32", "64"}), b = pick({"8", "16", "32", "64"});
  auto letter = [](const std::string& w) { return w == "64" ? 'd' : w == "16" ? 'h' : 'r'; };
  const std::string to = pick({"s", "u"}) + a, from = pick({"s", "u"}) + b;
  const bool single = below(2) == 0;
  const std::string f = single ? "f32" : "f64";
  const char c = single ? 'f' : 'g';
  switch (below(5)) {
    case 0:
      return make("cvt." + to + "." + from, letter(a), {reg(letter(b))});
    case 1:
      return make("cvt.sat." + to + "." + from, letter(a), {reg(letter(b))});
    case 2:
      return make(pick({"cvt.rzi.", "cvt.rni.", "cvt.rmi.", "cvt.rpi."}) + to + "." + f, letter(a),
                  {reg(c)});
    case 3:
      return make("cvt.rn." + f + "." + from, c, {reg(letter(b))});
    default:
      return single ? make("cvt.rn.f32.f64", 'f', {reg('g')})
                    : make("cvt.f64.f32", 'g', {reg('f')});
  }
}

Line Generator::predicate() {
  const std::string width = pick({"16", "32", "64"});
  const char c = width == "16" ? 'h' : width == "32" ? 'r' : 'd', q = below(2) ? 'f' : 'g';
  switch (below(5)) {
    case 0:
      return make(
          "setp." + pick({"eq", "ne", "lt", "le", "gt", "ge"}) + "." + pick({"s", "u"}) + width,
          'p', {reg(c), reg(c)});
    case 1:
      return make("setp." +
                      pick({"eq", "ne", "lt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num",
                            "nan"}) +
                      (q == 'f' ? ".f32" : ".f64"),
                  'p', {reg(q), reg(q)});
    case 2:
      return make(pick({"and.pred", "or.pred", "xor.pred"}), 'p', {reg('p'), reg('p')});
    case 3:
      return make("selp.b" + width, c, {reg(c), reg(c), reg('p')});
    default:
      return make("slct.b" + width + ".s32", c, {reg(c), reg(c), reg('r')});
  }
}

Line Generator::line() {
  switch (below(5)) {
    case 0:
      return integer();
    case 1:
      return bits();
    case 2:
      return floating();
    case 3:
      return conversion();
    default:
      return predicate();
  }
}

// A thread's registers, class by class; each takes 8 bytes in memory.
using RegisterValues = std::vector<uint64_t>;
size_t index_of(const std::string& name) {
  return kClasses.find(name[0]) * kPerClass + size_t(std::stoi(name.substr(1)));
}
int width_of(char letter) {
  return letter == 'h' ? 16 : letter == 'r' || letter == 'f' ? 32 : letter == 'p' ? 1 : 64;
}
uint64_t kept(char letter, uint64_t v) {
  const int bits = width_of(letter);
  return bits == 64 ? v : v & ((uint64_t{1} << bits) - 1);
}

std::string line_source(const std::vector<Line>& lines) {
  std::string out =
      ".version 8.4\n.target sm_80\n.address_size 64\n"
      ".visible .entry t(.param .u64 out, .param .u64 in) {\n"
      ".reg .b64 %in, %out, %at; .reg .b32 %i, %w; .reg .b64 %wide;\n";
  for (size_t k = 0; k < kClasses.size(); ++k)
    out += fmt::format(".reg .{} %{}<{}>;\n", kTypes[k], kClasses[k], kPerClass);
  out += fmt::format(
      "mov.u32 %i, %tid.x; mul.wide.u32 %at, %i, {};\n"
      "ld.param.u64 %in, [in]; add.s64 %in, %in, %at;\n"
      "ld.param.u64 %out, [out]; add.s64 %out, %out, %at;\n",
      8 * kClasses.size() * kPerClass);
  auto each = [&](auto&& act) {
    for (size_t k = 0; k < kClasses.size() * kPerClass; ++k)
      act(kClasses[k / kPerClass], fmt::format("%{}{}", kClasses[k / kPerClass], k % kPerClass),
          8 * k, kTypes[k / kPerClass]);
  };
  each([&](char c, const std::string& name, size_t at, const char* type) {
    out += c == 'p' ? fmt::format("ld.global.b32 %w, [%in+{}]; setp.ne.s32 {}, %w, 0;\n", at, name)
                    : fmt::format("ld.global.{} {}, [%in+{}];\n", type, name, at);
  });
  for (const Line& l : lines) out += l.text() + "\n";
  each([&](char c, const std::string& name, size_t at, const char* type) {
    out += c == 'p' ? fmt::format("selp.b32 %w, 1, 0, {}; st.global.b32 [%out+{}], %w;\n", name, at)
                    : fmt::format("st.global.{} [%out+{}], {};\n", type, at, name);
  });
  return out + "ret;\n}\n";
}

void interpret(const Line& l, RegisterValues& r) {
  if (!l.guard.empty()) {
    const bool negated = l.guard[0] == '!';
    if (bool(r[index_of(l.guard.substr(negated))]) == negated) return;
  }
  std::vector<uint64_t> values;
  for (const std::string& o : l.operands)
    values.push_back(std::isalpha(o[0]) ? r[index_of(o)] : std::stoull(o));
  uint64_t result = reference(l.opcode, values);
  // The result of a conversion to a signed type is sign-extended to the register.
  if (l.opcode.starts_with("cvt.")) {
    const std::string to = l.opcode.substr(0, l.opcode.rfind('.'));
    const bool is_signed = to.ends_with(".s8") || to.ends_with(".s16") || to.ends_with(".s32");
    const int bits = to.ends_with("8") ? 8 : to.ends_with("16") ? 16 : 32;
    if (is_signed && (result >> (bits - 1) & 1)) result |= ~uint64_t{0} << bits;
  }
  r[index_of(l.to)] = kept(l.to[0], result);
}

bool same(char letter, uint64_t a, uint64_t b) {
  if (a == b) return true;
  if (letter == 'f')
    return std::isnan(std::bit_cast<float>(uint32_t(a))) &&
           std::isnan(std::bit_cast<float>(uint32_t(b)));
  return letter == 'g' && std::isnan(std::bit_cast<double>(a)) &&
         std::isnan(std::bit_cast<double>(b));
}

// For the message: the first line after which a register differs.
std::string blame(const std::vector<Line>& lines, const RegisterValues& begin, size_t reg,
                  uint64_t got) {
  RegisterValues r = begin;
  std::string last = "(never written)";
  for (const Line& l : lines) {
    interpret(l, r);
    if (index_of(l.to) == reg) last = l.text();
  }
  return fmt::format("{} gives {:#x}, the reference {:#x}", last, got, r[reg]);
}

void check_seed(uint64_t seed) {
  Generator generator(seed);
  const std::vector<Line> lines = generator.program();
  const size_t n = kClasses.size() * kPerClass;
  std::vector<uint64_t> in(n * kLineThreads), out(n * kLineThreads);
  for (size_t i = 0; i < in.size(); ++i) {
    const char letter = kClasses[i % n / kPerClass];
    in[i] = kept(letter, generator.value(letter));
  }
  auto module = Module::parse(line_source(lines));
  ASSERT_TRUE(module.has_value()) << module.error().text();
  Sim sim;
  sim.options.threads = 1;
  std::vector<Bytes8> args{sim.output("out", out), sim.input("in", in)};
  const LaunchReport report = sim.run(*module, "t", 1, kLineThreads, args);
  ASSERT_EQ(report.status, LaunchStatus::ok) << report.reason;
  for (size_t thread = 0; thread < kLineThreads; ++thread) {
    const RegisterValues begin(in.begin() + long(thread * n), in.begin() + long((thread + 1) * n));
    RegisterValues r = begin;
    for (const Line& l : lines) interpret(l, r);
    for (size_t k = 0; k < n; ++k) {
      const char letter = kClasses[k / kPerClass];
      const uint64_t got = kept(letter, out[thread * n + k]);
      ASSERT_TRUE(same(letter, got, r[k]))
          << fmt::format("seed {}, thread {}, register {}{}: ", seed, thread, letter, k % kPerClass)
          << blame(lines, begin, k, got);
    }
  }
}

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(StraightLine, ProgramsAgreeWithTheReference) {
  const uint64_t first = setting("CUTEGEN_SEED", 1), count = setting("CUTEGEN_PROGRAMS", 60);
  for (uint64_t seed = first; seed < first + count && !testing::Test::HasFatalFailure(); ++seed)
    check_seed(seed);
}

}  // namespace
}  // namespace cutegen::ptx
