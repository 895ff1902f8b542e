// SPDX-License-Identifier: Apache-2.0
// Database: opens a store's SQLite file with the durability that the journal needs.
//
// Contract: Database::open() checks the application id and the format of the SQLite file, sets WAL
// and synchronous=FULL, and creates the tables. The function guarded() turns SQLite's exceptions
// into errors, for example if the file is damaged, busy or not a database, or if the disk is full.
//
// Example: guarded(db.file(), [&]() -> Result<void> { db.sql().exec("..."); return {}; });
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <filesystem>
#include <memory>
#include <mutex>

#include "base/result.h"

namespace cutegen::store {

class Database {
 public:
  static Result<std::shared_ptr<Database>> open(const std::filesystem::path& dir);
  SQLite::Database& sql() { return sql_; }
  std::mutex& mutex() { return mutex_; }
  const std::filesystem::path& dir() const { return dir_; }
  std::filesystem::path file() const { return dir_ / "cutegen.db"; }
  explicit Database(std::filesystem::path dir);  // throws; use open()

 private:
  Result<void> prepare();
  void create_tables();
  std::filesystem::path dir_;
  SQLite::Database sql_;
  std::mutex mutex_;
};

Error database_error(const std::filesystem::path& file, const SQLite::Exception& e);

template <class F>
auto guarded(const std::filesystem::path& file, F&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const SQLite::Exception& e) {
    return fail(database_error(file, e));
  }
}

}  // namespace cutegen::store
