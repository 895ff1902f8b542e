// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as output of ptxas or nvdisasm, as PTX or as a cubin: the audit's
// readers end, and their result can be written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "toolchain/binary_text.h"
#include "toolchain/cubin.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cutegen;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  BinaryAudit audit;
  audit.kernels = toolchain::read_ptxas_log(text);
  for (auto& code : toolchain::read_sass(text, {0x100, 0x1000, 0x10000})) {
    audit.kernels.emplace_back();
    audit.kernels.back().kernel = "piece";
    audit.kernels.back().code = code;
  }
  for (const auto& k : toolchain::code_of(text))
    if (!k.bytes.empty() && k.bytes.data() + k.bytes.size() > text.data() + text.size())
      std::abort();
  auto use = toolchain::read_ptx_use(text);
  audit.globals = std::move(use.globals);
  audit.device_calls = std::move(use.device_calls);
  audit.unusual_reads = std::move(use.unusual_reads);
  (void)summary_of(audit);
  auto again = parse_json(dump_json(to_json(audit)), "audit");
  if (!again || !read_json<BinaryAudit>(*again)) std::abort();
  return 0;
}
