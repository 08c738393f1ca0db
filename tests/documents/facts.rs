//! Facts that documents repeat from the code: modules, options, variables, bounds, codes, routes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use blackboard::auth::Scope;
use blackboard::board::{COMMIT_KINDS, Code, PromptFormat};
use blackboard::commands::Cli;
use blackboard::http::Problem;
use blackboard_thumbnail::{IMAGE_NAMES, IMAGE_TYPES};
use clap::{Command, CommandFactory as _};

use crate::bounds::{constant, quantity};
use crate::{blocks, documents, files, is_table, root, spans};

/// Options in sentences that are not of `blackboard`, or only with a feature.
const OTHER_OPTIONS: [&str; 9] = [
    "--features",
    "--long",
    "--model",
    "--model-name",
    "--otlp-endpoint",
    "--retry-all-errors",
    "--script",
    "--upgrade",
    "--userns",
];

/// Routes of other servers that documents name, and files behind an ellipsis.
const OTHER_ROUTES: [&str; 2] = ["chat/completions", "agent-blackboard-0.1.0.tgz"];

pub(crate) fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).expect("a file of the repository")).into_owned()
}

/// The text of all files with one of these suffixes.
fn texts(folders: &[&str], suffixes: &[&str]) -> String {
    let pairs =
        folders.iter().flat_map(|folder| suffixes.iter().map(move |suffix| (folder, suffix)));
    pairs.flat_map(|(folder, suffix)| files(folder, suffix)).map(|path| read(&path)).collect()
}

/// The parts of a text that are words of letters, digits and `extra`.
fn words<'a>(text: &'a str, extra: &'a [char]) -> impl Iterator<Item = &'a str> {
    text.split(move |c: char| !(c.is_ascii_alphanumeric() || extra.contains(&c)))
}

/// Whether the name is defined in a text.
fn defines(text: &str, name: &str) -> bool {
    let kinds = ["fn", "struct", "enum", "trait", "type", "const", "static", "mod"];
    kinds.iter().any(|kind| {
        let definition = format!("{kind} {name}");
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        text.split(&definition).skip(1).any(ends)
    })
}

/// The folder of a module at the top: of its crate's sources, or in `src`.
fn home(module: &str) -> PathBuf {
    let of_crate = root().join("crates").join(module.replace('_', "-")).join("src");
    if of_crate.is_dir() { of_crate } else { root().join("src").join(module) }
}

/// Whether a path such as `board::stored::BaseReader` leads somewhere: modules down the folders, then a name that is
/// defined below the last of them, then any of its members.
fn leads(path: &str) -> bool {
    let path = path.trim_end_matches("()");
    let names: Vec<&str> = path.split("::").collect();
    let (mut folder, mut depth) = (home(names.first().copied().unwrap_or_default()), 1);
    while let Some(name) = names.get(depth) {
        let next = folder.join(name);
        if !next.is_dir() && !next.with_extension("rs").is_file() {
            break;
        }
        (folder, depth) = (next, depth + 1);
    }
    let below = files(&folder.strip_prefix(root()).unwrap().display().to_string(), "rs");
    let own = folder.with_extension("rs");
    let text: String =
        below.iter().chain(own.is_file().then_some(&own)).map(|path| read(path)).collect();
    match names.get(depth..).unwrap_or_default() {
        [] => true,
        [name] => defines(&text, name),
        // A type; a module would have its folder or file.
        [name, member] if name.starts_with(|c: char| c.is_ascii_uppercase()) => {
            defines(&text, name) && words(&text, &['_']).any(|word| word == *member)
        }
        _ => false,
    }
}

#[test]
fn the_modules_that_the_documents_name_exist() {
    let entries = ["src", "crates"].map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let top: BTreeSet<String> = entries
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().replace('-', "_"))
        .collect();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (place, text) in documents() {
        for span in spans(&text) {
            let is_path = span.chars().all(|c| c.is_alphanumeric() || "_:()".contains(c));
            let first = span.split("::").next().unwrap_or_default();
            if is_path && span.contains("::") && top.contains(first) {
                count += 1;
                if !leads(&span) {
                    wrong.push(format!("{}: {span}", place.display()));
                }
            }
        }
    }
    assert!(count > 30, "only {count} modules were found");
    assert!(wrong.is_empty(), "no such modules or names:\n{}", wrong.join("\n"));
}

#[test]
fn the_architecture_has_every_module_on_its_map() {
    let text = read(&root().join("src/ARCHITECTURE.md"));
    let code = read(&root().join("src/lib.rs"));
    let code: Vec<&str> = code.lines().filter(|line| !line.starts_with("//")).collect();
    let code = code.join("\n");
    let named = ["mod ", " as "].into_iter().flat_map(|before| code.split(before).skip(1));
    let modules: Vec<&str> = named.filter_map(|rest| rest.split([';', ',']).next()).collect();
    assert!(modules.len() > 15, "only {modules:?} were found");
    let missing: Vec<&str> =
        modules.into_iter().filter(|name| !text.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "{missing:?} have no row");
}

/// All options of all commands, and the variables that set them.
fn options() -> (BTreeSet<String>, BTreeSet<String>) {
    fn walk(command: &Command, names: &mut BTreeSet<String>, variables: &mut BTreeSet<String>) {
        for argument in command.get_arguments() {
            names.extend(argument.get_long().map(|long| format!("--{long}")));
            variables.extend(argument.get_env().map(|name| name.to_string_lossy().into_owned()));
        }
        command.get_subcommands().for_each(|nested| walk(nested, names, variables));
    }
    let (mut names, mut variables) = (BTreeSet::new(), BTreeSet::new());
    let mut top = Cli::command();
    top.build();
    walk(&top, &mut names, &mut variables);
    (names, variables)
}

#[test]
fn the_options_that_the_documents_name_exist() {
    let known = options().0;
    let (mut wrong, mut count) = (Vec::new(), 0);
    // The guide of hosts has the options of hosts.
    let own = documents().into_iter().filter(|(place, _)| !place.ends_with("hosts.md"));
    for (place, text) in own {
        for span in spans(&text) {
            let name = span.split([' ', '=']).next().unwrap_or_default();
            if name.starts_with("--") && name.len() > 2 {
                count += 1;
                if !known.contains(name) && !OTHER_OPTIONS.contains(&name) {
                    wrong.push(format!("{}: {name}", place.display()));
                }
            }
        }
    }
    assert!(count > 100, "only {count} options were found");
    assert!(wrong.is_empty(), "no such options:\n{}", wrong.join("\n"));
}

#[test]
fn the_variables_that_the_documents_name_are_read() {
    let known = options().1;
    let code = texts(
        &[
            "src",
            "crates",
            "tests",
            "benches",
            "clients",
            "fuzz",
            "packaging",
            ".ci",
            "docs/images",
        ],
        &["rs", "py", "ts", "mjs", "yaml", ""],
    );
    let read_by_name: BTreeSet<&str> = words(&code, &['_']).collect();
    let others = ["docker", "packaging"].iter().flat_map(|folder| {
        ["yaml", "service", ""].iter().flat_map(move |suffix| files(folder, suffix))
    });
    let others = others.map(|path| (path.clone(), read(&path)));
    let mut wrong = Vec::new();
    for (place, text) in documents().into_iter().chain(others) {
        for name in words(&text, &['_']) {
            let Some(rest) = name.strip_prefix("BLACKBOARD_").filter(|rest| !rest.is_empty())
            else {
                continue;
            };
            // The drop-in for Python makes its variables from its settings' names.
            let setting = rest.to_lowercase();
            if !known.contains(name)
                && !read_by_name.contains(name)
                && !read_by_name.contains(setting.as_str())
            {
                wrong.push(format!("{}: {name}", place.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "no such variables:\n{}", wrong.join("\n"));
}

#[test]
fn the_settings_have_the_defaults_that_they_have() {
    let text = read(&root().join("docs/reference/settings.md"));
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("| `--"))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let mut top = Cli::command();
    top.build();
    let serve = top.find_subcommand("serve").expect("serve");
    let mut wrong = Vec::new();
    for argument in serve.get_arguments().filter(|argument| !argument.is_hide_set()) {
        let Some(long) =
            argument.get_long().filter(|long| !["help", "print-config"].contains(long))
        else {
            continue;
        };
        let span = format!("`--{long}`");
        let Some(row) = rows.iter().find(|row| row.get(1).is_some_and(|cell| cell.contains(&span)))
        else {
            wrong.push(format!("--{long} has no row"));
            continue;
        };
        let default = argument.get_default_values().first().map(|value| value.to_string_lossy());
        let stated = row.get(2).copied().unwrap_or_default();
        let is_stated = match default.as_deref() {
            Some("false") => stated == "off",
            Some(value) => stated == format!("`{value}`") || stated == value,
            None => stated.is_empty() || stated == "off",
        };
        if !is_stated {
            wrong.push(format!("--{long}: {stated} for {default:?}"));
        }
    }
    assert!(rows.len() > 20 && wrong.is_empty(), "in settings.md:\n{}", wrong.join("\n"));
}

#[test]
fn the_limits_are_those_of_the_code() {
    let text = read(&root().join("docs/reference/limits.md"));
    let (mut wrong, mut count) = (Vec::new(), 0);
    for row in text.lines().filter(|line| line.starts_with("| ")) {
        let spans: Vec<&str> = row.split('`').collect();
        let code: String = spans
            .iter()
            .filter(|span| span.starts_with("src/") || span.starts_with("crates/"))
            .map(|file| read(&root().join(file)))
            .collect();
        for pair in spans.windows(2).skip(1).step_by(2) {
            let [name, after] = pair else { continue };
            let is_constant =
                name.contains('_') && name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
            let Some(stated) = is_constant.then(|| quantity(after)).flatten() else { continue };
            count += 1;
            let real = constant(name, &code);
            if real != Some(stated) {
                wrong.push(format!("{name}: {stated} is stated, {real:?} holds"));
            }
        }
    }
    assert!(count > 60, "only {count} limits were found");
    assert!(wrong.is_empty(), "in limits.md:\n{}", wrong.join("\n"));
}

#[test]
fn the_alerts_of_the_operations_are_those_of_the_rules() {
    let rules = read(&root().join("docker/prometheus/rules.yaml"));
    let rules: BTreeSet<&str> =
        rules.split("alert: ").skip(1).filter_map(|rest| rest.lines().next()).collect();
    let text = read(&root().join("docs/operations.md"));
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `Blackboard")?.split_once('`'));
    let rows: BTreeSet<String> = rows.map(|(name, _)| format!("Blackboard{name}")).collect();
    assert_eq!(rows.iter().map(String::as_str).collect::<BTreeSet<_>>(), rules);
}

#[test]
fn the_operations_have_each_status_of_readyz() {
    let code = read(&root().join("crates/http/src/ops/health.rs"));
    let by_health =
        code.lines().filter_map(|line| line.split_once("Health::")?.1.split_once("=> \""));
    let mut statuses: Vec<&str> =
        by_health.filter_map(|(_, rest)| rest.split('"').next()).collect();
    statuses.push("degraded");
    let text = read(&root().join("docs/operations.md"));
    let missing: Vec<_> =
        statuses.iter().filter(|status| !text.contains(&format!("`{status}`"))).collect();
    assert!(statuses.len() == 4 && missing.is_empty(), "{missing:?} of {statuses:?}");
}

#[test]
fn the_errors_are_those_of_the_code() {
    let status = |code: Code| Problem::new(code, "").status().as_u16();
    let mut codes = Code::ALL.to_vec();
    codes.sort_by_key(|code| status(*code));
    let row =
        |code: &Code| format!("| {} | `{}` | {} |\n", status(*code), code.as_str(), code.meaning());
    let rows: String = codes.iter().map(row).collect();
    is_table("docs/reference/errors.md", "| status | code | meaning and remedy |", &rows);
}

#[test]
fn the_stored_changes_are_those_of_the_code() {
    let text = read(&root().join("docs/storage-format.md"));
    let (_, text) = text.split_once("Changes are\n").expect("the list of changes");
    let (list, _) = text.split_once(". They are").expect("its end");
    let stated: BTreeSet<&str> = list.split('`').skip(1).step_by(2).collect();
    let kinds =
        COMMIT_KINDS.into_iter().filter(|kind| !["transaction", "unchanged"].contains(kind));
    assert_eq!(stated, kinds.collect());
}

#[test]
fn the_formats_of_prompts_are_those_of_the_code() {
    let text = read(&root().join("docs/guide/prompts.md"));
    let (_, table) = text.split_once("| `format` |").expect("the table of formats");
    let (table, _) = table.split_once("\n\n").expect("its end");
    let rows = table.lines().filter_map(|row| row.strip_prefix("| `")?.split_once('`'));
    let stated: Vec<&str> = rows.map(|(name, _)| name).collect();
    let names = PromptFormat::NAMED.map(|(name, _)| name);
    assert_eq!(stated, names);
    let page = read(&root().join("crates/ui/page/views/prompt.js"));
    let tabs = page.lines().find(|line| line.starts_with("const FORMATS =")).expect("the tabs");
    let shown: Vec<&str> =
        tabs.split("[\"").skip(1).filter_map(|tab| Some(tab.split_once('"')?.0)).collect();
    assert_eq!(shown, names);
}

#[test]
fn the_scopes_are_those_of_the_code() {
    let row = |scope: Scope| format!("| `{scope}` | {} |\n", scope.meaning());
    let rows: String = Scope::ALL.map(row).concat();
    is_table("docs/guide/access.md", "| scope | allows |", &rows);
}

#[test]
fn the_kinds_of_images_are_those_of_the_code() {
    let kinds = IMAGE_NAMES.iter().zip(IMAGE_TYPES);
    let rows: String = kinds.map(|(name, (kind, _))| format!("| {name} | `{kind}` |\n")).collect();
    is_table("docs/reference/screenshots.md", "| kind | `Content-Type` |", &rows);
    let page = read(&root().join("crates/ui/page/core/prompt/parts.js"));
    let shown = IMAGE_TYPES.map(|(kind, _)| kind.trim_start_matches("image/")).join("|");
    assert!(page.contains(&format!("^data:image\\/({shown});base64,")), "{shown}");
    let python = read(&root().join("clients/python/src/agent_blackboard/images.py"));
    for (kind, _) in IMAGE_TYPES {
        assert!(python.contains(&format!("\"{kind}\"")), "the Python client knows no {kind}");
    }
}

/// The paths of the API, as lists of their parts.
fn routes() -> Vec<Vec<String>> {
    let document = read(&root().join("openapi/openapi.yaml"));
    let paths = document.lines().filter_map(|line| line.strip_prefix("  /")?.strip_suffix(':'));
    paths.map(|path| path.split('/').map(str::to_owned).collect()).collect()
}

/// Whether a documented path is a route, its end, or within the state. One from `v1` on is a whole route.
fn is_route(path: &str, routes: &[Vec<String>]) -> bool {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    // A path within the state may have any number of keys.
    let within_state = parts.iter().position(|part| *part == "state");
    let parts = within_state.and_then(|at| parts.get(..=at)).unwrap_or(&parts);
    let is_whole = parts.first() == Some(&"v1");
    routes.iter().any(|route| {
        let left_out =
            route.len().checked_sub(parts.len()).filter(|count| !is_whole || *count == 0);
        left_out.and_then(|count| route.get(count..)).is_some_and(|end| is_end(parts, end))
    })
}

fn is_end(stated: &[&str], end: &[String]) -> bool {
    let is_name = |part: &String| part.starts_with('{');
    stated.iter().zip(end).enumerate().all(|(at, (stated, part))| {
        let is_placeholder = stated.starts_with(['{', '$', '…']) || *stated == "L";
        let is_number = stated.chars().all(|c| c.is_ascii_digit());
        // A name is known by what stands before it.
        let before = at.checked_sub(1).and_then(|before| end.get(before));
        let follows = before.is_some_and(|before| !is_name(before));
        is_placeholder || stated == part || is_name(part) && (is_number || follows)
    })
}

#[test]
fn a_path_that_is_no_route_is_found() {
    let routes = routes();
    let known = |path| is_route(path, &routes);
    assert!(known("requests/3") && known("agents/HostAgent/memory") && known("state/a/b"));
    assert!(!known("requets") && !known("nonsense/state") && !known("agents/HostAgent/memories"));
    assert!(known("v1/sessions/demo/prompt") && known("v1/requests"));
    assert!(known("v1/sessions/{session}") && !known("v1/foo"));
    assert!(!known("v1/requests/3") && !known("v1/session/demo"));
}

#[test]
fn the_routes_that_the_documents_name_exist() {
    let routes = routes();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (place, text) in
        documents().into_iter().filter(|(place, _)| place != Path::new("CHANGELOG.md"))
    {
        let code = [blocks(&text).concat(), spans(&text).join("\n")].concat();
        for start in ["/v1/", "…/", "$B/"] {
            for (at, _) in code.match_indices(start).filter(|(at, _)| !code[..*at].ends_with('/')) {
                let rest = &code[at + start.len()..];
                let end = rest.find(|c: char| c.is_whitespace() || "?\"'`),#\\*".contains(c));
                let path = rest[..end.unwrap_or(rest.len())].trim_end_matches(['.', ':', ';']);
                count += 1;
                let stated = if start == "/v1/" { format!("v1/{path}") } else { path.to_owned() };
                if !is_route(&stated, &routes) && !OTHER_ROUTES.contains(&path) {
                    wrong.push(format!("{}: {start}{path}", place.display()));
                }
            }
        }
    }
    assert!(count > 100, "only {count} routes were found");
    assert!(wrong.is_empty(), "no such routes:\n{}", wrong.join("\n"));
}

#[test]
fn the_blocks_for_a_shell_are_read_by_a_shell() {
    let mut wrong = Vec::new();
    for (place, text) in documents() {
        let marked = text.split("```").skip(1).step_by(2);
        for block in
            marked.filter_map(|block| block.strip_prefix("sh\n").or(block.strip_prefix("bash\n")))
        {
            let mut shell = std::process::Command::new("bash");
            let output = shell.args(["-n", "-c", block]).output().expect("bash");
            if !output.status.success() {
                wrong.push(format!(
                    "{}: {}",
                    place.display(),
                    String::from_utf8_lossy(&output.stderr)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_of_token_weights_is_the_codes() {
    let code = fs::read_to_string(root().join("crates/prompt/src/tokens/weights.rs")).unwrap();
    let table = fs::read_to_string(root().join("docs/reference/tokens.md")).unwrap();
    let numbers = |row: &str, between: &str| -> Vec<u32> {
        row.split(between).filter_map(|cell| cell.trim().parse().ok()).collect()
    };
    let rows = code.lines().filter_map(|line| line.trim().strip_prefix('[')?.split_once("], // "));
    let mut code: Vec<_> =
        rows.map(|(row, name)| (name.trim(), numbers(row, ","))).collect::<Vec<_>>();
    let base64 = fs::read_to_string(root().join("crates/prompt/src/tokens/weights.rs")).unwrap();
    let (_, base64) = base64.split_once("BASE64: [u16; 4] = [").unwrap();
    code.push(("character of base64", numbers(base64.trim_end_matches("];\n"), ",")));
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let documented: Vec<_> = rows
        .map(|(name, row)| (name.trim(), numbers(row, "|")))
        .filter(|(_, row)| row.len() == 4)
        .collect();
    assert_eq!(documented, code);
}

#[test]
fn the_server_has_the_name_and_purpose_of_its_package() {
    let package =
        [env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"), env!("CARGO_PKG_DESCRIPTION")];
    assert_eq!(
        [blackboard::api::NAME, blackboard::api::VERSION, blackboard::api::PURPOSE],
        package
    );
}
