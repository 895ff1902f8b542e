// SPDX-License-Identifier: Apache-2.0
#include "store/database.h"

#include <fcntl.h>
#include <sqlite3.h>

#include <thread>

#include "base/context.h"
#include "base/file.h"
#include "store/local_disk.h"

namespace cutegen::store {
namespace {

constexpr const char* kWriteAheadLog = "wal";  // SQLite's name of this journal mode

constexpr int kApplicationId = 0x43474A31;  // "CGJ1", in the file's header
constexpr int kFormat = 1;
constexpr int kBusyMs = 20000;
constexpr auto kAgain = std::chrono::milliseconds(5);

int pragma_int(SQLite::Database& sql, const char* name) {
  return sql.execAndGet(std::string("PRAGMA ") + name).getInt();
}

// SQLite gives its side files the permissions of the main file, so this creates a private main file
// first.
Result<void> make_private_file(const std::filesystem::path& file) {
  UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return errno_error("cannot open '" + file.string() + "'");
  return {};
}

constexpr const char* kTables = R"sql(
  CREATE TABLE events(id INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL,
    seq INTEGER NOT NULL, type TEXT NOT NULL, version INTEGER NOT NULL, json TEXT NOT NULL,
    UNIQUE(run, seq));
  CREATE TABLE blobs(hash TEXT PRIMARY KEY, bytes BLOB NOT NULL) WITHOUT ROWID;
  CREATE TABLE projections(name TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE runs(id TEXT PRIMARY KEY, ordinal INTEGER NOT NULL, json TEXT NOT NULL);
)sql";

}  // namespace

Error database_error(const std::filesystem::path& file, const SQLite::Exception& e) {
  Error error{.kind = ErrorKind::world, .message = {}, .where = file.string(), .remedy = {}};
  switch (e.getErrorCode() & 0xFF) {
    case SQLITE_NOTADB:
      error.kind = ErrorKind::user;
      error.message = "this file is not an SQLite database";
      error.remedy = "move it away, or choose another folder with --runs DIR";
      break;
    case SQLITE_CORRUPT:
      error.message = "the journal of runs is damaged";
      error.remedy =
          "restore it from a backup, or choose another folder with --runs DIR; "
          "`sqlite3 cutegen.db .recover` may save what is left";
      break;
    case SQLITE_FULL:
      error.message = "the disk of the journal is full";
      error.remedy = "free some space, then `cutegen resume`";
      break;
    case SQLITE_BUSY:
      error.message = "another process keeps the journal locked";
      error.remedy = "wait for it, or stop it";
      break;
    default:
      error.message = std::string("the journal cannot be used: ") + e.what();
  }
  return error;
}

Database::Database(std::filesystem::path dir)
    : dir_(std::move(dir)), sql_(file().string(), SQLite::OPEN_READWRITE, kBusyMs) {}

void Database::create_tables() {
  SQLite::Transaction transaction(sql_, SQLite::TransactionBehavior::IMMEDIATE);
  if (pragma_int(sql_, "application_id") != 0) return;  // another process was faster
  sql_.exec(kTables);
  sql_.exec("PRAGMA application_id = " + std::to_string(kApplicationId));
  sql_.exec("PRAGMA user_version = " + std::to_string(kFormat));
  transaction.commit();
}

Result<void> Database::prepare() {
  auto foreign = [&] {
    return user_error("this database belongs to another program", file().string(),
                      "choose another folder with --runs DIR");
  };
  // Check before writing, so that another program's file stays untouched. Read both values in one
  // transaction, because another process may be creating the tables.
  SQLite::Transaction reading(sql_);
  int id = pragma_int(sql_, "application_id");
  bool empty = sql_.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
  reading.commit();
  if (id != kApplicationId && !(id == 0 && empty)) return foreign();
  if (std::string mode = sql_.execAndGet("PRAGMA journal_mode = WAL").getString();
      mode != kWriteAheadLog)
    return world_error("SQLite has no write-ahead log for '" + file().string() + "'",
                       "choose a local folder with --runs DIR");
  sql_.exec("PRAGMA synchronous = FULL");
  if (empty) create_tables();
  if (int format = pragma_int(sql_, "user_version"); format != kFormat)
    return user_error("the journal has format " + std::to_string(format) +
                          "; this program reads format " + std::to_string(kFormat),
                      file().string(), "use the version of cutegen that wrote it");
  return {};
}

Result<std::shared_ptr<Database>> Database::open(const std::filesystem::path& dir) {
  std::error_code error;
  if (std::filesystem::exists(dir, error) && !std::filesystem::is_directory(dir, error))
    return user_error("'" + dir.string() + "' is not a folder", {},
                      "choose a folder with --runs DIR");
  CG_CHECK(private_dir(dir));
  CG_CHECK(require_local_disk(dir));
  CG_CHECK(make_private_file(dir / "cutegen.db"));
  return guarded(dir / "cutegen.db", [&]() -> Result<std::shared_ptr<Database>> {
    for (const auto start = Clock::now();;) {
      try {
        auto database = std::make_shared<Database>(dir);
        CG_CHECK(database->prepare());
        return database;
      } catch (const SQLite::Exception& e) {
        // SQLite does not wait while another process creates the log, or removes it as its last
        // user.
        const bool busy = (e.getErrorCode() & 0xFF) == SQLITE_BUSY;
        if (!busy || Clock::now() - start > std::chrono::milliseconds(kBusyMs)) throw;
      }
      std::this_thread::sleep_for(kAgain);
    }
  });
}

}  // namespace cutegen::store
