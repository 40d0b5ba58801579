//! Value types in pprof: the sample types, the default one, and the period, which says how much one
//! sample stands for. Called by writer and reader; any thread.

use super::message::Message;
use super::proto;
use super::texts::Texts;
use crate::ReadError;
use rperf_model::{Column, FREQUENCIES, Meta, Period, Schema, ValueType};

/// More columns than any tool writes. Each makes every sample larger.
const MAX_TYPES: usize = 1_000;

/// Bytes of all names and units together: many types may name one long string.
const MAX_TEXT: usize = 1 << 16;

/// The unit of our own times.
const NANOSECONDS: &str = "nanoseconds";

/// The schema of a profile that is being read: its sample types, all of them. As pprof
/// has it, the default is the first one with the default's name, or else the last.
pub(crate) fn schema(message: &Message<'_>, texts: &Texts<'_>) -> Result<Schema, ReadError> {
    let sample_types = &message.sample_types;
    if sample_types.len() > MAX_TYPES {
        return Err(too_large(MAX_TYPES, "sample types"));
    }
    let mut len = 0;
    for sample_type in sample_types {
        len += texts.bytes(sample_type.r#type)?.len() + texts.bytes(sample_type.unit)?.len();
    }
    if len > MAX_TEXT {
        return Err(too_large(MAX_TEXT, "bytes in the names of sample types"));
    }
    let types: Result<Vec<_>, _> = sample_types
        .iter()
        .map(|&sample_type| value_type(sample_type, texts))
        .collect();
    let types = types?;
    let default = texts.get(message.default_sample_type)?;
    let named = types
        .iter()
        .position(|value_type| !default.is_empty() && value_type.name == default);
    let default = named.unwrap_or(types.len().saturating_sub(1));
    Schema::new(types, Column(default)).ok_or_else(|| ReadError::damaged("it has no sample types"))
}

/// What the default sample type is called in a profile that is being written; empty if
/// it is the last one and its name leads to another one.
pub(crate) fn default_name(schema: &Schema) -> &str {
    let name = &schema.default_type().name;
    let is_last = schema.default_column().0 + 1 == schema.len();
    if is_last && schema.find(name) != Some(schema.default_column()) {
        ""
    } else {
        name
    }
}

/// Sets the frequency to what the period of `message` makes of it, if that is a time.
/// The period is returned, if there is one.
pub(crate) fn read_period(
    message: &Message<'_>,
    texts: &Texts<'_>,
    meta: &mut Meta,
) -> Result<Option<Period>, ReadError> {
    if message.period_type.is_none() && message.period == 0 {
        return Ok(None);
    }
    let value_type = value_type(message.period_type.unwrap_or_default(), texts)?;
    let value = message.period;
    if let Some(ns) = to_ns(value, &value_type.unit).filter(|ns| *ns > 0) {
        meta.frequency = frequency(1_000_000_000_u64.saturating_add(ns / 2) / ns);
    }
    Ok(Some(Period { value_type, value }))
}

/// The period to write: the profile's own, or the one that its frequency makes.
pub(crate) fn period(meta: &Meta, schema: &Schema) -> Option<Period> {
    meta.period.clone().or_else(|| {
        // Some tools refuse profiles without a period.
        (meta.frequency > 0).then(|| Period {
            value_type: ValueType::new(&schema.default_type().name, NANOSECONDS),
            value: 1_000_000_000 / i64::from(meta.frequency),
        })
    })
}

/// A frequency that a profile may have; 0, not known, if it may not.
pub(crate) fn frequency(hz: u64) -> u32 {
    let hz = u32::try_from(hz).ok();
    hz.filter(|hz| FREQUENCIES.contains(hz)).unwrap_or(0)
}

fn value_type(value_type: proto::ValueType, texts: &Texts<'_>) -> Result<ValueType, ReadError> {
    let (name, unit) = (texts.get(value_type.r#type)?, texts.get(value_type.unit)?);
    Ok(ValueType::new(name, unit))
}

/// `number` of `unit` in ns, if that is a unit of time.
fn to_ns(number: i64, unit: &str) -> Option<u64> {
    let unit_ns = match unit {
        NANOSECONDS | "nanosecond" | "ns" => 1,
        "microseconds" | "microsecond" | "us" | "µs" => 1_000,
        "milliseconds" | "millisecond" | "ms" => 1_000_000,
        "seconds" | "second" | "s" => 1_000_000_000,
        _ => return None,
    };
    Some(u64::try_from(number).ok()?.saturating_mul(unit_ns))
}

fn too_large(limit: usize, unit: &'static str) -> ReadError {
    ReadError::TooLarge {
        limit: limit as u64,
        unit,
    }
}

#[cfg(test)]
mod tests;
