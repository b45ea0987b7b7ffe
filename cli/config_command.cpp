// idem config show, check, schema: what the configuration is, and where each value comes from.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "commands.hpp"
#include "config_options.hpp"
#include "idem/store_url.hpp"
#include "options.hpp"

namespace idem::cli {

namespace {

struct ShowOptions {
  ConfigOptions config;
  bool origin = false;
};
struct NoOptions {};

ExitCode show(const ShowOptions& options, Context& context) {
  const Config config = read_config(options.config, context);
  Json document{{"settings", Json::array()}};
  std::size_t width = 0;
  for (const Setting& one : config.settings) {
    width = std::max(width, one.name.size() + one.value.size() + 2);
    Json setting{{"name", one.name}, {"value", one.value}, {"origin", to_string(one.origin)}};
    if (!one.where.empty()) setting["where"] = one.where;
    document["settings"].push_back(std::move(setting));
  }
  if (context.json) {
    print_document(document);
    return ExitCode::done;
  }
  // One long value must not push every origin off the screen.
  width = std::min<std::size_t>(width, 56);
  std::string text;
  for (const Setting& one : config.settings) {
    const std::string value = one.name + ": " + one.value;
    if (options.origin) {
      text += fmt::format("{:<{}}  # {}{}{}\n", value, width, to_string(one.origin),
                          one.where.empty() ? "" : " ", one.where);
    } else {
      text += value + "\n";
    }
  }
  print_text(text);
  return ExitCode::done;
}

ExitCode check(const ShowOptions& options, Context& context) {
  const Config config = read_config(options.config, context);
  const auto set = std::count_if(config.settings.begin(), config.settings.end(),
                                 [](const Setting& one) { return one.origin != Origin::built_in; });
  if (context.json) {
    print_document(Json{{"outcome", "valid"}, {"settings", set}});
  } else {
    print_text(fmt::format("valid: {} setting{}\n", set, set == 1 ? "" : "s"));
  }
  return ExitCode::done;
}

ExitCode schema(const NoOptions&, Context&) {
  print_text(config_schema());
  return ExitCode::done;
}

}  // namespace

void add_config(CLI::App* app, ConfigOptions& into) {
  app->add_option("--config", into.file, "YAML file")
      ->check(not_empty())
      ->type_name("FILE")
      ->default_str("IDEM_CONFIG");
  app->add_option("--set", into.sets, "a setting, over file and environment; may be repeated")
      ->type_name("NAME=VALUE")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->expected(1)
      ->allow_extra_args(false);
}

Config read_config(const ConfigOptions& options, const Context& context,
                   std::vector<ConfigFlag> flags) {
  ConfigSources sources;
  sources.file = options.file;
  if (const char* named = std::getenv("IDEM_CONFIG"); sources.file.empty() && named != nullptr) {
    sources.file = named;
  }
  if (!context.store_url.empty()) flags.push_back({"store", context.store_url, "--store"});
  for (const std::string& set : options.sets) {
    const std::size_t equals = set.find('=');
    if (equals == std::string::npos) {
      throw Failure::usage("--set " + set + ": write it like --set redis_ttl=30s");
    }
    flags.push_back({set.substr(0, equals), set.substr(equals + 1)});
  }
  sources.flags = std::move(flags);
  sources.check_store = [](const StoreUrl& url) -> result<void> {
    if (auto known = backend_in_registry(url, backends()); !known) return known.error();
    return {};
  };
  auto config = load_config(sources);
  // The faults name their places themselves.
  if (!config) throw Failure::usage(config.error().message).plain();
  return std::move(*config);
}

StoreChoice configured_store(const Config& config) {
  if (config.store.empty()) {
    throw Failure::usage("no store is named")
        .advise("idem serve --store sqlite:idem.db, or store: in the configuration");
  }
  StoreChoice choice;
  choice.url = config.store;
  for (const Setting& one : config.settings) {
    if (one.name == "store") choice.from = one.where + " (" + one.value + ")";
  }
  return choice;
}

void add_config_commands(CLI::App& root, Context& context) {
  CLI::App* family = root.add_subcommand("config", "Show and check the configuration");
  family->set_help_flag("-h,--help", "this text");
  family->require_subcommand(1);
  family->footer(
      "Examples:\n  idem config show --origin\n  idem config schema >idem.schema.json\n");
  auto options = std::make_shared<ShowOptions>();
  CLI::App* leaf = add_leaf(
      *family, context, "show", "Print every setting",
      {"idem config show --origin", "idem config show --set redis_ttl=10s --set http.strict=true"});
  add_config(leaf, options->config);
  leaf->add_flag("--origin", options->origin, "also where each value comes from");
  on_run(leaf, context, options, show);

  options = std::make_shared<ShowOptions>();
  leaf =
      add_leaf(*family, context, "check", "Say whether the configuration is valid",
               {"printf 'idempotency: {redis_ttl: 20s}' > idem.yml && idem config check --config "
                "idem.yml"});
  add_config(leaf, options->config);
  on_run(leaf, context, options, check);

  leaf = add_leaf(*family, context, "schema", "Print the JSON Schema of the file, for editors",
                  {"idem config schema > idem.schema.json"}, kNoStore);
  on_run(leaf, context, std::make_shared<NoOptions>(), schema);
}

}  // namespace idem::cli
