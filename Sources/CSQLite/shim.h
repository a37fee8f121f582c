#pragma once
#include <sqlite3.h>

// sqlite3_config and sqlite3_db_config are variadic, which Swift cannot call.

static inline int nudged_use_one_thread(void) {
  int result = sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
  return result == SQLITE_OK ? sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) : result;
}

static inline int nudged_enable_triggers(sqlite3 *connection, int enabled) {
  return sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, enabled, (int *)0);
}

static inline int nudged_no_checkpoint_on_close(sqlite3 *connection) {
  return sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}
