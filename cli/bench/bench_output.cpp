#include "bench/bench_output.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "bench/bench_progress.hpp"
#include "context.hpp"
#include "load/table.hpp"
#include "report/page.hpp"

namespace idem::cli {

namespace {

void write(const std::string& dir, const char* name, const std::string& text) {
  const std::string path = dir + "/" + name;
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush())
    throw Failure(fail(errc::cannot_open, "cannot write " + path)).from("--out " + dir);
}

}  // namespace

std::string command_text() {
  std::ifstream file("/proc/self/cmdline");
  std::string text;
  for (std::string word; std::getline(file, word, '\0');) {
    std::string shown;
    std::size_t at = 0;
    while (at <= word.size()) {  // --stores takes several URLs in one word
      const std::size_t end = std::min(word.find(',', at), word.size());
      const std::string part = word.substr(at, end - at);
      const std::size_t value = part.starts_with("--") ? part.find('=') + 1 : 0;
      const auto url = StoreUrl::parse(part.substr(value));
      shown += part.substr(0, value) + (url ? url->redacted() : part.substr(value));
      if (end < word.size()) shown += ',';
      at = end + 1;
    }
    text += (text.empty() ? "" : " ") + shown;
  }
  return text;
}

std::string started_text() {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(system_clock().now().time_since_epoch());
  const std::time_t whole = seconds.count();
  std::tm parts{};
  gmtime_r(&whole, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

Json new_document(const std::string& kind) {
  const bench::Machine machine =
      bench::look_at_machine(std::filesystem::temp_directory_path().string());
  return Json{{"schema", bench::kReportSchema},
              {"kind", kind},
              {"version", IDEM_VERSION},
              {"started", started_text()},
              {"command", command_text()},
              {"machine", bench::to_json(machine)},
              {"warnings", bench::doubts_about(machine)}};
}

void tell(const std::string& text) {
  std::fprintf(stderr, "%s\n", bench::wrapped(text, text_width(STDERR_FILENO), 9).c_str());
}

void check_out(const std::string& dir) {
  if (dir.empty()) return;
  std::error_code problem;
  std::filesystem::create_directories(dir, problem);
  if (!problem && !std::filesystem::is_directory(dir))
    problem = std::make_error_code(std::errc::not_a_directory);
  if (!problem && access(dir.c_str(), W_OK | X_OK) != 0)
    problem = std::error_code(errno, std::generic_category());
  if (problem)
    throw Failure(fail(errc::cannot_open, "cannot write there: " + problem.message()))
        .from("--out " + dir);
}

void save_report(const std::string& dir, const Json& document) {
  const bench::Page page = must(bench::page_of(document));
  write(dir, "results.json", document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  write(dir, "report.md", bench::to_markdown(page));
  write(dir, "report.csv", bench::to_csv(document));
  write(dir, "report.html", bench::to_html(page, document, bench::charts_script()));
  std::fprintf(stderr, "report   %s/report.html\n", dir.c_str());
}

void print_report(const Context& context, const Json& document) {
  if (context.json) {
    print_text(document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  } else {
    print_text("\n" + bench::to_text(must(bench::page_of(document)), text_width(STDOUT_FILENO)));
  }
  std::fflush(stdout);
}

void deliver(const Context& context, const Json& document, const std::string& dir) {
  print_report(context, document);
  if (!dir.empty()) save_report(dir, document);
}

}  // namespace idem::cli
