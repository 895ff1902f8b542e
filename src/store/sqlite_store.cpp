// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "base/hash.h"
#include "base/text.h"
#include "store/database.h"
#include "store/events.h"
#include "store/long_texts.h"
#include "store/projection.h"
#include "store/run_lock.h"
#include "store/store.h"

namespace cutegen::store {
namespace {

constexpr const char* kLastRun = "last";  // the user's name for the newest run

using DatabasePtr = std::shared_ptr<Database>;

void insert_blob(SQLite::Database& sql, const std::string& hash, std::string_view bytes) {
  SQLite::Statement insert(sql, "INSERT OR IGNORE INTO blobs(hash, bytes) VALUES(?, ?)");
  insert.bind(1, hash);
  insert.bind(2, bytes.data(), int(bytes.size()));
  insert.exec();
}

Result<std::string> select_blob(Database& db, const std::string& hash) {
  SQLite::Statement select(db.sql(), "SELECT bytes FROM blobs WHERE hash = ?");
  select.bind(1, hash);
  if (!select.executeStep())
    return user_error("the journal has no blob " + hash.substr(0, 12), db.file().string());
  SQLite::Column column = select.getColumn(0);
  std::string bytes(static_cast<const char*>(column.getBlob()), size_t(column.getBytes()));
  if (sha256(bytes) != hash)
    return world_error("blob " + hash.substr(0, 12) + " of '" + db.file().string() +
                           "' is damaged: its content does not fit its hash",
                       "restore the journal from a backup");
  return bytes;
}

Result<std::vector<Event>> select_events(Database& db, const std::string& run) {
  std::vector<Event> events;
  SQLite::Statement select(
      db.sql(), "SELECT seq, type, version, json FROM events WHERE run = ? ORDER BY seq");
  select.bind(1, run);
  while (select.executeStep()) {
    Event event;
    event.seq = select.getColumn(0).getInt64();
    event.version = select.getColumn(2).getInt();
    std::string place = "run " + run + ", event " + std::to_string(event.seq);
    CG_TRY(event.type, event_type_of(select.getColumn(1).getString(), event.seq));
    if (event.seq != int64_t(events.size()) + 1)
      return world_error("the journal of run " + run + " has a gap before event " +
                         std::to_string(event.seq));
    CG_TRY(Json lean, parse_json(select.getColumn(3).getString(), place));
    CG_TRY(event.data, restore_long_texts(
                           lean, [&](const std::string& hash) { return select_blob(db, hash); }));
    CG_TRY(event, upcast(std::move(event), journal_upcasts()));
    events.push_back(std::move(event));
  }
  return events;
}

void write_run_row(SQLite::Database& sql, const RunInfo& info) {
  SQLite::Statement upsert(
      sql,
      "INSERT INTO runs(id, ordinal, json)"
      " VALUES(?1, (SELECT min(id) FROM events WHERE run = ?1 AND seq = 1), ?2)"
      " ON CONFLICT(id) DO UPDATE SET json = ?2");
  upsert.bind(1, info.id);
  upsert.bind(2, dump_json(to_json(info)));
  upsert.exec();
}

bool projection_is_current(SQLite::Database& sql) {
  SQLite::Statement known(sql, "SELECT version FROM projections WHERE name = 'runs'");
  return known.executeStep() && known.getColumn(0).getInt() == kRunsProjection;
}

// Rebuilds all rows of `runs` if another version of fold_run_info() wrote them.
void rebuild_projection(Database& db) {
  if (projection_is_current(db.sql())) return;
  SQLite::Transaction transaction(db.sql(), SQLite::TransactionBehavior::IMMEDIATE);
  if (projection_is_current(db.sql())) return;  // another process was faster
  db.sql().exec("DELETE FROM runs");
  std::vector<std::string> ids;
  SQLite::Statement runs(db.sql(), "SELECT run FROM events WHERE seq = 1 ORDER BY id");
  while (runs.executeStep()) ids.push_back(runs.getColumn(0).getString());
  for (const std::string& id : ids) {
    RunInfo info;
    info.id = id;
    info.state = RunState::unreadable;  // remains if a newer version wrote the events
    if (auto events = select_events(db, id))
      for (const Event& event : *events) fold_run_info(info, event);
    write_run_row(db.sql(), info);
  }
  SQLite::Statement mark(db.sql(),
                         "INSERT OR REPLACE INTO projections(name, version) VALUES('runs', ?)");
  mark.bind(1, kRunsProjection);
  mark.exec();
  transaction.commit();
}

class SqliteJournal final : public RunJournal {
 public:
  SqliteJournal(DatabasePtr db, RunLock lock, RunInfo info)
      : db_(std::move(db)), lock_(std::move(lock)), info_(std::move(info)) {}

  const std::string& id() const override { return info_.id; }

  Result<Event> append(EventType type, const Json& data) override {
    CG_ASSERT(info_.events > 0 || type == EventType::opened);
    std::lock_guard guard(db_->mutex());
    return guarded(db_->file(), [&]() -> Result<Event> {
      Json full = data;
      if (type == EventType::opened) full["run"] = to_json(info_);
      // Returns what a reader will see: no invalid UTF-8, no infinities.
      CG_TRY(full, parse_json(dump_json(full), to_string(type)));
      Event event{.seq = info_.events + 1,
                  .type = type,
                  .version = event_version(type),
                  .data = std::move(full)};
      CG_CHECK(commit(event));
      return event;
    });
  }

  Result<std::vector<Event>> events() override {
    std::lock_guard guard(db_->mutex());
    return guarded(db_->file(), [&] { return select_events(*db_, info_.id); });
  }

 private:
  Result<void> commit(const Event& event) {
    RunInfo after = info_;
    fold_run_info(after, event);
    SQLite::Transaction transaction(db_->sql(), SQLite::TransactionBehavior::IMMEDIATE);
    Json lean = take_long_texts(event.data, [&](const std::string& hash, const std::string& text) {
      insert_blob(db_->sql(), hash, text);
    });
    SQLite::Statement insert(
        db_->sql(), "INSERT INTO events(run, seq, type, version, json) VALUES(?, ?, ?, ?, ?)");
    insert.bind(1, info_.id);
    insert.bind(2, event.seq);
    insert.bind(3, to_string(event.type));
    insert.bind(4, event.version);
    insert.bind(5, dump_json(lean));
    insert.exec();
    write_run_row(db_->sql(), after);
    transaction.commit();
    info_ = std::move(after);
    return {};
  }

  DatabasePtr db_;
  RunLock lock_;
  RunInfo info_;
};

class SqliteStore final : public Store {
 public:
  explicit SqliteStore(DatabasePtr db) : db_(std::move(db)) {}

  Result<std::unique_ptr<RunJournal>> create(const RunInfo& given) override {
    RunInfo info = given;
    info.id = new_run_id();
    info.state = RunState::running;
    info.created = utc_now();
    info.events = info.evaluations = 0;
    CG_TRY(RunLock lock, RunLock::take(db_->dir(), info.id));
    return std::make_unique<SqliteJournal>(db_, std::move(lock), std::move(info));
  }

  Result<std::unique_ptr<RunJournal>> resume(const std::string& run) override {
    CG_TRY(std::string id, resolve(run));
    CG_TRY(RunLock lock, RunLock::take(db_->dir(), id));
    CG_TRY(auto events, read(id));
    RunInfo info;
    info.id = id;
    for (const Event& event : events) fold_run_info(info, event);
    return std::make_unique<SqliteJournal>(db_, std::move(lock), std::move(info));
  }

  Result<std::vector<Event>> read(const std::string& run) override {
    CG_TRY(std::string id, resolve(run));
    std::lock_guard guard(db_->mutex());
    return guarded(db_->file(), [&] { return select_events(*db_, id); });
  }

  Result<std::vector<RunInfo>> list() override {
    std::lock_guard guard(db_->mutex());
    return guarded(db_->file(), [&]() -> Result<std::vector<RunInfo>> {
      std::vector<RunInfo> out;
      SQLite::Statement select(db_->sql(), "SELECT json FROM runs ORDER BY ordinal DESC");
      while (select.executeStep()) {
        CG_TRY(Json row, parse_json(select.getColumn(0).getString(), "runs"));
        CG_TRY(RunInfo info, read_json<RunInfo>(row));
        // A writer that died could not record the interruption, but it no longer holds its lock.
        if (info.state == RunState::running && !RunLock::held(db_->dir(), info.id))
          info.state = RunState::interrupted;
        out.push_back(std::move(info));
      }
      return out;
    });
  }

  Result<std::string> resolve(const std::string& run) override {
    CG_TRY(std::vector<std::string> ids, run_ids());
    if (ids.empty())
      return user_error("there is no run in '" + db_->dir().string() + "' yet", {},
                        "start one with `cutegen optimize FILE`, or name the folder: --runs DIR");
    if (run == kLastRun) return ids.front();
    std::vector<std::string> fitting;
    for (const std::string& id : ids) {
      if (id == run) return id;
      if (!run.empty() && (id.starts_with(run) || id.substr(id.find('-') + 1).starts_with(run)))
        fitting.push_back(id);
    }
    if (fitting.size() == 1) return fitting.front();
    if (fitting.empty())
      return user_error(
          "there is no run '" + sanitize(run, 60) + "' in '" + db_->dir().string() + "'", {},
          "`cutegen runs` lists them");
    size_t count = fitting.size();
    fitting.resize(std::min<size_t>(count, 4));
    return user_error("'" + run + "' is ambiguous: it matches " + std::to_string(count) +
                          " runs (" + join(fitting, ", ") + (count > 4 ? ", ...)" : ")"),
                      {}, "give more characters of the id");
  }

  Result<std::string> put_blob(std::string_view bytes) override {
    std::lock_guard guard(db_->mutex());
    return guarded(db_->file(), [&]() -> Result<std::string> {
      std::string hash = sha256(bytes);
      insert_blob(db_->sql(), hash, bytes);
      return hash;
    });
  }

  Result<std::string> get_blob(const std::string& hash) override {
    std::lock_guard guard(db_->mutex());
    return guarded(db_->file(), [&] { return select_blob(*db_, hash); });
  }

 private:
  Result<std::vector<std::string>> run_ids() {  // newest first
    std::lock_guard guard(db_->mutex());
    return guarded(db_->file(), [&]() -> Result<std::vector<std::string>> {
      std::vector<std::string> ids;
      SQLite::Statement select(db_->sql(), "SELECT id FROM runs ORDER BY ordinal DESC");
      while (select.executeStep()) ids.push_back(select.getColumn(0).getString());
      return ids;
    });
  }

  DatabasePtr db_;
};

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const std::filesystem::path& dir) {
  CG_TRY(DatabasePtr db, Database::open(dir));
  return guarded(db->file(), [&]() -> Result<std::unique_ptr<Store>> {
    rebuild_projection(*db);
    return std::make_unique<SqliteStore>(db);
  });
}

}  // namespace cutegen::store
