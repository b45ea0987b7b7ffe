// idem store export, import, migrate: the records of one store, in another one or in a file.
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "commands.hpp"
#include "idem/clock.hpp"
#include "idem/redacted.hpp"
#include "options.hpp"
#include "transfer/copy.hpp"
#include "transfer/export_file.hpp"

namespace idem::cli {

namespace {

struct Options {
  std::string file = "-";
  std::string from;
  std::string to;
  bool verify = false;
};

// --- export --------------------------------------------------------------------------------------

// A file that bears its name only when it is whole: until then it has none, where the file system
// can do that, and nothing is left of it if we are killed. Results may be secrets: for this user
// only.
class WholeFile {
 public:
  explicit WholeFile(const std::string& name)
      : name_(target_of(name)), part_(name_ + "." + Owner::random().hex()) {
    const std::string directory = std::filesystem::path(name_).parent_path().string();
    int descriptor = -1;
    if (::access(kOpenFiles, X_OK) == 0)
      descriptor = ::open(directory.empty() ? "." : directory.c_str(),
                          O_TMPFILE | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR);
    nameless_ = descriptor >= 0;
    if (!nameless_)
      descriptor =
          ::open(part_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (descriptor >= 0) file_ = ::fdopen(descriptor, "wb");
    if (file_ == nullptr) refuse("cannot write");
  }
  ~WholeFile() {
    if (file_ != nullptr) std::fclose(file_);
    if (!named_) ::unlink(part_.c_str());
  }
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  void write(std::string_view bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) refuse("cannot write");
  }
  void finish() {
    if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0) refuse("cannot write");
    // rename() replaces what is there, linkat() does not.
    const std::string own = kOpenFiles + std::to_string(::fileno(file_));
    if (nameless_ &&
        ::linkat(AT_FDCWD, own.c_str(), AT_FDCWD, part_.c_str(), AT_SYMLINK_FOLLOW) != 0)
      refuse("cannot name");
    std::FILE* const file = std::exchange(file_, nullptr);
    if (std::fclose(file) != 0) refuse("cannot write");
    if (std::rename(part_.c_str(), name_.c_str()) != 0) refuse("cannot name");
    named_ = true;
  }

 private:
  // A link's file is written, not the link. Devices and pipes are not replaced by a file.
  static std::string target_of(const std::string& name) {
    std::error_code none;
    const auto status = std::filesystem::status(name, none);
    if (none == std::errc::too_many_symbolic_link_levels)
      throw Failure(fail(errc::cannot_open, "cannot write " + name + ": " + none.message()));
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
      throw Failure(fail(errc::invalid_argument, name + " is there and is no regular file"))
          .advise("idem store export -   (standard output)");
    }
    refuse_foreign(name);
    std::filesystem::path target(name);
    for (int links = 0; links < 40 && std::filesystem::is_symlink(target, none); ++links) {
      target = target.parent_path() / std::filesystem::read_symlink(target, none);
    }
    return target.string();
  }
  // An earlier export may be replaced; a store, or what else lies there, never.
  static void refuse_foreign(const std::string& name) {
    std::ifstream there(name, std::ios::binary);
    std::string head(kExportHead.size(), '\0');
    if (!there.read(head.data(), static_cast<std::streamsize>(head.size())))
      head.resize(static_cast<std::size_t>(there.gcount()));
    // What a database keeps beside its file is empty at times.
    std::error_code none;
    const std::string file = std::filesystem::weakly_canonical(name, none).string();
    const bool beside_database =
        file.ends_with("-wal") || file.ends_with("-shm") || file.ends_with("-journal");
    if ((head.empty() && !beside_database) || head == kExportHead) return;
    throw Failure(ExitCode::refused, "refused", name + " is there and is no export")
        .advise("name another file, or remove it first");
  }
  [[noreturn]] void refuse(const char* what) {
    const int error = errno;
    throw Failure(fail(error == ENOSPC ? errc::capacity : errc::cannot_open,
                       fmt::format("{} {}: {}", what, name_, std::strerror(error))));
  }

  static constexpr const char* kOpenFiles = "/proc/self/fd/";

  std::string name_;
  std::string part_;
  bool nameless_ = false;
  std::FILE* file_ = nullptr;
  bool named_ = false;
};

std::uint64_t export_to(IdempotencyStore& store, const std::string& from,
                        const std::function<void(std::string_view)>& write) {
  ExportWriter writer(write);
  each_portion(store, from, [&](Portion&& portion) {
    for (const Listed& item : portion.items) writer.add(item);
  });
  writer.end();
  return writer.records();
}

ExitCode export_store(const Options& options, Context& context) {
  const StoreChoice choice = chosen_store_or_runs(context);
  const StorePtr store = open_existing_store(choice);
  if (options.file == "-") {
    if (context.json) throw Failure::usage("--json and records on standard output: name a FILE");
    export_to(*store, choice.from, print_text);
    return ExitCode::done;
  }
  WholeFile file(options.file);
  const auto records =
      export_to(*store, choice.from, [&](std::string_view bytes) { file.write(bytes); });
  file.finish();
  print_answer(context, Json{{"outcome", "exported"}, {"records", records}}, options.file);
  return ExitCode::done;
}

// --- import and migrate --------------------------------------------------------------------------

using EachPortion = std::function<void(const std::function<void(Portion&&)>&)>;

// What was copied, and with --verify whether it is there, for both commands.
ExitCode transfer(const EachPortion& source, IdempotencyStore& target, const StoreChoice& choice,
                  const Options& options, const Context& context, std::string_view word) {
  const std::string& to = choice.from;
  Copied copied;
  source([&](Portion&& portion) { copy_into(target, to, portion, copied); });
  Json answer{{"outcome", word}};
  answer["written"] = copied.written;
  answer["already"] = copied.already;
  answer["expired"] = copied.expired;
  if (copied.refused != 0) answer["refused"] = copied.refused;
  std::vector<std::string> told = copied.refusals;
  bool good = copied.refused == 0;
  if (options.verify) {
    Compared compared;
    source([&](Portion&& portion) { compare_with(target, to, portion, compared); });
    answer["equal"] = fmt::format("{}/{}", compared.equal, compared.all);
    good = good && compared.equal == compared.all;
    if (compared.equal != compared.all) told = compared.differences;
  }
  if (!good) answer["outcome"] = "differs";
  if (context.json) {
    if (!told.empty()) answer["differences"] = told;
    print_document(answer);
  } else {
    print_text(to_text(answer, "into " + redacted_url(choice.url)));
    for (const std::string& difference : told)
      fmt::print(stderr, "idem: {}\n", printable(difference));
  }
  return good ? ExitCode::done : ExitCode::check_failed;
}

// The records of a file, as old as they are by the target's clock.
void each_portion_of_file(const std::string& name, IdempotencyStore& target, const std::string& to,
                          const std::function<void(Portion&&)>& each) {
  std::ifstream opened;
  if (name != "-") opened.open(name, std::ios::binary);
  std::istream& file = name == "-" ? std::cin : opened;
  if (!file) throw Failure::usage("cannot read file '" + name + "'");
  Portion portion;
  std::size_t bytes = 0;  // of its results
  const auto hand_out = [&] {
    portion.read_at = system_clock().now();
    Load clock{portion.items.front().key, {}};  // every answer tells the store's time
    target.load({&clock, 1});
    if (clock.answer.state == Answer::State::failed) throw Failure(clock.answer.error).from(to);
    portion.now = clock.answer.now;
    each(std::exchange(portion, {}));
  };
  read_export(file, name, [&](Listed&& item) {
    bytes += item.record.result.size();
    portion.items.push_back(std::move(item));
    if (portion.items.size() < kPortionRecords && bytes < kPortionBytes) return;
    hand_out();
    bytes = 0;
  });
  if (!portion.items.empty()) hand_out();
}

ExitCode import_file(const Options& options, Context& context) {
  const StoreChoice choice = chosen_store(context);
  if (options.file == "-" && options.verify)
    throw Failure::usage("--verify reads the records twice: name a FILE");
  std::error_code none;
  const auto status = std::filesystem::status(options.file, none);
  if (options.file != "-" && std::filesystem::exists(status) &&
      !std::filesystem::is_regular_file(status))
    throw Failure::usage(options.file + " is no regular file; a file is read twice")
        .advise("idem store import -   (standard input, read once)");
  if (options.file != "-") {  // all of it, before anything is written
    std::ifstream file(options.file, std::ios::binary);
    if (!file) throw Failure::usage("cannot read file '" + options.file + "'");
    read_export(file, options.file, [](Listed&&) {});
  }
  const StorePtr target = open_lasting_store(choice);
  const EachPortion source = [&](const std::function<void(Portion &&)>& each) {
    each_portion_of_file(options.file, *target, choice.from, each);
  };
  return transfer(source, *target, choice, options, context, "imported");
}

ExitCode migrate(const Options& options, Context& context) {
  if (same_store(options.from, options.to))
    throw Failure::usage("--from and --to are the same store");
  const StoreChoice from{options.from, "--from " + redacted_url(options.from)};
  const StoreChoice to{options.to, "--to " + redacted_url(options.to)};
  const StorePtr old = open_existing_store(from);
  const StorePtr target = open_lasting_store(to);
  const EachPortion source = [&](const std::function<void(Portion &&)>& each) {
    each_portion(*old, from.from, each);
  };
  return transfer(source, *target, to, options, context, "migrated");
}

}  // namespace

void add_store_transfer(CLI::App& family, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* leaf =
      add_leaf(family, context, "export",
               "Write all unexpired records as JSON Lines, with a digest at the end",
               {"idem store export --store sqlite:orders.db orders.jsonl"}, kNamedStoreOrRuns);
  leaf->add_option("FILE", options->file, "where to, - for standard output")->type_name("");
  on_run(leaf, context, options, export_store);

  options = std::make_shared<Options>();
  leaf = add_leaf(family, context, "import",
                  "Put the records of an export into a store; what stands there is left alone",
                  {"idem store export --store sqlite:orders.db orders.jsonl && "
                   "idem store import --store sqlite:new.db orders.jsonl --verify"});
  leaf->add_option("FILE", options->file, "an export, - for standard input")
      ->type_name("")
      ->required();
  leaf->add_flag("--verify", options->verify, "then compare every record");
  on_run(leaf, context, options, import_file);

  options = std::make_shared<Options>();
  leaf = add_leaf(family, context, "migrate",
                  "Copy the records of one store into another; stop its users first",
                  {"idem store migrate --from sqlite:orders.db --to sqlite:new.db --verify"},
                  kNoStore);
  leaf->add_option("--from", options->from, "the store to read")
      ->type_name("URL")
      ->required()
      ->check(not_empty());
  leaf->add_option("--to", options->to, "the store to write")
      ->type_name("URL")
      ->required()
      ->check(not_empty());
  leaf->add_flag("--verify", options->verify, "then compare every record");
  on_run(leaf, context, options, migrate);
}

}  // namespace idem::cli
