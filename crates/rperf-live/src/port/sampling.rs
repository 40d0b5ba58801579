//! How a session samples that clients have begun. Read from requests on the port's thread, and by
//! the helper.

use crate::message::{Refusal, Request};
use rperf_model::Mode;

/// The highest frequency that clients may have.
const MOST: u32 = 1000;

/// Mode and frequency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// Wall time; else CPU time.
    pub is_wall: bool,
    /// Samples per second.
    pub frequency: u32,
}

impl Sampling {
    /// The mode and frequency that the request wants.
    pub fn of(request: &Request) -> Result<Self, Refusal> {
        let mode = request.parameter("mode");
        let is_wall = match mode.map_or(Some(Mode::Wall), Mode::from_name) {
            Some(mode) => mode == Mode::Wall,
            None => return Err(refused("there is no such mode", "mode=wall or mode=cpu")),
        };
        let frequency = request.parameter("frequency").map_or(Ok(MOST), str::parse);
        match frequency {
            Ok(frequency) if (1..=MOST).contains(&frequency) => Ok(Sampling { is_wall, frequency }),
            _ => Err(refused("there is no such frequency", "frequency=1 to 1000")),
        }
    }

    /// The mode's name.
    pub fn mode(self) -> &'static str {
        let mode = if self.is_wall { Mode::Wall } else { Mode::Cpu };
        mode.name()
    }
}

fn refused(error: &str, allowed: &str) -> Refusal {
    Refusal::new(400, error, format!("ask with {allowed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampling(query: &str) -> Result<(&'static str, u32), u16> {
        let request = Request {
            method: "GET".into(),
            path: "/v1/profile".into(),
            query: query.into(),
            closes: false,
            host: None,
            has_origin: false,
            authorization: None,
        };
        let found = Sampling::of(&request).map_err(|refusal| refusal.status)?;
        Ok((found.mode(), found.frequency))
    }

    #[test]
    fn it_is_wall_time_at_1000_hz_unless_the_query_says_otherwise() {
        assert_eq!(sampling(""), Ok(("wall", 1000)));
        assert_eq!(sampling("seconds=1&mode=cpu&frequency=99"), Ok(("cpu", 99)));
        for odd in [
            "mode=trace",
            "mode=",
            "frequency=0",
            "frequency=1001",
            "frequency=x",
        ] {
            assert_eq!(sampling(odd), Err(400), "{odd}");
        }
    }
}
