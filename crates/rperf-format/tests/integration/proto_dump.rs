//! A pprof message as text, for people who review golden files. Goes by the message
//! alone, not by our reader.

use crate::proto;
use prost::Message;
use std::fmt::{self, Write};

/// `message`, with texts in place of their indices.
pub fn dump(message: &proto::Profile) -> String {
    let mut text = String::new();
    Dump { message }
        .write(&mut text)
        .expect("strings take everything");
    text
}

struct Dump<'a> {
    message: &'a proto::Profile,
}

impl Dump<'_> {
    fn write(&self, out: &mut String) -> fmt::Result {
        let message = self.message;
        for sample_type in &message.sample_type {
            writeln!(out, "sample_type {}", self.value_type(sample_type))?;
        }
        let default = self.text(message.default_sample_type);
        writeln!(out, "default_sample_type {default}")?;
        if let Some(period_type) = &message.period_type {
            let period_type = self.value_type(period_type);
            writeln!(out, "period {} of {period_type}", message.period)?;
        }
        writeln!(out, "time_nanos {}", message.time_nanos)?;
        writeln!(out, "duration_nanos {}", message.duration_nanos)?;
        writeln!(out, "doc_url {}", self.text(message.doc_url))?;
        for &comment in &message.comment {
            writeln!(out, "comment {}", self.text(comment))?;
        }
        for mapping in &message.mapping {
            let filename = self.text(mapping.filename);
            writeln!(
                out,
                "mapping {} {filename} functions={} filenames={} lines={}",
                mapping.id, mapping.has_functions, mapping.has_filenames, mapping.has_line_numbers
            )?;
        }
        for function in &message.function {
            let name = self.text(function.name);
            let system_name = self.text(function.system_name);
            let filename = self.text(function.filename);
            let (id, line) = (function.id, function.start_line);
            writeln!(
                out,
                "function {id} {name} ({system_name}) {filename}:{line}"
            )?;
        }
        for location in &message.location {
            let lines: Vec<_> = location
                .line
                .iter()
                .map(|line| format!("function {} line {}", line.function_id, line.line))
                .collect();
            let (id, mapping) = (location.id, location.mapping_id);
            writeln!(out, "location {id} mapping {mapping}: {}", lines.join(", "))?;
        }
        for encoded in &message.sample {
            let sample = proto::Sample::decode(encoded.clone()).map_err(|_| fmt::Error)?;
            writeln!(out, "sample {:?} {:?}", sample.location_id, sample.value)?;
            for label in &sample.label {
                let key = self.text(label.key);
                if label.str == 0 {
                    let unit = self.text(label.num_unit);
                    writeln!(out, "  {key} = {} {unit}", label.num)?;
                } else {
                    writeln!(out, "  {key} = {}", self.text(label.str))?;
                }
            }
        }
        Ok(())
    }

    fn value_type(&self, value_type: &proto::ValueType) -> String {
        let (name, unit) = (self.text(value_type.r#type), self.text(value_type.unit));
        format!("{name}/{unit}")
    }

    fn text(&self, index: i64) -> String {
        let text = &self.message.string_table[index as usize];
        format!("{:?}", String::from_utf8_lossy(text))
    }
}
