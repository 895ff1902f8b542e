// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/modules.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/text.h"
#include "device/module_facts.h"

namespace cutegen::device::cuda {
namespace {

constexpr size_t kMostCode = size_t{256} << 20;
constexpr size_t kLogBytes = 16384;
constexpr int kStaticShared = 1, kLocal = 3;      // attributes of a function: bytes
constexpr int kErrorLog = 5, kErrorLogBytes = 6;  // options of the linker
constexpr int kPtx = 1;                           // kind of the linker's input
constexpr const char* kElf =
    "\x7f"
    "ELF";

// The log's first line with an error, or else its first line.
std::string first_error(const std::string& log) {
  std::string first;
  for (const std::string& line : split(log, '\n')) {
    if (trim(line).empty()) continue;
    if (first.empty()) first = trim(line);
    if (line.find("error") != std::string::npos) return std::string(trim(line));
  }
  return first;
}

}  // namespace

void Modules::clear() {
  for (Handle m : loaded_) driver_.module_unload(m);
  loaded_.clear();
  functions_.clear();
  local_bytes_ = 0;
}

Result<std::string> Modules::assemble(const std::string& ptx) const {
  std::string log(kLogBytes, '\0');
  int options[] = {kErrorLog, kErrorLogBytes};
  // The driver takes a number as a pointer. NOLINTNEXTLINE(performance-no-int-to-ptr)
  void* values[] = {log.data(), reinterpret_cast<void*>(kLogBytes)};
  Handle link = nullptr;
  CG_CHECK(driver_.check(driver_.link_create(2, options, values, &link), "starting the assembler"));
  void* image = nullptr;
  size_t bytes = 0;
  // The size includes the terminating zero.
  Status s =
      driver_.link_add(link, kPtx, ptx.c_str(), ptx.size() + 1, "kernel.ptx", 0, nullptr, nullptr);
  if (s == kOk) s = driver_.link_complete(link, &image, &bytes);
  std::string code;
  if (s == kOk) code.assign(static_cast<const char*>(image), bytes);  // the linker owns the image
  driver_.link_destroy(link);
  log.resize(log.find('\0'));
  if (s == kOk) return code;
  std::string said = sanitize(first_error(log), 600);
  if (s == kUnsupportedPtx)
    return world_error("this driver does not know the PTX of this compiler: " + driver_.text(s),
                       "update the driver, or set CUTEGEN_NVRTC to an older libnvrtc.so");
  if (s == kInvalidPtx || s == kNoBinaryForGpu || !said.empty())
    return user_error("the GPU's assembler refuses this program: " +
                      (said.empty() ? driver_.text(s) : said));
  return fail(driver_.check(s, "assembling a program").error());
}

Result<const std::string*> Modules::machine_code(const std::string& ptx) {
  std::string key = sha256(ptx);
  auto at = code_.find(key);
  if (at != code_.end()) return &at->second;
  CG_TRY(std::string code, assemble(ptx));
  if (code_bytes_ + code.size() > kMostCode) code_.clear(), code_bytes_ = 0;
  code_bytes_ += code.size();
  return &code_.emplace(key, std::move(code)).first->second;
}

// The driver cannot check a cubin's size, so load_one() passes only code with an ELF header. If the
// driver refuses the cubin (of a newer assembler), the driver assembles the PTX itself.
Result<Handle> Modules::load_one(const std::string& ptx, const std::string& code) {
  Handle module = nullptr;
  if (code.starts_with(kElf) && driver_.module_load(&module, code.data()) == kOk) return module;
  CG_TRY(const std::string* made, machine_code(ptx));
  CG_CHECK(driver_.check(driver_.module_load(&module, made->data()), "loading a program"));
  return module;
}

Result<std::vector<ModuleFacts>> Modules::load(const std::vector<std::string>& ptx,
                                               const std::vector<std::string>& code) {
  clear();
  std::vector<ModuleFacts> out;
  for (size_t i = 0; i < ptx.size(); ++i) {
    CG_TRY(ModuleFacts facts, declared_facts(ptx[i]));
    CG_TRY(Handle module, load_one(ptx[i], i < code.size() ? code[i] : std::string()));
    loaded_.push_back(module);
    for (EntryFacts& e : facts.entries) {
      CG_TRY(Handle f, function(loaded_.size() - 1, e.name));
      int bytes = 0, local = 0;
      CG_CHECK(driver_.check(driver_.function_get(&bytes, kStaticShared, f),
                             "reading a kernel's attributes"));
      CG_CHECK(
          driver_.check(driver_.function_get(&local, kLocal, f), "reading a kernel's attributes"));
      e.static_shared_bytes = bytes;
      local_bytes_ = std::max<int64_t>(local_bytes_, local);
    }
    out.push_back(std::move(facts));
  }
  return out;
}

Result<Handle> Modules::function(size_t module, const std::string& kernel) {
  if (module >= loaded_.size())
    return user_error("no such module is loaded", "kernel " + sanitize(kernel, 80),
                      "load it first");
  auto [at, fresh] = functions_.try_emplace({module, kernel}, nullptr);
  if (!fresh) return at->second;
  Status s = driver_.module_function(&at->second, loaded_[module], kernel.c_str());
  if (s == kOk) return at->second;
  functions_.erase(at);
  return user_error(
      fmt::format("the module has no kernel '{}': {}", sanitize(kernel, 80), driver_.text(s)));
}

}  // namespace cutegen::device::cuda
