//! Settings that have been checked: the value of each, by its row of the table. Used by the files beside
//! this one; any thread.

use super::form::Value;
use super::setting::Setting;
use std::collections::BTreeMap;

/// All settings, each with a value that is allowed, if it has any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings(pub(super) BTreeMap<&'static str, Value>);

impl Settings {
    /// The value of `setting`, if it has one.
    pub fn get(&self, setting: &Setting) -> Option<&Value> {
        self.0.get(setting.name)
    }

    pub(super) fn put(&mut self, setting: &Setting, value: Option<Value>) {
        match value {
            Some(value) => _ = self.0.insert(setting.name, value),
            None => _ = self.0.remove(setting.name),
        }
    }

    pub(super) fn is_on(&self, setting: &Setting) -> bool {
        self.get(setting) == Some(&Value::Bool(true))
    }

    pub(super) fn word(&self, setting: &Setting) -> Option<&'static str> {
        match self.get(setting)? {
            Value::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(super) fn number(&self, setting: &Setting) -> u32 {
        match self.get(setting) {
            Some(Value::Integer(number)) => *number,
            _ => 0,
        }
    }

    pub(super) fn methods(&self, setting: &Setting) -> &[String] {
        match self.get(setting) {
            Some(Value::Methods(names)) => names,
            _ => &[],
        }
    }
}
