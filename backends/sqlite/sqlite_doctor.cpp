#include "sqlite_doctor.hpp"

#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <filesystem>
#include <string>

#include "idem/clock.hpp"
#include "open_file.hpp"
#include "schema.hpp"
#include "store_time.hpp"

namespace idem::sqlite {
namespace {

namespace fs = std::filesystem;
using Severity = Finding::Severity;

constexpr std::uint64_t kLogBytesMuch = std::uint64_t{64} << 20;
constexpr std::uint64_t kDiskBytesLittle = std::uint64_t{64} << 20;
constexpr Micros kClockMuch = std::chrono::seconds(60);

std::string mib(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

// Gathers findings about one file.
class Examination {
 public:
  Examination(std::string path, const SqliteOptions& options,
              std::optional<Durability> min_durability)
      : path_(std::move(path)), options_(options), min_durability_(min_durability) {}

  Findings take() && {
    if (path_ == ":memory:") {
      add_durability(Durability::none, "a private database, gone with its process",
                     "--store sqlite:name.db");
      return std::move(findings_);
    }
    look_at_place();
    std::error_code none;
    if (!fs::exists(path_, none)) {
      add(Severity::bad, "file", "there is no store " + path_ + ": nothing was claimed there yet",
          "check the path; a store is made by its first claim");
      return std::move(findings_);
    }
    SqliteOptions options = options_;
    options.create = false;
    const bool in_use = fs::exists(path_ + "-wal", none);
    auto connection = open_reader(path_, options);
    if (!connection) {
      add(Severity::bad, "file", connection.error().message, "check the path and its rights");
      return std::move(findings_);
    }
    look_at_database(*connection);
    // Whose log is there keeps it. One that looking made goes with the last to look, and is empty.
    if (!in_use)
      sqlite3_db_config(connection->handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
    return std::move(findings_);
  }

 private:
  void add(Severity severity, std::string setting, std::string what, std::string remedy = {}) {
    findings_.push_back({severity, std::move(setting), std::move(what), std::move(remedy)});
  }

  void add_durability(Durability found, const std::string& what, const std::string& remedy) {
    const bool too_little = min_durability_ && found < *min_durability_;
    const bool full = found == Durability::power;
    add(too_little ? Severity::bad
        : full     ? Severity::ok
                   : Severity::warn,
        "durability", what, full ? std::string() : remedy);
  }

  void look_at_place() {
    const std::string directory = fs::path(path_).parent_path().string();
    struct statfs system {};
    if (::statfs(directory.c_str(), &system) != 0) return;  // opening says what is wrong with it
    const FileSystem found = file_system_of(system.f_type);
    on_memory_ = found.in_memory;
    if (found.network) {
      add(Severity::bad, "file system",
          std::string(found.name) + ": locks over a network cannot be trusted",
          "move " + path_ + " to a local file system, or use redis://");
    } else {
      add(Severity::ok, "file system", found.name.empty() ? "local" : std::string(found.name));
    }
    const std::uint64_t left =
        std::uint64_t{system.f_bavail} * static_cast<std::uint64_t>(system.f_bsize);
    if (left >= kDiskBytesLittle) return add(Severity::ok, "disk", mib(left) + " left");
    add(Severity::warn, "disk", mib(left) + " left: a full disk takes no claims",
        "make room below " + directory);
  }

  void look_at_database(Connection& connection) {
    const auto mode = connection.text_of("PRAGMA journal_mode");
    if (!mode) {
      const bool full = mode.error().code == errc::capacity;
      add(Severity::bad, "file", mode.error().message,
          full ? "make room on the disk" : "name another file, or restore it from a backup");
      return;
    }
    if (*mode == "wal") {
      add(Severity::ok, "journal_mode", "wal");
    } else {
      add(Severity::warn, "journal_mode", *mode + ": readers and the writer block each other",
          "sqlite3 " + path_ + " 'PRAGMA journal_mode=WAL' (opening it as a store does it, too)");
    }
    look_at_synchronous();
    look_at_log();
    look_at_tables(connection);
  }

  void look_at_synchronous() {
    const bool full = options_.synchronous == SqliteOptions::Synchronous::full;
    add(full ? Severity::ok : Severity::warn, "synchronous", full ? "full" : "normal",
        full ? "" : "leave synchronous=normal out of the URL");
    if (on_memory_)
      return add_durability(Durability::process, "the file system is gone with the power",
                            "move " + path_ + " to a disk");
    if (full) return add_durability(Durability::power, "power: survives a power cut", "");
    add_durability(Durability::process, "process: a power cut may undo the last results",
                   "leave synchronous=normal out of the URL");
  }

  void look_at_log() {
    std::error_code none;
    const std::uint64_t bytes = fs::file_size(path_ + "-wal", none);
    if (none || bytes <= kLogBytesMuch) {
      add(Severity::ok, "wal file", none ? "none" : mib(bytes));
    } else {
      add(Severity::warn, "wal file",
          mib(bytes) + ": some reader keeps an old snapshot open, so it cannot be written back",
          "end long reads of other programs, then sqlite3 " + path_ +
              " 'PRAGMA wal_checkpoint(TRUNCATE)'");
    }
  }

  void look_at_tables(Connection& connection) {
    if (const auto ours = verify_schema(connection); !ours) {
      add(Severity::bad, "schema", ours.error().message,
          "idem store schema --store sqlite:name.db   (shows what a store makes)");
      return;
    }
    const auto indexes = connection.integer_of(
        "SELECT count(*) FROM sqlite_master WHERE name IN ('idx_idem_expires', 'idx_idem_lapsed')");
    if (indexes && *indexes < 2) {
      add(Severity::warn, "schema", "an index is missing: sweeps read every record",
          "open it as a store: the next claim makes it");
    } else {
      add(Severity::ok, "schema",
          "version " + std::to_string(kSchemaVersion) + ", with its columns and unique key");
    }
    look_at_clock(connection);
  }

  void look_at_clock(Connection& connection) {
    const auto floor = connection.integer_of("SELECT time_floor FROM idempotent_meta WHERE id = 1");
    if (!floor) return add(Severity::bad, "clock", floor.error().message, "check the disk");
    if (!is_floor(*floor))
      return add(Severity::bad, "clock", "idempotent_meta is damaged: a floor is out of range",
                 "restore the file from a backup");
    Clock& clock = options_.clock != nullptr ? *options_.clock : system_clock();
    const Micros ahead = Time(Micros(*floor)) - clock.now();
    if (ahead <= kClockMuch) return add(Severity::ok, "clock", "not ahead of this machine's");
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(ahead).count();
    add(Severity::bad, "clock",
        "the file saw a time " + std::to_string(seconds) +
            " s ahead of this machine's clock: leases and results end early by that",
        "set the clocks of all processes that write it by NTP; the file's time waits for them");
  }

  std::string path_;
  SqliteOptions options_;
  std::optional<Durability> min_durability_;
  Findings findings_;
  bool on_memory_ = false;
};

}  // namespace

// From linux/magic.h and the file systems' own sources.
FileSystem file_system_of(long type) {
  switch (static_cast<unsigned long>(type) & 0xffffffffUL) {
    case 0x6969:
      return {"nfs", true, false};
    case 0x517b:
    case 0xff534d42:
    case 0xfe534d42:
      return {"smb", true, false};
    case 0x01021997:
      return {"9p", true, false};
    case 0x5346414f:
      return {"afs", true, false};
    case 0x00c36400:
      return {"ceph", true, false};
    case 0x0bd00bd0:
      return {"lustre", true, false};
    case 0x65735546:
      return {"fuse", true, false};
    case 0x01021994:
      return {"tmpfs", false, true};
    case 0x858458f6:
      return {"ramfs", false, true};
    default:
      return {};
  }
}

Findings diagnose(const SqliteOptions& options, std::optional<Durability> min_durability) {
  const auto path = absolute_path(options.path);
  if (!path) return {{Severity::bad, "url", path.error().message, "idem stores lists the forms"}};
  return Examination(*path, options, min_durability).take();
}

}  // namespace idem::sqlite
