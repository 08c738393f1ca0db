//! JSON Patch (RFC 6902), with bounds on the size, depth and work of a hostile patch.

use std::borrow::Cow;

use super::scan;
use super::scan::Kind;
use super::tree::{Measure, Tree};
use super::{DEPTH_MAX, pointer, string};

/// The limit of moved bytes, as a multiple of the limit of copied bytes: moves only cost time.
const MOVES_PER_COPY: usize = 16;

/// A refusal of a patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch is not an array of operations.
    #[error("a JSON patch must be an array of operations")]
    NotAnArray,
    /// The target is deeper than [`DEPTH_MAX`].
    #[error("the target is nested more than {DEPTH_MAX} levels deep")]
    TargetTooDeep,
    /// The patched text is too long.
    #[error("the patched value has {bytes} bytes; the limit is {bytes_max}")]
    TooLarge {
        /// The length of the patched value.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// An operation cannot be carried out.
    #[error("operation {index}: {fault}")]
    Refused {
        /// The operation's index in the patch, from 0.
        index: usize,
        /// The fault.
        fault: Fault,
    },
}

/// A fault of one operation of a patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The operation is not a JSON object.
    #[error("an operation must be an object")]
    NotAnObject,
    /// The operation lacks a required member.
    #[error("member {name:?} is missing")]
    MissingMember {
        /// The member's name.
        name: &'static str,
    },
    /// A member that must be a string is something else.
    #[error("member {name:?} must be a string")]
    NotAString {
        /// The member's name.
        name: &'static str,
    },
    /// The `op` is not one of the six operations.
    #[error("operation {op:?} does not exist")]
    UnknownOperation {
        /// The `op`.
        op: String,
    },
    /// A path is not a JSON pointer.
    #[error("{pointer:?} is not a JSON pointer")]
    BadPointer {
        /// The text.
        pointer: String,
    },
    /// No value exists at a path, or none can be added there.
    #[error("{pointer:?} does not exist in the value")]
    PathMissing {
        /// The path.
        pointer: String,
    },
    /// The whole value would be removed.
    #[error("the root value cannot be removed")]
    RemovesAll,
    /// A `test` found another value.
    #[error("the value at {pointer:?} is not the tested one")]
    TestFailed {
        /// The pointer.
        pointer: String,
    },
    /// A value would move into one of its own children.
    #[error("a value cannot be moved into itself")]
    MovesIntoItself,
    /// The result would be deeper than [`DEPTH_MAX`].
    #[error("the result would be nested more than {DEPTH_MAX} levels deep")]
    TooDeep,
    /// The patch copies too much.
    #[error("the patch copies more than {bytes_max} bytes")]
    CopiesTooMuch {
        /// The limit.
        bytes_max: usize,
    },
    /// The patch moves too much.
    #[error("the patch moves more than {bytes_max} bytes")]
    MovesTooMuch {
        /// The limit.
        bytes_max: usize,
    },
}

/// Applies all operations of the patch to the target.
///
/// # Errors
/// [`PatchError`] for the first fault. Neither the result nor all copies together may exceed `bytes_max`.
pub fn json_patch(target: &str, patch: &str, bytes_max: usize) -> Result<String, PatchError> {
    if scan::kind(patch) != Kind::Array {
        return Err(PatchError::NotAnArray);
    }
    let mut document = Document {
        root: Tree::parse(target).map_err(|_| PatchError::TargetTooDeep)?,
        bytes_max,
        copied: 0,
        moved: 0,
    };
    for (index, text) in scan::elements(patch).enumerate() {
        Operation::read(text)
            .and_then(|operation| document.apply(operation))
            .map_err(|fault| PatchError::Refused { index, fault })?;
    }
    let mut out = String::with_capacity(target.len());
    document.root.write(&mut out);
    if out.len() > bytes_max {
        let bytes = out.len();
        return Err(PatchError::TooLarge { bytes, bytes_max });
    }
    Ok(out)
}

enum Operation<'a> {
    Add { path: Path, value: Tree<'a> },
    Remove { path: Path },
    Replace { path: Path, value: Tree<'a> },
    Move { from: Path, path: Path },
    Copy { from: Path, path: Path },
    Test { path: Path, value: Tree<'a> },
}

impl<'a> Operation<'a> {
    fn read(text: &'a str) -> Result<Self, Fault> {
        if scan::kind(text) != Kind::Object {
            return Err(Fault::NotAnObject);
        }
        let op = text_of(text, "op")?;
        let path = || Path::read(text, "path");
        let from = || Path::read(text, "from");
        let value = || {
            let value = member(text, "value")?;
            Tree::parse(value).map_err(|_| Fault::TooDeep)
        };
        Ok(match &*op {
            "add" => Self::Add { path: path()?, value: value()? },
            "remove" => Self::Remove { path: path()? },
            "replace" => Self::Replace { path: path()?, value: value()? },
            "move" => Self::Move { from: from()?, path: path()? },
            "copy" => Self::Copy { from: from()?, path: path()? },
            "test" => Self::Test { path: path()?, value: value()? },
            _ => {
                return Err(Fault::UnknownOperation { op: op.into_owned() });
            }
        })
    }
}

fn member<'a>(operation: &'a str, name: &'static str) -> Result<&'a str, Fault> {
    scan::get(operation, name).ok_or(Fault::MissingMember { name })
}

fn text_of<'a>(operation: &'a str, name: &'static str) -> Result<Cow<'a, str>, Fault> {
    let literal = member(operation, name)?;
    if scan::kind(literal) != Kind::String {
        return Err(Fault::NotAString { name });
    }
    Ok(string::decode(literal))
}

/// A pointer and its parsed names.
#[derive(PartialEq)]
struct Path {
    pointer: String,
    names: Vec<String>,
}

impl Path {
    fn read(operation: &str, member: &'static str) -> Result<Self, Fault> {
        let pointer = text_of(operation, member)?.into_owned();
        // No value is that deep. The check keeps a long pointer from being split into many names.
        if pointer.matches('/').count() > DEPTH_MAX {
            return Err(Fault::PathMissing { pointer });
        }
        match pointer::parse(&pointer) {
            Some(names) => {
                let names = names.into_iter().map(Cow::into_owned).collect();
                Ok(Self { pointer, names })
            }
            None => Err(Fault::BadPointer { pointer }),
        }
    }

    fn missing(&self) -> Fault {
        let pointer = self.pointer.clone();
        Fault::PathMissing { pointer }
    }
}

/// The value being patched.
struct Document<'a> {
    root: Tree<'a>,
    bytes_max: usize,
    copied: usize,
    moved: usize,
}

impl<'a> Document<'a> {
    fn apply(&mut self, operation: Operation<'a>) -> Result<(), Fault> {
        match operation {
            Operation::Add { path, value } => {
                let Measure { levels, .. } = value.measure();
                self.add(&path, value, levels)
            }
            Operation::Remove { path } => self.remove(&path).map(drop),
            Operation::Replace { path, value } => {
                fits(&path, value.measure().levels)?;
                *self.find(&path)? = value;
                Ok(())
            }
            Operation::Move { from, path } => self.relocate(&from, &path),
            Operation::Copy { from, path } => self.copy(&from, &path),
            Operation::Test { path, value } => {
                if self.find(&path)?.equals(&value) {
                    return Ok(());
                }
                let Path { pointer, .. } = path;
                Err(Fault::TestFailed { pointer })
            }
        }
    }

    fn relocate(&mut self, from: &Path, path: &Path) -> Result<(), Fault> {
        if from == path {
            return self.find(from).map(drop);
        }
        if path.names.starts_with(&from.names) {
            return Err(Fault::MovesIntoItself);
        }
        let value = self.remove(from)?;
        let Measure { bytes, levels } = value.measure();
        self.moved = self.moved.saturating_add(bytes);
        let bytes_max = self.bytes_max.saturating_mul(MOVES_PER_COPY);
        if self.moved > bytes_max {
            return Err(Fault::MovesTooMuch { bytes_max });
        }
        self.add(path, value, levels)
    }

    fn copy(&mut self, from: &Path, path: &Path) -> Result<(), Fault> {
        let value = self.find(from)?;
        let Measure { bytes, levels } = value.measure();
        self.copied = self.copied.saturating_add(bytes);
        let bytes_max = self.bytes_max;
        if self.copied > bytes_max {
            return Err(Fault::CopiesTooMuch { bytes_max });
        }
        let value = self.find(from)?.clone();
        self.add(path, value, levels)
    }

    fn add(&mut self, path: &Path, value: Tree<'a>, levels: usize) -> Result<(), Fault> {
        fits(path, levels)?;
        let Some((name, parents)) = path.names.split_last() else {
            self.root = value;
            return Ok(());
        };
        match find(&mut self.root, parents).ok_or_else(|| path.missing())? {
            Tree::Object(members) => {
                let mut literal = String::with_capacity(name.len() + 2);
                string::quote(name, &mut literal);
                members.set(literal.into(), value);
                Ok(())
            }
            Tree::Array(elements) if name == "-" => {
                elements.push(value);
                Ok(())
            }
            Tree::Array(elements) => pointer::index(name)
                .and_then(|index| elements.insert(index, value).ok())
                .ok_or_else(|| path.missing()),
            Tree::Scalar(_) => Err(path.missing()),
        }
    }

    fn remove(&mut self, path: &Path) -> Result<Tree<'a>, Fault> {
        let (name, parents) = path.names.split_last().ok_or(Fault::RemovesAll)?;
        let removed = match find(&mut self.root, parents) {
            Some(Tree::Object(members)) => members.remove(name),
            Some(Tree::Array(elements)) => pointer::index(name).and_then(|i| elements.remove(i)),
            Some(Tree::Scalar(_)) | None => None,
        };
        removed.ok_or_else(|| path.missing())
    }

    fn find(&mut self, path: &Path) -> Result<&mut Tree<'a>, Fault> {
        find(&mut self.root, &path.names).ok_or_else(|| path.missing())
    }
}

fn find<'t, 'a>(root: &'t mut Tree<'a>, names: &[String]) -> Option<&'t mut Tree<'a>> {
    names.iter().try_fold(root, |tree, name| match tree {
        Tree::Object(members) => members.get_mut(name),
        Tree::Array(elements) => elements.get_mut(pointer::index(name)?),
        Tree::Scalar(_) => None,
    })
}

/// Checks that a value with this many levels fits at this path.
fn fits(path: &Path, levels: usize) -> Result<(), Fault> {
    if path.names.len() + levels > DEPTH_MAX {
        return Err(Fault::TooDeep);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
