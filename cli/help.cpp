#include "help.hpp"

#include <set>
#include <sstream>

#include "idem/store_url.hpp"
#include "options.hpp"

namespace idem::cli {

namespace {

using Words = std::set<std::string, std::less<>>;

// Of the app and of everything it stands in.
Words option_names(const CLI::App& app) {
  Words names;
  for (const CLI::App* at = &app; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* option : at->get_options()) {
      for (const std::string& name : option->get_lnames()) names.insert("--" + name);
    }
  }
  return names;
}

Words subcommand_names(const CLI::App& app) {
  Words names;
  for (const CLI::App* sub : app.get_subcommands({}))
    if (!sub->get_group().empty()) names.insert(sub->get_name());
  return names;
}

// The innermost command that was named.
const CLI::App& innermost(const CLI::App& root) {
  const CLI::App* app = &root;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return *app;
}

bool is_flag(const CLI::Option& option) { return option.get_expected_min() == 0; }

std::string without_line_breaks_around(const std::string& text) {
  const std::size_t begin = text.find_first_not_of('\n');
  return begin == std::string::npos ? std::string()
                                    : text.substr(begin, text.find_last_not_of('\n') - begin + 1);
}

Failure unknown_word(const CLI::App& app, const std::string& word) {
  const bool option = word.starts_with('-') && word != "-";
  const Words known = option ? option_names(app) : subcommand_names(app);
  const std::string name = option ? word.substr(0, word.find('=')) : word;
  const char* kind = option ? "option" : known.empty() ? "argument" : "command";
  std::string message = std::string("unknown ") + kind + " '" + name + "'";
  if (const auto meant = nearest(name, known)) message += ", did you mean '" + *meant + "'?";
  return Failure::usage(message).advise(full_name(app) + " --help");
}

}  // namespace

std::string HelpFormatter::make_help(const CLI::App* app, std::string,
                                     CLI::AppFormatMode mode) const {
  std::string text = make_description(app) + "\n" + make_usage(app, full_name(*app)) + "\n";
  text += without_line_breaks_around(app->get_footer()) + "\n";
  text += make_positionals(app);
  text += make_groups(app, mode);
  text += make_subcommands(app, mode);
  return text;
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  // A check adds its own description behind a colon.
  const std::string type = option->get_type_name();
  return is_flag(*option) || type.empty() ? std::string() : " " + type.substr(0, type.find(':'));
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  std::string text = option->get_description();
  if (option->get_required()) return text + " (required)";
  if (option->check_lname("help") || option->check_lname("version")) return text;
  if (is_flag(*option)) return text + " (default: off)";
  return text +
         " (default: " + (option->get_default_str().empty() ? "none" : option->get_default_str()) +
         ")";
}

void add_global_options(CLI::App& app, Context& context, const std::string& store_default) {
  app.set_help_flag("-h,--help", "this text");
  app.add_flag("--json", context.json, "one JSON document on standard output, also for errors");
  if (!store_default.empty())
    app.add_option("--store", context.store_url, "where the records are; see idem stores")
        ->type_name("URL")
        ->check(not_empty())
        ->default_str(store_default);
}

Failure usage_failure(const CLI::App& root, const CLI::ParseError& error) {
  const CLI::App* app = &root;
  while (true) {
    if (const auto rest = app->remaining(); !rest.empty()) return unknown_word(*app, rest.front());
    if (app->get_subcommands().empty()) break;
    app = app->get_subcommands().front();
  }
  std::string message = error.what();
  if (!subcommand_names(*app).empty()) {
    message = "which command?";
    for (const std::string& name : subcommand_names(*app)) message += " " + name;
  }
  return Failure::usage(message).advise(full_name(innermost(root)) + " --help");
}

std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : full_name(*parent) + " " + app.get_name();
}

}  // namespace idem::cli
