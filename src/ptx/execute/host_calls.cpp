// SPDX-License-Identifier: Apache-2.0
// printf and assert in a kernel: a finding with the text, since nobody reads a kernel's output.
#include <fmt/format.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "base/text.h"
#include "ptx/execute/cta.h"

namespace cutegen::ptx {
namespace {

constexpr size_t kMostText = 400;

// One conversion of a format, "%-8.3lf": flags, width and precision as written, bounded.
struct Conversion {
  std::string spec = "%";  // without length and letter
  int bytes = 4;           // of an integer argument
  char letter = 0;
  size_t end = 0;  // behind it
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
  char text[kMostText];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int n = std::snprintf(text, sizeof text, spec.c_str(), values...);
#pragma GCC diagnostic pop
  return n < 0 ? "" : std::string(text);
}

// Replaces each * by its argument, between -99 and 99.
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
  size_t digits = 0;  // a huge width would only be padding
  for (char c : out) digits = c >= '0' && c <= '9' ? digits + 1 : 0;
  return digits > 2 ? "%" : out;
}

}  // namespace

// The host's place of `bytes` bytes at a generic address of a lane; nullptr: not mapped.
const std::byte* Cta::peek(const Warp& w, int lane, uint64_t address, uint64_t bytes) const {
  auto inside = [&](uint64_t window, uint64_t size) {
    return address >= window && address - window <= size && size - (address - window) >= bytes;
  };
  if (inside(kSharedWindow, shared_.size())) return shared_.data() + (address - kSharedWindow);
  const uint64_t local = uint64_t(job_.program.local_bytes);
  if (inside(kLocalWindow, local))
    return local_.data() + local * uint64_t(w.index * 32 + lane) + (address - kLocalWindow);
  if (inside(kParamWindow, job_.params.size()))
    return job_.params.data() + (address - kParamWindow);
  const Buffer* b = job_.memory.find(address);
  return b && b->size - (address - b->base) >= bytes ? b->data + (address - b->base) : nullptr;
}

std::string Cta::text_at(const Warp& w, int lane, uint64_t address) const {
  std::string out;
  for (; out.size() < kMostText; ++address) {
    const std::byte* p = peek(w, lane, address, 1);
    if (!p) return out + "(unmapped)";
    if (char(*p) == 0) break;
    out += char(*p);
  }
  return out;
}

// What printf would print; arguments lie at `at`, each aligned to its size.
std::string Cta::format_text(const Warp& w, int lane, const std::string& format,
                             uint64_t at) const {
  auto next = [&](uint64_t bytes) {
    at = (at + bytes - 1) / bytes * bytes;
    uint64_t value = 0;
    if (const std::byte* p = peek(w, lane, at, bytes)) std::memcpy(&value, p, bytes);
    at += bytes;
    return value;
  };
  std::string out;
  for (size_t i = 0; i < format.size() && out.size() < kMostText;) {
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
                       : print_one(spec + "l" + c.letter, static_cast<unsigned long>(v));
    } else if (std::strchr("fFeEgGaA", c.letter)) {
      const uint64_t bits = next(8);
      double d;
      std::memcpy(&d, &bits, 8);
      out += print_one(spec + c.letter, d);
    } else if (c.letter == 'c') {
      out += char(next(4));
    } else if (c.letter == 's') {
      out += text_at(w, lane, next(8));
    } else {
      out += fmt::format("{:#x}", next(8));
    }
  }
  return out.substr(0, kMostText);
}

bool Cta::host_call(Warp& w, const Inst& in, int lane) {
  auto argument = [&](int i, size_t bytes) {
    uint64_t value = 0;
    const std::byte* p = peek(w, lane, kLocalWindow + uint64_t(in.v[i]), bytes);
    if (p) std::memcpy(&value, p, bytes);
    return value;
  };
  if (in.op == Op::print) {
    std::string text = format_text(w, lane, text_at(w, lane, argument(0, 8)), argument(1, 8));
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return report(w, "printf", "the kernel prints: " + sanitize(text, kMostText), lane);
  }
  return report(
      w, "assert",
      sanitize(fmt::format("assertion failed: {} ({}:{}, {})", text_at(w, lane, argument(0, 8)),
                           text_at(w, lane, argument(1, 8)), argument(2, 4),
                           text_at(w, lane, argument(3, 8))),
               kMostText),
      lane);
}

}  // namespace cutegen::ptx
