//! Plain data as Ruby objects. On a Ruby thread that holds the GVL.

use crate::interrupts::Stretch;
use magnus::{Error, Ruby, Value, prelude::*};
use rperf_format::answers::Data;

/// What JSON calls an object is a Hash with Symbols as keys. Other threads run in between.
pub fn to_ruby(ruby: &Ruby, data: &Data) -> Result<Value, Error> {
    to_ruby_by_stretches(ruby, data, &mut Stretch::begin())
}

fn to_ruby_by_stretches(ruby: &Ruby, data: &Data, stretch: &mut Stretch) -> Result<Value, Error> {
    Ok(match data {
        Data::Null => ruby.qnil().as_value(),
        Data::Bool(true) => ruby.qtrue().as_value(),
        Data::Bool(false) => ruby.qfalse().as_value(),
        Data::Integer(number) => match u64::try_from(*number) {
            Ok(number) => ruby.integer_from_u64(number).as_value(),
            Err(_) => {
                let number = i64::try_from(*number).unwrap_or(i64::MIN);
                ruby.integer_from_i64(number).as_value()
            }
        },
        Data::Number(number) => ruby.float_from_f64(*number).as_value(),
        Data::Text(text) => ruby.str_new(text).as_value(),
        Data::List(items) => {
            let array = ruby.ary_new_capa(items.len());
            for item in items {
                stretch.end_if_long()?;
                array.push(to_ruby_by_stretches(ruby, item, stretch)?)?;
            }
            array.as_value()
        }
        Data::Fields(fields) => {
            let hash = ruby.hash_new();
            for (name, value) in fields {
                let value = to_ruby_by_stretches(ruby, value, stretch)?;
                hash.aset(ruby.to_symbol(*name), value)?;
            }
            hash.as_value()
        }
    })
}
