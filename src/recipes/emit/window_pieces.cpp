// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/window_pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"

namespace cutegen::recipes {

std::vector<int> row_reductions(const Fused& fused) {
  std::vector<int> list;
  for (size_t i = 0; i < fused.insts.size(); ++i)
    if (fused.insts[i].kind == InstKind::reduction) list.push_back(static_cast<int>(i));
  return list;
}

Pieces::Pieces(const Fused& fused, Code& code)
    : fused_(fused), leaf_(*fused.window), code_(code), reductions_(row_reductions(fused)) {
  for (const FusedOutput& output : fused.outputs) results_.push_back(output.inst);
  int source = leaf_.inst;
  for (size_t i = 0; i < reductions_.size(); ++i) {
    const std::string word = code_.word("before_" + code_.id(reductions_[i]));
    pieces_.push_back(piece(word, at(reductions_[i]).inputs, source, true));
    const int taken = pieces_.back().targets[0];
    if (!replaces(i, taken, source)) continue;
    pieces_.back().replaces = true;
    source = taken;
  }
  pieces_.push_back(piece("compute", results_, source, !by_row()));
  for (const Piece& piece : pieces_) rows_.push_back(rows_piece(piece));
}

bool Pieces::by_row() const {
  return fused_.reduces() &&
         std::none_of(fused_.outputs.begin(), fused_.outputs.end(), [&](const FusedOutput& output) {
           return recipes::varies(fused_, output.operand);
         });
}

// Whether a kernel computes the instruction once for all channels of a place.
bool Pieces::hoisted(const Inst& inst) const {
  return fused_.reduces() && inst.kind == InstKind::pointwise && inst.level == Level::row &&
         !inst.boolean && !inst.integer;
}

// Instructions that the targets need, from `source` and results of reductions on; if it `hoists`,
// from other values of the row on.
std::vector<int> Pieces::beneath(const std::vector<int>& targets, int source, bool hoists) const {
  return code_.needed(targets, [&](const Inst& inst) {
    return inst.kind != InstKind::reduction && !(hoists && hoisted(inst)) && &inst != &at(source);
  });
}

// Whether what reduction `index` takes may replace `source`: nothing later needs more of it.
bool Pieces::replaces(size_t index, int taken, int source) const {
  const Inst& inst = at(taken);
  if (taken == source || inst.level != Level::element || inst.boolean || inst.integer) return false;
  std::vector<int> later = results_;
  for (size_t i = index + 1; i < reductions_.size(); ++i)
    later.push_back(at(reductions_[i]).inputs[0]);
  for (int needed : beneath(later, taken, false)) {
    const std::vector<int>& inputs = at(needed).inputs;
    if (needed == source || std::find(inputs.begin(), inputs.end(), source) != inputs.end())
      return false;
  }
  return std::find(later.begin(), later.end(), source) == later.end();
}

Piece Pieces::piece(const std::string& name, const std::vector<int>& targets, int source,
                    bool hoists) const {
  Piece piece{.name = name, .targets = targets};
  std::set<int> rows;
  bool takes = !fused_.reduces();
  auto note = [&](const std::vector<int>& insts) {
    for (int inst : insts) {
      if (at(inst).kind == InstKind::reduction || (hoists && hoisted(at(inst)))) rows.insert(inst);
      takes |= inst == source;
    }
  };
  note(targets);
  for (int inst : beneath(targets, source, hoists)) {
    const Inst& i = at(inst);
    note(i.inputs);
    piece.counts |= i.kind == InstKind::constant && i.code == kCount;
    if (i.kind == InstKind::leaf) piece.leaves.push_back(inst);
    if (i.kind == InstKind::pointwise) piece.body.push_back(inst);
  }
  if (takes) piece.source = source;
  // A value of the row may have a larger number than the elements that read it.
  if (fused_.reduces())
    std::stable_partition(piece.body.begin(), piece.body.end(),
                          [&](int inst) { return at(inst).level == Level::row; });
  piece.rows.assign(rows.begin(), rows.end());
  return piece;
}

// What computes those of a piece's values of the row that are no results of reductions.
Piece Pieces::rows_piece(const Piece& piece) {
  std::vector<int> targets;
  for (int inst : piece.rows)
    if (at(inst).kind != InstKind::reduction) targets.push_back(inst);
  return this->piece(code_.word("rows_of_" + piece.name), targets, leaf_.inst, false);
}

std::string Pieces::function(const Piece& piece, const std::vector<std::string>& results) const {
  std::vector<std::string> params;
  if (piece.source >= 0) params.push_back("float " + code_.id(piece.source));
  for (int inst : piece.leaves)
    params.push_back(fmt::format("{} {}", value_type(at(inst)), code_.id(inst)));
  for (int inst : piece.rows) params.push_back("float " + code_.id(inst));
  for (const auto& [word, expression] : fused_.sizes) params.push_back("int64_t " + word);
  if (piece.counts) params.push_back(std::string("float ") + kCount);
  std::string body, ends;
  for (size_t i = 0; i < results.size(); ++i) {
    params.push_back(fmt::format("{}& {}", value_type(at(piece.targets[i])), results[i]));
    ends += fmt::format("  {} = {};\n", results[i], code_.use(piece.targets[i]));
  }
  for (int inst : piece.body) body += "  " + code_.statement(inst);
  return fmt::format("__device__ __forceinline__ void {}({}) {{\n{}{}}}", piece.name,
                     join(params, ", "), body, ends);
}

// Calls a piece's function. `rows` is the text before the name of a row's value; if it is empty,
// the values are read where reduce() keeps them.
std::string Pieces::call(const Piece& piece, const std::vector<std::string>& leaves,
                         const std::string& rows, const std::vector<std::string>& results) const {
  std::vector<std::string> values;
  if (piece.source >= 0) values.emplace_back("window");
  values.insert(values.end(), leaves.begin(), leaves.end());
  for (int inst : piece.rows)
    values.push_back(rows.empty() ? row_text(inst) : rows + code_.id(inst));
  for (const auto& [word, expression] : fused_.sizes) values.push_back(word);
  if (piece.counts) values.emplace_back("float(out_of_group)");
  values.insert(values.end(), results.begin(), results.end());
  return fmt::format("{}({});\n", piece.name, join(values, ", "));
}

// The result of a reduction at the current place.
std::string Pieces::row_text(int reduction) const {
  const auto found = std::find(reductions_.begin(), reductions_.end(), reduction);
  return fmt::format("conv.row(storage, {}, at.row)", found - reductions_.begin());
}

std::string Pieces::functions() {
  std::string text;
  for (const Piece& piece : rows_) {
    std::vector<std::string> words;
    for (int inst : piece.targets) words.push_back(code_.word("row_" + code_.id(inst)));
    if (!words.empty()) text += function(piece, words) + "\n";
  }
  for (size_t i = 0; i < reductions_.size(); ++i)
    text += function(pieces_[i], {code_.word("result")}) + "\n";
  std::vector<std::string> results;
  for (const FusedOutput& output : fused_.outputs)
    results.push_back(code_.word("result_" + fused_.names.at(output.operand.tensor)));
  return text + function(last(), results);
}

}  // namespace cutegen::recipes
