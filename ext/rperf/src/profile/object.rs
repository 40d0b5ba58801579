//! The Ruby object that holds a finished profile. On Ruby threads with the GVL.

use magnus::{Error, RArray, Ruby, TryConvert, Value, prelude::*};
use rperf_model::Profile;
use std::sync::Arc;

/// What the Ruby object holds.
#[magnus::wrap(class = "Rperf::NativeProfile", free_immediately)]
pub struct ProfileObject(pub Arc<Profile>);

/// The Ruby object for `profile`.
pub fn wrap(ruby: &Ruby, profile: Profile) -> Result<Value, Error> {
    Ok(ruby.obj_wrap(ProfileObject(Arc::new(profile))).as_value())
}

/// The profile in a Ruby object that [`wrap`] has made.
pub fn shared(object: Value) -> Result<Arc<Profile>, Error> {
    Ok(Arc::clone(&<&ProfileObject>::try_convert(object)?.0))
}

/// The profiles in an Array of such objects.
pub fn all_shared(profiles: RArray) -> Result<Vec<Arc<Profile>>, Error> {
    profiles.into_iter().map(shared).collect()
}
