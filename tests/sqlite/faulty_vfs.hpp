// A file system under SQLite that does as the test says; otherwise that of the machine.
#pragma once

#include <sqlite3.h>

#include <atomic>
#include <cstdlib>

namespace idem {

struct Faults {
  std::atomic<bool> no_shared_memory{false};  // as file systems that cannot do WAL
  std::atomic<bool> locks_fail{false};        // SQLITE_PROTOCOL, as some network shares
  std::atomic<bool> log_sync_fails{false};    // fsync of the -wal
  std::atomic<bool> log_write_fails{false};   // write to the -wal
  std::atomic<bool> disk_full{false};         // write to the -wal: no space left
  std::atomic<int> log_sync_micros{0};        // how long an fsync of the -wal takes at least
  std::atomic<int> log_syncs{0};              // how many there were
};

inline Faults faults;

namespace faulty {

inline sqlite3_vfs* machine = nullptr;
// The machine's own methods of the database and of its log.
inline const sqlite3_io_methods* real_main = nullptr;
inline const sqlite3_io_methods* real_log = nullptr;
inline sqlite3_io_methods main_methods;
inline sqlite3_io_methods main_without_wal;
inline sqlite3_io_methods log_methods;

inline int sync_log(sqlite3_file* file, int flags) {
  ++faults.log_syncs;
  if (faults.log_sync_fails) return SQLITE_IOERR_FSYNC;
  if (const int pause = faults.log_sync_micros) machine->xSleep(machine, pause);
  return real_log->xSync(file, flags);
}

inline int write_log(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 at) {
  if (faults.log_write_fails) return SQLITE_IOERR_WRITE;
  if (faults.disk_full) return SQLITE_FULL;
  return real_log->xWrite(file, bytes, count, at);
}

inline int lock_shared_memory(sqlite3_file* file, int offset, int count, int flags) {
  if (faults.locks_fail) return SQLITE_PROTOCOL;
  return real_main->xShmLock(file, offset, count, flags);
}

inline int open(sqlite3_vfs* vfs, sqlite3_filename name, sqlite3_file* file, int flags, int* out) {
  const int code = machine->xOpen(vfs, name, file, flags, out);
  if (code != SQLITE_OK || file->pMethods == nullptr) return code;
  if ((flags & SQLITE_OPEN_WAL) != 0) {
    if (real_log == nullptr) {
      real_log = file->pMethods;
      log_methods = *real_log;
      log_methods.xSync = sync_log;
      log_methods.xWrite = write_log;
    }
    file->pMethods = &log_methods;
  } else if ((flags & SQLITE_OPEN_MAIN_DB) != 0) {
    if (real_main == nullptr) {
      real_main = file->pMethods;
      main_methods = *real_main;
      main_methods.xShmLock = lock_shared_memory;
      main_without_wal = *real_main;
      main_without_wal.iVersion = 1;
    }
    file->pMethods = faults.no_shared_memory ? &main_without_wal : &main_methods;
  }
  return code;
}

}  // namespace faulty

// Puts it under every connection opened from now on. Once, before any other thread.
inline void install_faulty_vfs() {
  faulty::machine = sqlite3_vfs_find(nullptr);
  static sqlite3_vfs vfs;
  vfs = *faulty::machine;
  vfs.zName = "faulty";
  vfs.xOpen = faulty::open;
  if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK) std::abort();
}

}  // namespace idem
