#include "options.hpp"

#include "help.hpp"

namespace idem::cli {

CLI::App* add_leaf(CLI::App& parent, Context& context, const std::string& name,
                   const std::string& summary, const std::vector<std::string>& examples,
                   const std::string& store_default) {
  CLI::App* leaf = parent.add_subcommand(name, summary);
  std::string footer = "Examples:\n";
  for (const std::string& example : examples) footer += "  " + example + "\n";
  leaf->footer(footer);
  add_global_options(*leaf, context, store_default);
  return leaf;
}

CLI::Option* add_duration(CLI::App* app, const std::string& name, std::optional<Duration>& into,
                          const std::string& help, const std::string& shown) {
  return app
      ->add_option_function<std::string>(
          name,
          [&into, name](const std::string& text) {
            const auto parsed = parse_duration(text);
            if (!parsed) throw CLI::ValidationError(name, parsed.error().message);
            into = *parsed;
          },
          help)
      ->type_name("DURATION")
      ->default_str(shown);
}

CLI::Option* add_count(CLI::App* app, const std::string& name, std::optional<std::uint64_t>& into,
                       const std::string& help, const std::string& shown) {
  return app
      ->add_option_function<std::string>(
          name,
          [&into, name](const std::string& text) {
            const auto parsed = parse_count(text);
            if (!parsed) throw CLI::ValidationError(name, parsed.error().message);
            into = *parsed;
          },
          help)
      ->type_name("N")
      ->default_str(shown);
}

CLI::Option* add_positive(CLI::App* app, const std::string& name,
                          std::optional<std::uint64_t>& into, const std::string& help,
                          const std::string& shown) {
  return add_count(app, name, into, help, shown)
      ->check(CLI::Validator(
          [](const std::string& text) {
            const auto parsed = parse_count(text);
            return parsed && *parsed == 0 ? std::string("must be at least 1") : std::string();
          },
          ""));
}

CLI::Validator not_empty() {
  return {[](const std::string& text) {
            return text.empty() ? std::string("is empty: leave the option out, or give a value")
                                : std::string();
          },
          ""};
}

CLI::Option* add_text(CLI::App* app, const std::string& name, std::string& into,
                      const std::string& help, const std::string& shown) {
  return app->add_option(name, into, help)->type_name("TEXT")->default_str(shown);
}

void add_key(CLI::App* app, KeyOptions& into) {
  app->add_option("KEY", into.key, "the idempotency key, 1 to 128 bytes")
      ->type_name("")
      ->required();
  add_scope(app, into);
}

void add_scope(CLI::App* app, KeyOptions& into) {
  add_text(app, "--biz", into.biz, "business type: keys of different types never meet", "none")
      ->check(not_empty());
  add_text(app, "--tenant", into.tenant, "tenant: keys of different tenants never meet", "none")
      ->check(not_empty());
}

}  // namespace idem::cli
