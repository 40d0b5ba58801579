//! Tests of the formats from outside: what they write for a known profile, whether
//! it can be read back, and what the reader makes of damaged files.

mod callgrind;
mod collapsed;
mod dot;
mod foreign;
mod golden;
mod hostile;
mod lines;
mod parts;
mod profiles;
#[path = "../../src/pprof/proto.rs"]
mod proto;
mod proto_dump;
mod round_trip;
