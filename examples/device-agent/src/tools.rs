//! A tool server for the examples: files, charts and programs in one directory, over MCP's standard streams.
//!
//! Programs are run without a shell, from a list, in a pipeline if need be; no argument leads out of the directory.

use std::fs;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Map, Value, json};

/// The output of a program that is returned, in bytes.
const OUTPUT_MAX: u64 = 64 << 10;

/// What the tools may touch.
#[derive(Debug)]
pub struct Sandbox {
    /// The directory.
    pub root: PathBuf,
    /// The programs.
    pub programs: Vec<String>,
}

/// Answers requests until the input ends.
pub fn serve(sandbox: &Sandbox) -> io::Result<()> {
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?).unwrap_or_default();
        let Some(id) = message.get("id") else { continue };
        let params = &message["params"];
        let result = match message["method"].as_str() {
            Some("initialize") => {
                json!({"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "sandbox", "version": env!("CARGO_PKG_VERSION")}})
            }
            Some("ping") => json!({}),
            Some("tools/list") => json!({"tools": listed()}),
            Some("tools/call") => called(sandbox, params),
            _ => Value::Null,
        };
        let answer = if result.is_null() {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "method not found"}})
        } else {
            json!({"jsonrpc": "2.0", "id": id, "result": result})
        };
        let mut output = io::stdout().lock();
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}

fn listed() -> Value {
    let tool = |name: &str, required: &[&str], optional: Value| {
        let strings = required.iter().map(|name| ((*name).to_owned(), json!({"type": "string"})));
        let mut properties: Map<String, Value> = strings.collect();
        properties.extend(optional.as_object().cloned().unwrap_or_default());
        json!({"name": name, "inputSchema": {"type": "object", "properties": properties,
            "required": required, "additionalProperties": false}})
    };
    json!([
        tool("execute_command", &["command"], json!({"timeout": {"type": "integer"}})),
        tool("list_files", &[], json!({})),
        tool("write_file", &["path", "text"], json!({"append": {"type": "boolean"}})),
        tool("delete_file", &["path"], json!({})),
        tool("draw_chart", &["path"], json!({"values": {"type": "array"}})),
    ])
}

fn called(sandbox: &Sandbox, params: &Value) -> Value {
    let given = &params["arguments"];
    let text = |name: &str| given[name].as_str().unwrap_or_default();
    let path = || sandbox.inside(text("path"));
    let is_new = path().is_ok_and(|path| !path.exists());
    let done = match params["name"].as_str() {
        Some("execute_command") => sandbox.execute(text("command"), given["timeout"].as_u64()),
        Some("list_files") => sandbox.files(),
        Some("delete_file") => path().and_then(fs::remove_file).map(|()| json!({})),
        Some("draw_chart") => path().and_then(|path| write(&path, &bars(&given["values"]), false)),
        Some("write_file") => {
            path().and_then(|path| write(&path, text("text"), given["append"] == json!(true)))
        }
        _ => Err(io::Error::other("no such tool")),
    };
    let content = |text: String| json!([{"type": "text", "text": text}]);
    match done {
        Err(error) => json!({"content": content(error.to_string()), "isError": true}),
        Ok(result) => {
            let undo = json!({"tool_name": "delete_file", "parameters": {"path": text("path")}});
            let meta = if is_new { json!({"undo": undo}) } else { json!({}) };
            json!({"content": content(result.to_string()), "structuredContent": result, "_meta": meta})
        }
    }
}

fn write(path: &Path, text: &str, append: bool) -> io::Result<Value> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.create(true).write(true).append(append).truncate(!append).open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(json!({"written": text.len()}))
}

fn bars(values: &Value) -> String {
    let heights = values.as_array().into_iter().flatten().filter_map(Value::as_f64);
    let bar = |(number, height): (usize, f64)| {
        format!("<rect x='{}' width='8' height='{height}'/>", number * 10)
    };
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg'>{}</svg>\n",
        heights.enumerate().map(bar).collect::<String>()
    )
}

impl Sandbox {
    /// Returns a path in the directory; a name that leads out of it is refused.
    fn inside(&self, name: &str) -> io::Result<PathBuf> {
        let path = Path::new(name);
        if path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Ok(self.root.join(path));
        }
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("'{name}' is not in the directory"),
        ))
    }

    fn files(&self) -> io::Result<Value> {
        let entries = fs::read_dir(&self.root)?.filter_map(Result::ok);
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(json!({"files": names}))
    }

    /// Runs a pipeline; each program ends after so many seconds.
    fn execute(&self, command: &str, seconds: Option<u64>) -> io::Result<Value> {
        let mut children: Vec<Child> = Vec::new();
        for stage in words(command).split(|word| word == "|") {
            let before = children.last_mut().and_then(|child| child.stdout.take());
            let input = before.map_or_else(Stdio::null, Stdio::from);
            children.push(self.spawn(stage, seconds.unwrap_or(30), input)?);
        }
        let (mut output, mut errors, mut code) = (String::new(), String::new(), None);
        for child in &mut children {
            // Only the last one still has its output.
            if let Some(stream) = child.stdout.take() {
                stream.take(OUTPUT_MAX).read_to_string(&mut output)?;
            }
            if let Some(stream) = child.stderr.take() {
                stream.take(OUTPUT_MAX).read_to_string(&mut errors)?;
            }
            code = child.wait()?.code();
        }
        if code == Some(0) {
            return Ok(json!({"exit_code": 0, "stdout": output, "stderr": errors}));
        }
        let code = code.map_or_else(|| "none".to_owned(), |code| code.to_string());
        Err(io::Error::other(format!("exit code {code}: {}", errors.trim())))
    }

    fn spawn(&self, stage: &[String], seconds: u64, input: Stdio) -> io::Result<Child> {
        let denied = |what: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        let Some((program, arguments)) = stage.split_first() else {
            return denied("a stage of the pipeline has no program".to_owned());
        };
        if !self.programs.contains(program) {
            return denied(format!("program '{program}' is not allowed"));
        }
        for argument in arguments {
            if argument.starts_with('-') && argument.contains('/') {
                return denied(format!("option '{argument}' has a path in it"));
            }
            self.inside(argument)?;
        }
        let mut command = Command::new("timeout");
        command.arg(seconds.to_string()).arg(program).args(arguments);
        command.current_dir(&self.root).env_clear().env("PATH", "/usr/bin:/bin");
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    }
}

/// Splits a command as a shell does, with quotes and nothing else.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut quote, mut open) = (vec![String::new()], None, false);
    for c in command.chars() {
        match (quote, c) {
            (Some(end), _) if c == end => quote = None,
            (None, '"' | '\'') => (quote, open) = (Some(c), true),
            (None, _) if c.is_whitespace() => {
                if words.last().is_some_and(|word| open || !word.is_empty()) {
                    words.push(String::new());
                }
                open = false;
            }
            _ => words.iter_mut().last().into_iter().for_each(|word| word.push(c)),
        }
    }
    if !open && words.last().is_some_and(String::is_empty) {
        words.pop();
    }
    words
}
