// SPDX-License-Identifier: Apache-2.0
#include "ptx/units/host_calls.h"

#include <fmt/format.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "base/text.h"

namespace cutegen::ptx {
namespace {

constexpr size_t kMostHostText = 400;

// One conversion of a format, such as "%-8.3lf". Width and precision are bounded.
struct Conversion {
  std::string spec = "%";  // without length modifier and letter
  int bytes = 4;           // of an integer argument
  char letter = 0;
  size_t end = 0;  // index of the character after it
};

Conversion read_conversion(const std::string& format, size_t at) {
  Conversion c;
  for (++at; at < format.size(); ++at) {
    const char x = format[at];
    if (std::strchr("-+ #0123456789.*", x) && x) {
      if (c.spec.size() < 8) c.spec += x;
    } else if (x == 'l' || x == 'z' || x == 'j' || x == 't') {
      c.bytes = 8;
    } else if (x != 'h') {
      c.letter = x;
      ++at;
      break;
    }
  }
  c.end = at;
  return c;
}

template <class... T>
std::string print_one(const std::string& spec, T... values) {
  char text[kMostHostText];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int n = std::snprintf(text, sizeof text, spec.c_str(), values...);
#pragma GCC diagnostic pop
  return n < 0 ? "" : std::string(text);
}

// Replaces each * by the last two digits of its argument, without the sign.
template <class Next>
std::string widths(const std::string& spec, Next next) {
  std::string out;
  for (char c : spec) {
    if (c != '*') {
      out += c;
      continue;
    }
    const auto value = int32_t(next(4));
    out += std::to_string(std::abs(int64_t(value)) % 100);
  }
  if (out.size() > 8) out = "%";
  size_t digits = 0;  // drops a huge width, which would only be padding
  for (char c : out) digits = c >= '0' && c <= '9' ? digits + 1 : 0;
  return digits > 2 ? "%" : out;
}

// Reads memory at the generic addresses of one lane.
class Reader {
 public:
  Reader(const CtaState& cta, const Warp& w, int lane) : cta_(cta), thread_(w.index * 32 + lane) {}
  // 0 if the address is not mapped.
  uint64_t value(uint64_t address, uint64_t bytes) const {
    uint64_t out = 0;
    if (const std::byte* p = peek(address, bytes)) std::memcpy(&out, p, bytes);
    return out;
  }
  std::string text(uint64_t address) const {
    std::string out;
    for (; out.size() < kMostHostText; ++address) {
      const std::byte* p = peek(address, 1);
      if (!p) return out + "(unmapped)";
      if (char(*p) == 0) break;
      out += char(*p);
    }
    return out;
  }

 private:
  // The host address of `bytes` bytes at a generic address; nullptr: not mapped.
  const std::byte* peek(uint64_t address, uint64_t bytes) const {
    auto inside = [&](uint64_t window, uint64_t size) {
      return address >= window && address - window <= size && size - (address - window) >= bytes;
    };
    const Job& job = cta_.job;
    if (inside(kSharedWindow, cta_.shared.size()))
      return cta_.shared.data() + (address - kSharedWindow);
    const uint64_t local = uint64_t(job.program.local_bytes);
    if (inside(kLocalWindow, local))
      return cta_.local.data() + local * uint64_t(thread_) + (address - kLocalWindow);
    if (inside(kParamWindow, job.params.size()))
      return job.params.data() + (address - kParamWindow);
    const Buffer* b = job.memory.find(address);
    return b && b->size - (address - b->base) >= bytes ? b->data + (address - b->base) : nullptr;
  }

  const CtaState& cta_;
  int thread_;
};

// The text that printf would print. The arguments begin at `at`, each aligned to its size.
std::string format_text(const Reader& memory, const std::string& format, uint64_t at) {
  auto next = [&](uint64_t bytes) {
    at = (at + bytes - 1) / bytes * bytes;
    const uint64_t value = memory.value(at, bytes);
    at += bytes;
    return value;
  };
  std::string out;
  for (size_t i = 0; i < format.size() && out.size() < kMostHostText;) {
    if (format[i] != '%') {
      out += format[i++];
      continue;
    }
    const Conversion c = read_conversion(format, i);
    i = c.end;
    if (c.letter == '%' || c.letter == 0) {
      out += '%';
      continue;
    }
    const std::string spec = widths(c.spec, next);
    const bool is_signed = c.letter == 'd' || c.letter == 'i';
    if (std::strchr("diuoxX", c.letter)) {
      uint64_t v = next(uint64_t(c.bytes));
      if (is_signed && c.bytes == 4) v = uint64_t(int64_t(int32_t(v)));
      out += is_signed ? print_one(spec + PRId64, int64_t(v))
                       : print_one(spec + "l" + c.letter, uint64_t(v));
    } else if (std::strchr("fFeEgGaA", c.letter)) {
      const uint64_t bits = next(8);
      double d;
      std::memcpy(&d, &bits, 8);
      out += print_one(spec + c.letter, d);
    } else if (c.letter == 'c') {
      out += char(next(4));
    } else if (c.letter == 's') {
      out += memory.text(next(8));
    } else {
      out += fmt::format("{:#x}", next(8));
    }
  }
  return out.substr(0, kMostHostText);
}

}  // namespace

void report_host_call(CtaState& cta, const Warp& w, const Inst& in, int lane) {
  const Reader memory(cta, w, lane);
  auto number = [&](int i, uint64_t bytes) {
    return memory.value(kLocalWindow + uint64_t(in.v[i]), bytes);
  };
  auto text = [&](int i) { return memory.text(number(i, 8)); };
  if (in.op == Op::print) {
    std::string out = format_text(memory, text(0), number(1, 8));
    while (!out.empty() && out.back() == '\n') out.pop_back();
    return cta.report(
        w, lane,
        {.kind = "printf", .message = "the kernel prints: " + sanitize(out, kMostHostText)});
  }
  const std::string failed =
      fmt::format("assertion failed: {} ({}:{}, {})", text(0), text(1), number(2, 4), text(3));
  cta.report(w, lane, {.kind = "assert", .message = sanitize(failed, kMostHostText)});
}

}  // namespace cutegen::ptx
