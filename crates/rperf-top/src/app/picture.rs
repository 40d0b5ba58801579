//! The picture that the lines are of: the present sums, or the sums as they were when it was
//! stopped.

use rperf_watch::sums::Sums;

/// Which picture is shown, and which of it the lines are of.
#[derive(Debug, Default)]
pub(crate) struct Picture {
    /// The sums as they were when the picture was stopped.
    frozen: Option<Box<Sums>>,
    /// The version that the lines show; `None` if they have to be made anew.
    version: Option<u64>,
}

impl Picture {
    /// Whether it is stopped.
    pub fn is_stopped(&self) -> bool {
        self.frozen.is_some()
    }

    /// Stops it, or lets it go on.
    pub fn stop_or_go_on(&mut self, sums: &mut Sums) {
        self.frozen = match self.frozen {
            Some(_) => None,
            None => Some(Box::new(sums.picture())),
        };
        self.renew();
    }

    /// The sums that are shown.
    pub fn shown<'a>(&'a self, sums: &'a Sums) -> &'a Sums {
        self.frozen.as_deref().unwrap_or(sums)
    }

    /// The lines have to be made anew.
    pub fn renew(&mut self) {
        self.version = None;
    }

    /// The sums that are shown, if the lines aren't of them yet. From now on they are.
    pub fn take_new<'a>(&'a mut self, sums: &'a Sums) -> Option<&'a Sums> {
        let shown = self.frozen.as_deref().unwrap_or(sums);
        let before = self.version.replace(shown.rounds.version);
        (before != self.version).then_some(shown)
    }
}
