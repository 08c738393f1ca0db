//! The version, which stands in Cargo.toml: files that cannot take it from there repeat it, and are compared.

use crate::facts::read;
use crate::root;

/// Files that repeat it, each with the text before it. Packages of the server take it from the binary.
const REPEATED: [(&str, &str); 10] = [
    ("clients/python/src/agent_blackboard/_version.py", "__version__ = \""),
    ("clients/typescript/package.json", "\"name\": \"agent-blackboard\",\n  \"version\": \""),
    ("clients/typescript/package-lock.json", "\"name\": \"agent-blackboard\",\n  \"version\": \""),
    (
        "clients/typescript/package-lock.json",
        "\"name\": \"agent-blackboard\",\n      \"version\": \"",
    ),
    ("docker/compose.yaml", "image: blackboard:"),
    ("docker/compose.tls.yaml", "image: blackboard:"),
    ("docker/compose.cluster.yaml", "image: blackboard:"),
    ("docker/kubernetes/deployment.yaml", "/blackboard:"),
    ("docs/guide/install.md", "blackboard-server_"),
    ("docs/guide/install.md", " blackboard-"),
];

#[test]
fn each_file_that_repeats_the_version_has_this_one() {
    let version = env!("CARGO_PKG_VERSION");
    let mut wrong = Vec::new();
    for (file, before) in REPEATED {
        let text = read(&root().join(file));
        let mut stated = text.split(before).skip(1).peekable();
        if stated.peek().is_none() {
            wrong.push(format!("{file}: nothing after {before:?}"));
        }
        // Names of packages and images go on otherwise.
        let numbers = stated.filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        for rest in numbers.filter(|rest| !rest.starts_with(version)) {
            let line = rest.lines().next().unwrap_or_default();
            wrong.push(format!("{file}: {before}{line}"));
        }
    }
    assert!(wrong.is_empty(), "the version is {version}:\n{}", wrong.join("\n"));
}
