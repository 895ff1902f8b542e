// SPDX-License-Identifier: Apache-2.0
#include "ptx/checks/shared_races.h"

#include <algorithm>
#include <bit>

namespace cutegen::ptx {
namespace {

// A cell with a label: label << 16 | atomic << 15 | by cp.async << 14 | number in the ClockTable
constexpr uint64_t kAtomic = 1 << 15, kByAsyncCopy = 1 << 14, kNumber = kByAsyncCopy - 1;
uint32_t label_in(uint64_t cell) {
  return uint32_t(cell >> 16);
}

constexpr size_t kQuickTest = 16;  // number of granules for which all_ordered() is worthwhile

// Returns where an array of known cells keeps a cell of this writer.
size_t place_of(uint64_t cell, size_t places) {
  return cell % places;
}

bool all_equal(const uint64_t* cells, size_t count) {
  uint64_t differ = 0;
  if (count == 4) {  // mostly, and faster without a loop
    for (size_t i = 1; i < 4; ++i) differ |= cells[i] ^ cells[0];
  } else {
    for (size_t i = 1; i < count; ++i) differ |= cells[i] ^ cells[0];
  }
  return differ == 0;
}

bool equal_rows(const uint32_t* rows, size_t count, size_t length) {
  uint32_t differ = 0;
  for (size_t i = length; i < count * length; ++i) differ |= rows[i] ^ rows[i - length];
  return differ == 0;
}

// Raises most[i] to the largest value of column i of the rows.
template <size_t kLength>
void largest_in(const uint32_t* rows, size_t count, uint32_t* most) {
  for (size_t r = 0; r < count; ++r)
    for (size_t i = 0; i < kLength; ++i) most[i] = std::max(most[i], rows[r * kLength + i]);
}
void largest_in(const uint32_t* rows, size_t count, size_t length, uint32_t* most) {
  if (length == 1) return largest_in<1>(rows, count, most);
  if (length == 4) return largest_in<4>(rows, count, most);
  if (length == 8) return largest_in<8>(rows, count, most);
  for (size_t r = 0; r < count; ++r)
    for (size_t i = 0; i < length; ++i) most[i] = std::max(most[i], rows[r * length + i]);
}

// Returns the lanes that touch a granule for which `is_bad` is true. Calls `is_bad` for every
// granule, because it may also record the access.
template <class F>
uint32_t lanes_where(uint32_t lanes, const uint64_t* at, uint32_t bytes, int shift, F is_bad) {
  uint32_t bad = 0;
  for (uint32_t m = lanes; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const size_t end = (at[lane] + bytes - 1) >> shift;
    for (size_t g = at[lane] >> shift; g <= end; ++g) bad |= uint32_t(is_bad(g)) << lane;
  }
  return bad;
}

// For whole barriers: notes a warp's access in a cell, and returns whether another warp's access
// conflicts. atomics: the warps with atomic accesses; nullptr if the kernel has none.
bool note(Touch touch, int warp, uint64_t& cell, uint32_t* atomics) {
  const uint64_t bit = uint64_t{1} << warp, before = cell;
  const uint64_t readers = before & 0xffffffff, writers = before >> 32;
  const uint64_t now = before | (touch == Touch::read    ? bit
                                 : touch == Touch::write ? bit << 32
                                                         : 0);
  if (now != before) cell = now;
  if (touch == Touch::read) {
    // If the reading warp also wrote the word, it may read its own value.
    const bool bad = (writers & ~bit) != 0 && (writers & bit) == 0;
    return bad || (atomics && (*atomics & ~bit) != 0);
  }
  const bool bad = ((readers | writers) & ~bit) != 0;
  if (!atomics) return bad;
  const bool atomic_bad = touch == Touch::write && (*atomics & ~bit) != 0;
  if (touch == Touch::atomic) *atomics |= uint32_t(bit);
  return bad || atomic_bad;
}

}  // namespace

uint64_t SharedRaces::labelled(bool is_atomic, int other) const {
  return uint64_t(clocks_.label(other)) << 16 | (is_atomic ? kAtomic : 0) |
         uint64_t(other + clocks_.first());
}

// The number is relative to this CTA, like a warp's number.
int SharedRaces::writer_of(uint64_t cell) const {
  return int(cell & kNumber) - clocks_.first();
}

template <class F>
void SharedRaces::each_granule(uint64_t from, uint64_t to, F f) const {
  for (size_t g = from >> facts_.shared_shift; g <= (to - 1) >> facts_.shared_shift; ++g) f(g);
}

SharedRaces::SharedRaces(const HazardFacts& facts, const Clocks& clocks, int warps,
                         size_t shared_bytes)
    : facts_(facts),
      clocks_(clocks),
      warps_(size_t(warps)),
      groups_((warps_ + kWarpsOfGroup - 1) / kWarpsOfGroup),
      granules_((shared_bytes >> facts.shared_shift) + 1),
      cells_(granules_),
      traces_(facts.access_pc.size() * size_t(warps)) {
  if (clocks.vector())
    reads_.resize(granules_ * warps_), has_reads_.resize((granules_ >> kBlockShift) + 1);
  else if (facts.shared_atomics)
    atomics_.resize(granules_);
}

void SharedRaces::begin() {
  low_ = 0, high_ = granules_ - 1;
  ++version_;
  join();
  std::fill(reads_.begin(), reads_.end(), 0);
  std::fill(has_reads_.begin(), has_reads_.end(), 0);
  std::fill(traces_.begin(), traces_.end(), Trace{});
  std::fill(peer_reads_.begin(), peer_reads_.end(), 0);
  std::fill(product_reads_.begin(), product_reads_.end(), 0);
  peers_.clear();
}

void SharedRaces::join() {
  if (low_ <= high_) {
    std::fill(cells_.begin() + int64_t(low_), cells_.begin() + int64_t(high_) + 1, 0);
    if (!atomics_.empty())
      std::fill(atomics_.begin() + int64_t(low_), atomics_.begin() + int64_t(high_) + 1, 0);
  }
  low_ = granules_, high_ = 0;
}

uint32_t SharedRaces::touch(Touch touch, int warp, int32_t pc, uint32_t lanes,
                            const AddressSummary& s, const uint64_t* at, uint32_t bytes) {
  const uint64_t end = s.high + bytes;
  const bool peer = clocks_.is_peer(warp);
  if (peer) note_peer(warp, pc);
  if (const int32_t i = facts_.access_index[size_t(pc)]; i >= 0 && !peer) {
    traces_[size_t(warp) * facts_.access_pc.size() + size_t(i)] = {
        .label = clocks_.label(warp),
        .low = uint32_t(s.low),
        .end = uint32_t(end),
        .stride = s.contiguous ? bytes : 0};
  }
  if (!clocks_.vector()) return simple(touch, warp, lanes, s, at, bytes);
  return partial(touch, warp, lanes, s, at, bytes);
}

uint32_t SharedRaces::multiply(const Product& p, uint32_t lanes, const uint64_t* at) {
  note_product(p);
  Ordered known = none_ordered();
  uint32_t* const reads = product_reads_.data() + p.warp / kWarpsOfGroup;
  const size_t count = size_t{1} << kChunkShift >> facts_.shared_shift;
  uint32_t bad = 0;
  for (uint32_t m = lanes; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const size_t chunk = at[lane] >> kChunkShift, first = chunk * count;
    reads[chunk * groups_] = p.label;
    for (size_t g = first; g < first + count; ++g)
      bad |= uint32_t(clashes(Touch::read, p.warp, g, known)) << lane;
  }
  return bad;
}

// Notes the cells of a tile, and that the warpgroup reads its chunks. Returns false if the tile has
// too many different cells.
bool SharedRaces::collect(const Product& p, TileCells::Entry& e, const uint32_t* chunks) {
  const size_t chunk_cells = size_t{1} << kChunkShift >> facts_.shared_shift, groups = groups_;
  const uint64_t* const cells = cells_.data();
  uint32_t* const reads = product_reads_.data() + p.warp / kWarpsOfGroup;
  const uint32_t label = p.label;
  uint64_t last = ~cells[(chunks[0] >> kChunkShift) * chunk_cells];
  for (int i = 0; i < 2 * e.of.rows; ++i) {
    const size_t chunk = chunks[i] >> kChunkShift;
    const uint64_t* const of_chunk = cells + chunk * chunk_cells;
    reads[chunk * groups] = label;
    const bool equal = all_equal(of_chunk, chunk_cells);
    if (equal && of_chunk[0] == last) continue;
    last = of_chunk[0];
    for (size_t k = 0; k < (equal ? 1 : chunk_cells); ++k)
      if (!e.add(of_chunk[k])) return false;
  }
  e.version = version_, e.group = p.warp / kWarpsOfGroup, e.label = label;
  return true;
}

bool SharedRaces::multiply_tile(const Product& p, const SharedTile& tile, const uint32_t* chunks) {
  note_product(p);
  TileCells::Entry& e = tiles_.find(tile);
  const int group = p.warp / kWarpsOfGroup;
  if (!e.valid(tile, version_)) {
    e.start(tile);
    if (!collect(p, e, chunks)) return false;
  } else if (e.group != group || e.label != p.label) {
    uint32_t* const reads = product_reads_.data() + group;
    for (int i = 0; i < 2 * tile.rows; ++i) reads[(chunks[i] >> kChunkShift) * groups_] = p.label;
    e.group = group, e.label = p.label;
  }
  for (size_t i = 0; i < e.count; ++i) {
    const uint64_t cell = e.cells[i];
    const bool ordered = cell == 0 || clocks_.ordered(p.warp, writer_of(cell), label_in(cell));
    if (!ordered || !seen(p.warp, cell, true)) return false;
  }
  return true;
}

uint32_t SharedRaces::simple(Touch touch, int warp, uint32_t lanes, const AddressSummary& s,
                             const uint64_t* at, uint32_t bytes) {
  const int shift = facts_.shared_shift;
  const size_t first = s.low >> shift, last = (s.high + bytes - 1) >> shift;
  low_ = std::min(low_, first), high_ = std::max(high_, last);
  const uint64_t bit = uint64_t{1} << warp;
  if (atomics_.empty() && (s.contiguous || s.uniform)) {
    const uint64_t mark = touch == Touch::read ? bit : bit << 32;
    uint64_t all = 0;
    for (size_t g = first; g <= last; ++g) {
      all |= cells_[g];
      cells_[g] |= mark;
    }
    const uint64_t others = touch == Touch::read ? all >> 32 : all | all >> 32;
    if ((others & 0xffffffff & ~bit) == 0) return 0;
    return lanes_where(lanes, at, bytes, shift, [&](size_t g) {
      int other = 0;
      bool wrote = false;
      return clash(touch, warp, g, other, wrote);
    });
  }
  if (touch == Touch::read && atomics_.empty() && bytes == 1u << shift) {  // the hottest loop
    uint32_t bad = 0;
    uint64_t* cells = cells_.data();
    for (uint32_t m = lanes; m; m &= m - 1) {
      const int lane = std::countr_zero(m);
      uint64_t& cell = cells[at[lane] >> shift];
      const uint64_t writers = cell >> 32;
      bad |= uint32_t((writers & ~bit) != 0 && (writers & bit) == 0) << lane;
      if (!(cell & bit)) cell |= bit;
    }
    return bad;
  }
  return lanes_where(lanes, at, bytes, shift, [&](size_t g) {
    return note(touch, warp, cells_[g], atomics_.empty() ? nullptr : &atomics_[g]);
  });
}

SharedRaces::Ordered SharedRaces::none_ordered() const {
  ordered_reads_.assign(warps_ + groups_, 0);
  return {.reads = ordered_reads_.data()};
}

// Whether clash() finds a warp. With vector clocks only.
bool SharedRaces::clashes(Touch touch, int warp, size_t g, Ordered& known) const {
  const uint64_t cell = cells_[g];
  uint64_t& known_cell = known.cells[place_of(cell, kKnown)];
  if (cell != known_cell && cell != 0) {
    const bool both_atomic = touch == Touch::atomic && (cell & kAtomic);
    if (!both_atomic && !clocks_.ordered(warp, writer_of(cell), label_in(cell))) return true;
    known_cell = cell;
  }
  if (touch == Touch::read) return false;
  for (size_t u = 0; u < warps_ && has_reads_[g >> kBlockShift]; ++u) {
    const uint32_t label = reads_[g * warps_ + u];
    if (label <= known.reads[u]) continue;
    if (!clocks_.ordered(warp, int(u), label)) return true;
    known.reads[u] = label;
  }
  const size_t chunk = chunk_of(g);
  for (size_t u = 0; u < groups_ && chunk != known.chunk && !product_reads_.empty(); ++u) {
    const uint32_t label = product_reads_[chunk * groups_ + u];
    if (label <= known.reads[warps_ + u]) continue;
    if (!clocks_.ordered(warp, products_of_group(u), label)) return true;
    known.reads[warps_ + u] = label;
  }
  known.chunk = chunk;
  int other = 0;
  if (peer_reads_.empty() || peer_reads_[g] == known.peer) return false;
  if (peer_read(warp, g, other)) return true;
  known.peer = peer_reads_[g];
  return false;
}

// A quick test for many granules with the same last write: if it returns true, clashes() is false
// for all granules [first, end).
bool SharedRaces::all_ordered(Touch touch, int warp, size_t first, size_t end) const {
  const uint64_t cell = cells_[first];
  const bool reads = touch != Touch::read && !peer_reads_.empty();
  if (reads || !all_equal(&cells_[first], end - first)) return false;
  const bool both_atomic = touch == Touch::atomic && (cell & kAtomic);
  if (cell && !both_atomic && !clocks_.ordered(warp, writer_of(cell), label_in(cell))) return false;
  if (touch == Touch::read) return true;
  std::vector<uint32_t>& most = ordered_reads_;  // labels, by warp, then by warpgroup
  most.assign(warps_ + groups_, 0);
  for (size_t g = first, next = 0; g < end; g = next) {
    const size_t block = g >> kBlockShift;
    next = std::min(end, (block + 1) << kBlockShift);
    if (has_reads_[block]) largest_in(&reads_[g * warps_], next - g, warps_, most.data());
  }
  const size_t chunk = chunk_of(first), chunks = chunk_of(end - 1) + 1 - chunk;
  if (!product_reads_.empty())
    largest_in(&product_reads_[chunk * groups_], chunks, groups_, most.data() + warps_);
  bool fine = true;
  for (size_t u = 0; u < warps_ + groups_; ++u) {
    const int other = u < warps_ ? int(u) : products_of_group(u - warps_);
    fine = fine && (most[u] == 0 || clocks_.ordered(warp, other, most[u]));
  }
  std::fill(most.begin(), most.end(), 0);  // Ordered::reads of the caller
  return fine;
}

// Whether clashes() is true for one of the granules [first, end), chunk by chunk.
bool SharedRaces::clashes_in(Touch touch, int warp, size_t first, size_t end,
                             Ordered& known) const {
  if (end - first >= kQuickTest && all_ordered(touch, warp, first, end)) return false;
  const size_t in_chunk = size_t{1} << kChunkShift >> facts_.shared_shift;
  for (size_t g = first, next = 0; g < end; g = next) {
    next = std::min(end, (g / in_chunk + 1) * in_chunk);
    // A chunk lies in one block.
    const bool same_reads = touch == Touch::read || !has_reads_[g >> kBlockShift] ||
                            equal_rows(&reads_[g * warps_], next - g, warps_);
    const bool same = same_reads && peer_reads_.empty() && all_equal(&cells_[g], next - g);
    const size_t last = same ? g + 1 : next;
    for (; g < last; ++g)
      if (clashes(touch, warp, g, known)) return true;
  }
  return false;
}

// touch() with vector clocks.
uint32_t SharedRaces::partial(Touch touch, int warp, uint32_t lanes, const AddressSummary& s,
                              const uint64_t* at, uint32_t bytes) {
  Ordered known = none_ordered();
  const bool peer = clocks_.is_peer(warp);
  const uint64_t mine = labelled(touch == Touch::atomic, warp);
  const uint32_t label = clocks_.label(warp);
  if (touch != Touch::read) ++version_;
  const size_t first = s.low >> facts_.shared_shift,
               end = ((s.high + bytes - 1) >> facts_.shared_shift) + 1;
  if (s.contiguous && touch == Touch::read && !peer && all_ordered(touch, warp, first, end)) {
    for (size_t g = first; g < end; ++g) reads_[g * warps_ + size_t(warp)] = label;
    for (size_t b = first >> kBlockShift; b <= (end - 1) >> kBlockShift; ++b) has_reads_[b] = 1;
    return 0;
  }
  if (s.contiguous && touch == Touch::write) {
    if (!clashes_in(touch, warp, first, end, known)) {
      std::fill(cells_.begin() + int64_t(first), cells_.begin() + int64_t(end), mine);
      return 0;
    }
    known = none_ordered();
  }
  return lanes_where(lanes, at, bytes, facts_.shared_shift, [&](size_t g) {
    const uint64_t cell = cells_[g];
    const bool fine = touch == Touch::read && cell == known.cells[place_of(cell, kKnown)];
    if (!fine && clashes(touch, warp, g, known)) return true;  // party() needs the other's label
    if (touch != Touch::read)
      cells_[g] = mine;
    else if (peer)
      note_peer_read(warp, g);
    else
      reads_[g * warps_ + size_t(warp)] = label, has_reads_[g >> kBlockShift] = 1;
    return false;
  });
}

// Notes the last access of a warp of another CTA, or of an agent.
void SharedRaces::note_peer(int other, int32_t pc) {
  const size_t number = size_t(other + clocks_.first());
  if (number >= peers_.size()) peers_.resize(number + 1);
  peers_[number] = {.label = clocks_.label(other), .pc = pc};
}

void SharedRaces::note_product(const Product& p) {
  const int agent = clocks_.products_of(p.warp);
  note_peer(agent, p.pc);
  peers_[size_t(agent + clocks_.first())].warp = p.warp;
  if (product_reads_.empty()) product_reads_.resize((chunk_of(granules_) + 1) * groups_);
}

void SharedRaces::note_peer_read(int other, size_t g) {
  if (peer_reads_.empty()) peer_reads_.resize(granules_);
  peer_reads_[g] = labelled(false, other);
}

bool SharedRaces::peer_read(int warp, size_t g, int& other) const {
  if (peer_reads_.empty() || !peer_reads_[g]) return false;
  other = writer_of(peer_reads_[g]);
  return !clocks_.ordered(warp, other, label_in(peer_reads_[g]));
}

// Finds another warp whose access to granule g is not ordered before an access by `warp`.
bool SharedRaces::clash(Touch touch, int warp, size_t g, int& other, bool& wrote) const {
  const uint64_t cell = cells_[g];
  wrote = true;
  if (!clocks_.vector()) {
    const uint32_t bit = 1u << warp, writers = uint32_t(cell >> 32), readers = uint32_t(cell);
    uint32_t found = touch == Touch::read && (writers & bit) ? 0 : writers & ~bit;
    if (!found && !atomics_.empty() && touch != Touch::atomic) found = atomics_[g] & ~bit;
    if (!found && touch != Touch::read) found = readers & ~bit, wrote = false;
    other = std::countr_zero(found);
    return found != 0;
  }
  other = writer_of(cell);
  const bool both_atomic = touch == Touch::atomic && (cell & kAtomic);
  if (cell && !both_atomic && !clocks_.ordered(warp, other, label_in(cell))) return true;
  wrote = false;
  if (touch == Touch::read) return false;
  for (size_t u = 0; u < warps_; ++u) {
    other = int(u);
    if (!clocks_.ordered(warp, other, reads_[g * warps_ + u])) return true;
  }
  if (!product_reads_.empty()) {
    for (size_t u = 0; u < groups_; ++u) {
      other = products_of_group(u);
      if (!clocks_.ordered(warp, other, product_reads_[chunk_of(g) * groups_ + u])) return true;
    }
  }
  return peer_read(warp, g, other);
}

SharedRaces::Party SharedRaces::party(Touch touch, int warp, uint64_t at, uint32_t bytes) const {
  Party p;
  int other = 0;
  bool found = false;
  each_granule(at, at + bytes,
               [&](size_t g) { found = found || clash(touch, warp, g, other, p.wrote); });
  if (!found) return p;
  p.warp = other;
  if (clocks_.is_agent(other) || clocks_.is_peer(other)) {
    const size_t number = size_t(other + clocks_.first());
    p.is_copy = clocks_.is_agent(other), p.pc = peers_[number].pc;
    if (clocks_.warp_of_products(other) >= 0) {
      p.is_copy = false, p.warp = peers_[number].warp;
      return p;
    }
    if (!p.is_copy) p.rank = int(number / warps_), p.warp = int(number % warps_);
    return p;
  }
  for (size_t i = 0; i < facts_.access_pc.size(); ++i) {
    const Trace& t = traces_[size_t(p.warp) * facts_.access_pc.size() + i];
    if (t.end <= at || t.low >= at + bytes || facts_.access_writes[i] != p.wrote) continue;
    if (clocks_.ordered(warp, p.warp, t.label)) continue;
    p.pc = facts_.access_pc[i];
    p.lane = t.stride ? int((std::max<uint64_t>(at, t.low) - t.low) / t.stride) : -1;
    if (p.lane >= 0) break;  // certain
  }
  return p;
}

bool SharedRaces::may_copy(Touch touch, int warp, uint64_t from, uint64_t to) const {
  Ordered known = none_ordered();
  return !clashes_in(touch, warp, from >> facts_.shared_shift,
                     ((to - 1) >> facts_.shared_shift) + 1, known);
}

// Whether `warp` sees the last write of a granule through the async proxy.
bool SharedRaces::seen(int warp, uint64_t cell, bool plain) const {
  const int writer = writer_of(cell);
  if (!cell || clocks_.is_agent(writer) || (plain && (cell & kByAsyncCopy))) return true;
  return clocks_.visible(FenceKind::proxy_shared, warp, writer, label_in(cell));
}

bool SharedRaces::visible(int warp, uint64_t from, uint64_t to) const {
  bool fine = true;
  uint64_t known = 0;  // the cell that was checked last
  each_granule(from, to, [&](size_t g) {
    if (cells_[g] == known) return;
    known = cells_[g];
    fine = fine && seen(warp, known, false);
  });
  return fine;
}

uint32_t SharedRaces::hidden(int warp, const uint64_t* at) const {
  const size_t count = size_t{1} << kChunkShift >> facts_.shared_shift;
  uint32_t out = 0;
  uint64_t known[kKnown] = {};  // cells that are visible
  for (int lane = 0; lane < 32; ++lane) {
    const uint64_t* const cells = &cells_[(at[lane] >> kChunkShift) * count];
    const size_t different = all_equal(cells, count) ? 1 : count;
    if (different == 1 && cells[0] == known[place_of(cells[0], kKnown)]) continue;
    for (size_t i = 0; i < different; ++i) {
      if (!seen(warp, cells[i], true)) out |= 1u << lane;
    }
    if (!(out >> lane & 1)) known[place_of(cells[0], kKnown)] = cells[0];
  }
  return out;
}

void SharedRaces::by_async_copy(int warp, uint32_t lanes, const uint64_t* at, uint32_t bytes) {
  const uint64_t mine = labelled(false, warp);
  ++version_;
  for (uint32_t m = lanes; m; m &= m - 1) {
    const uint64_t from = at[std::countr_zero(m)];
    each_granule(from, from + bytes, [&](size_t g) {
      if (cells_[g] == mine) cells_[g] |= kByAsyncCopy;
    });
  }
}

void SharedRaces::copied(Touch touch, int agent, int32_t pc, uint64_t from, uint64_t to) {
  note_peer(agent, pc);
  const uint64_t mine = labelled(touch == Touch::atomic, agent);
  ++version_;
  const auto cells = cells_.begin();
  std::fill(cells + int64_t(from >> facts_.shared_shift),
            cells + int64_t((to - 1) >> facts_.shared_shift) + 1, mine);
}

void SharedRaces::released(int reader, int32_t pc, uint64_t from, uint64_t to) {
  const bool own = reader >= 0 && reader < int(warps_);
  if (!own) note_peer(reader, pc);
  each_granule(from, to, [&](size_t g) {
    if (own)
      reads_[g * warps_ + size_t(reader)] = clocks_.label(reader), has_reads_[g >> kBlockShift] = 1;
    else
      note_peer_read(reader, g);
  });
}

// An access is finished if a warp of this CTA has since synchronised with the warp that made it.
SharedRaces::Party SharedRaces::unfinished() const {
  for (size_t number = 0; number < peers_.size(); ++number) {
    const int other = int(number) - clocks_.first();
    const PeerTrace& t = peers_[number];
    if (t.pc < 0 || clocks_.is_agent(other) || clocks_.any_ordered(other, t.label)) continue;
    return {.warp = int(number % warps_), .pc = t.pc, .rank = int(number / warps_)};
  }
  return {};
}

}  // namespace cutegen::ptx
