// idem stores, version, completion: the command about itself.
#include <fmt/core.h>

#include "commands.hpp"
#include "options.hpp"

namespace idem::cli {

namespace {

struct NoOptions {};
struct CompletionOptions {
  std::string shell;
  const CLI::App* root = nullptr;
};

ExitCode stores(const NoOptions&, Context& context) {
  Json document{{"stores", Json::array()}};
  std::string text;
  for (const Backend& backend : backends()) {
    document["stores"].push_back(Json{{"name", backend.name},
                                      {"schemes", backend.schemes},
                                      {"url_forms", backend.url_forms},
                                      {"summary", backend.summary},
                                      {"client", backend.client}});
    text += fmt::format("{}: {}\n", backend.name, backend.summary);
    for (const std::string& form : backend.url_forms) text += "  " + form + "\n";
    if (!backend.client.empty()) text += "  uses " + backend.client + "\n";
  }
  if (context.json) {
    print_document(document);
  } else {
    print_text(text);
  }
  return ExitCode::done;
}

ExitCode version(const NoOptions&, Context& context) {
  print_version(context.json);
  return ExitCode::done;
}

ExitCode completion(const CompletionOptions& options, Context& context) {
  const std::string script = completion_script(*options.root, options.shell);
  if (context.json) {
    print_document(Json{{"shell", options.shell}, {"script", script}});
  } else {
    print_text(script);
  }
  return ExitCode::done;
}

}  // namespace

void print_version(bool json) {
  if (json) {
    print_document(Json{{"version", IDEM_VERSION}, {"compiler", __VERSION__}});
  } else {
    print_text("idem " IDEM_VERSION "\n");
  }
}

void add_about_commands(CLI::App& root, Context& context) {
  CLI::App* leaf = add_leaf(root, context, "stores", "List the kinds of store and their URLs",
                            {"idem stores"}, kNoStore);
  on_run(leaf, context, std::make_shared<NoOptions>(), stores);
  leaf = add_leaf(root, context, "version", "Print the version", {"idem version"}, kNoStore);
  on_run(leaf, context, std::make_shared<NoOptions>(), version);

  auto options = std::make_shared<CompletionOptions>();
  options->root = &root;
  leaf = add_leaf(root, context, "completion", "Print a completion script for a shell",
                  {"source <(idem completion bash)"}, kNoStore);
  leaf->add_option("SHELL", options->shell, "bash, zsh or fish")
      ->type_name("")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  on_run(leaf, context, options, completion);
}

}  // namespace idem::cli
