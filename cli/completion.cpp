// Completion scripts, made from the option tree, so that they never fall behind it.
#include <fmt/core.h>

#include "commands.hpp"
#include "help.hpp"

namespace idem::cli {

namespace {

struct Node {
  std::string path;                // "idem key claim"
  std::vector<std::string> words;  // what may follow: commands, then options
};

bool hidden(const CLI::App& app) { return app.get_group().empty(); }

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

void collect(const CLI::App& app, std::vector<Node>& into) {
  Node node{full_name(app), {}};
  for (const CLI::App* sub : app.get_subcommands({}))
    if (!hidden(*sub)) node.words.push_back(sub->get_name());
  for (const std::string& option : options_of(app)) node.words.push_back(option);
  if (app.get_name() == "completion") node.words.insert(node.words.end(), {"bash", "zsh", "fish"});
  into.push_back(std::move(node));
  for (const CLI::App* sub : app.get_subcommands({}))
    if (!hidden(*sub)) collect(*sub, into);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string bash_script(const std::vector<Node>& nodes) {
  std::string cases;
  for (const Node& node : nodes)
    cases += fmt::format("    '{}') words='{}' ;;\n", node.path, joined(node.words));
  std::string paths;
  for (const Node& node : nodes)
    paths += fmt::format("{}'{}'", paths.empty() ? "" : "|", node.path);
  return fmt::format(R"(_idem() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} path=idem words='' word i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${{COMP_WORDS[i]}}
    [ "$word" = -- ] && return
    case "$path $word" in
      {}) path="$path $word" ;;
    esac
  done
  case "$path" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _idem idem
)",
                     paths, cases);
}

std::string fish_script(const CLI::App& app, std::vector<std::string> path) {
  std::string condition = "__fish_use_subcommand";
  if (!path.empty()) {
    condition = "__fish_seen_subcommand_from " + path.back();
    if (path.size() > 1) condition += "; and __fish_seen_subcommand_from " + path.front();
  }
  std::string text;
  for (const CLI::App* sub : app.get_subcommands({})) {
    if (hidden(*sub)) continue;
    std::string only = condition;
    if (!path.empty()) {  // a family: offer its commands until one is named
      only += "; and not __fish_seen_subcommand_from";
      for (const CLI::App* sibling : app.get_subcommands({})) only += " " + sibling->get_name();
    }
    text += fmt::format("complete -c idem -f -n '{}' -a {}\n", only, sub->get_name());
  }
  for (const std::string& option : options_of(app))
    text += fmt::format("complete -c idem -n '{}' -l {}\n", condition, option.substr(2));
  for (const CLI::App* sub : app.get_subcommands({})) {
    if (hidden(*sub)) continue;
    path.push_back(sub->get_name());
    text += fish_script(*sub, path);
    path.pop_back();
  }
  return text;
}

}  // namespace

std::string completion_script(const CLI::App& root, const std::string& shell) {
  if (shell == "fish") return fish_script(root, {});
  std::vector<Node> nodes;
  collect(root, nodes);
  const std::string bash = bash_script(nodes);
  if (shell == "bash") return bash;
  return "#compdef idem\nautoload -U +X compinit bashcompinit\n"
         "(( $+functions[compdef] )) || compinit -u\nbashcompinit\n" +
         bash;
}

}  // namespace idem::cli
