// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/scan_kernel.h"

#include <fmt/format.h>

#include "base/text.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kMostNarrow = 2'000'000'000;  // elements of a row that 32-bit indices can count

// Declares the steps of this CTA, counted in the direction of the scan.
std::string range_text(bool split) {
  if (!split) return "  const Index first = 0, last = steps;";
  return "  // A CTA takes neighbouring steps.\n"
         "  const Index share = (steps + parts - 1) / parts;\n"
         "  const Index first = Index(part) * share < steps ? Index(part) * share : steps;\n"
         "  const Index last = first + share < steps ? first + share : steps;";
}

}  // namespace

ScanKernel::ScanKernel(const Task& task, const Fused& fused, const Json& params, const Label& label)
    : fused_(fused),
      label_(label),
      nest_(make_nest(fused)),
      code_(fused),
      tensors_(fused, nest_, code_),
      body_(fused, params, nest_, code_) {
  std::string members;
  for (int inst : body_.used()) {
    const Inst& i = fused.insts[size_t(inst)];
    if (i.kind != InstKind::leaf) continue;
    const auto operand = size_t(i.operand);
    const std::string& name = body_.inputs()[operand];
    views_ += fmt::format("Tensor {} = {};\n", name, tensors_.view(fused.inputs[operand]));
    if (row() && i.level != Level::element) continue;
    views_ += tensors_.indices(fused.inputs[operand]);
    if (i.level != Level::element) {
      body_.load_by(inst, tensors_.load(fused.inputs[operand], name, "0", name + "_row"));
      continue;
    }
    members += fmt::format("{} {}[kVector];\n", value_type(i), name.substr(2));
    loads_ += tensors_.load(fused.inputs[operand], name, "j", "e." + name.substr(2));
  }
  for (size_t i = 0; i < fused.outputs.size(); ++i)
    results_ += fmt::format("Tensor {} = {};\n", body_.outputs()[i],
                            tensors_.view(fused.outputs[i].operand));
  if (split()) add_kernel(label_("totals"), false);
  add_kernel(label_("scan"), true);
  std::map<std::string, std::string> t;
  t["title"] = title(task, fused);
  t["note"] = split() ? "// Several CTAs share a row. The kernel `totals` comes first and writes "
                        "the total of each part.\n"
                      : "";
  t["macro"] = label_("VECTOR");
  t["index"] = nest_.length() > kMostNarrow ? "int64_t" : "int";
  t["threads"] = params.at("threads").dump();
  t[row() ? "width" : "columns"] = params.at(row() ? "width" : "columns").dump();
  t["items"] = params.at("items").dump();
  t["elements"] = indent(members, 2);
  t["kernels"] = kernels_;
  source_ = fill(row() ? "kernels/scan/row.cu" : "kernels/scan/column.cu", t);
}

void ScanKernel::add_kernel(const std::string& name, bool last) {
  std::vector<std::string> declarations, sizes;
  for (const Parameter& p : parameters(fused_)) declarations.push_back(p.declaration);
  for (const std::string& totals : body_.totals())
    declarations.push_back(fmt::format("float{}* __restrict__ {}", last ? " const" : "", totals));
  for (size_t i = 0; i < nest_.kept.size(); ++i) sizes.push_back(fmt::format("int64_t k{}", i));
  sizes.emplace_back("int64_t r0");
  for (const auto& [word, expression] : strides()) sizes.push_back("int64_t " + word);
  if (split()) sizes.emplace_back("int64_t parts");
  std::map<std::string, std::string> t;
  t["name"] = name;
  t["params"] = join(declarations, ", ");
  t["sizes"] = join(sizes, ", ") + size_declarations(fused_);
  t["along"] = shape_text(nest_.reduced, 'r', row());
  t["across"] = shape_text(nest_.kept, 'k', !row());
  t["block"] = split() ? "blockIdx.x / parts" : "blockIdx.x";
  t["turn"] = split() ? "  const int64_t part = blockIdx.x % parts;\n" : "";
  t["shared"] = body_.shared();
  t["tensors"] = indent(views_ + (last ? results_ : ""), 2);
  t["range"] = range_text(split());
  t["loads"] = indent(loads_, 4);
  t["body"] = indent(body_.text(last), 2);
  const std::string text =
      fill(row() ? "kernels/scan/row_kernel.cu" : "kernels/scan/column_kernel.cu", t);
  if (!kernels_.empty()) kernels_ += "\n";
  kernels_ += text.substr(text.find('\n') + 1);  // without the licence line, which the file has
  launches_.push_back(name);
}

}  // namespace cutegen::recipes
