//! The messages of OTLP's profiles, as far as they are used: opentelemetry.proto's
//! profiles/v1development of version 1.10, which differs on the wire from 1.9. Any thread.

use prost::{Message, Oneof};

/// `ExportProfilesServiceRequest`; `ProfilesData` is the same on the wire.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Request {
    #[prost(message, repeated, tag = "1")]
    pub(super) resource_profiles: Vec<ResourceProfiles>,
    #[prost(message, optional, tag = "2")]
    pub(super) dictionary: Option<Dictionary>,
}

/// What others name by index. The first entry of each table is the zero value.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Dictionary {
    #[prost(message, repeated, tag = "1")]
    pub(super) mappings: Vec<Empty>,
    #[prost(message, repeated, tag = "2")]
    pub(super) locations: Vec<Location>,
    #[prost(message, repeated, tag = "3")]
    pub(super) functions: Vec<Function>,
    #[prost(message, repeated, tag = "4")]
    pub(super) links: Vec<Empty>,
    #[prost(string, repeated, tag = "5")]
    pub(super) strings: Vec<String>,
    #[prost(message, repeated, tag = "6")]
    pub(super) attributes: Vec<Attribute>,
    #[prost(message, repeated, tag = "7")]
    pub(super) stacks: Vec<Stack>,
}

/// A mapping or a link: there are no others than the zero value.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Empty {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Location {
    #[prost(message, repeated, tag = "3")]
    pub(super) lines: Vec<Line>,
    #[prost(int32, repeated, tag = "4")]
    pub(super) attributes: Vec<i32>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Line {
    #[prost(int32, tag = "1")]
    pub(super) function: i32,
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Function {
    #[prost(int32, tag = "1")]
    pub(super) name: i32,
    #[prost(int32, tag = "3")]
    pub(super) filename: i32,
    #[prost(int64, tag = "4")]
    pub(super) start_line: i64,
}

/// `KeyValueAndUnit`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Attribute {
    #[prost(int32, tag = "1")]
    pub(super) key: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct Stack {
    /// Leaf first.
    #[prost(int32, repeated, tag = "1")]
    pub(super) locations: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceProfiles {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(super) scope_profiles: Vec<ScopeProfiles>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 3")]
    pub(super) value: Option<Value>,
}

#[derive(Clone, PartialEq, Eq, Hash, Oneof)]
pub(super) enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ScopeProfiles {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub(super) profiles: Vec<OneProfile>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Scope {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

/// `Profile`: the values of one type.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OneProfile {
    #[prost(message, optional, tag = "1")]
    pub(super) sample_type: Option<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(super) samples: Vec<Sample>,
    #[prost(fixed64, tag = "3")]
    pub(super) time_unix_nano: u64,
    #[prost(uint64, tag = "4")]
    pub(super) duration_nano: u64,
    #[prost(message, optional, tag = "5")]
    pub(super) period_type: Option<ValueType>,
    #[prost(int64, tag = "6")]
    pub(super) period: i64,
    #[prost(bytes = "vec", tag = "7")]
    pub(super) profile_id: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct ValueType {
    #[prost(int32, tag = "1")]
    pub(super) name: i32,
    #[prost(int32, tag = "2")]
    pub(super) unit: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Sample {
    #[prost(int32, tag = "1")]
    pub(super) stack: i32,
    #[prost(int32, repeated, tag = "2")]
    pub(super) attributes: Vec<i32>,
    #[prost(int64, repeated, tag = "4")]
    pub(super) values: Vec<i64>,
}

/// `ExportProfilesServiceResponse`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Response {
    #[prost(message, optional, tag = "1")]
    pub(super) partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub(super) rejected_profiles: i64,
    #[prost(string, tag = "2")]
    pub(super) error_message: String,
}

/// `google.rpc.Status`, the body of a refusal.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Status {
    #[prost(string, tag = "2")]
    pub(super) message: String,
}
