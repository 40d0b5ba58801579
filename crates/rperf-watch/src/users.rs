//! Users whose programs are meant where none is named. Any thread.

use nix::unistd::Uid;

/// Users, by their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Users {
    /// Each of them.
    All,
    /// The users with these numbers.
    Only(Vec<u32>),
}

impl Users {
    /// The user of this command: also root, to whom the kernel would give those of everybody.
    pub fn own() -> Self {
        Users::Only(vec![Uid::effective().as_raw()])
    }

    /// Whether programs of this user are meant.
    pub fn has(&self, uid: u32) -> bool {
        match self {
            Users::All => true,
            Users::Only(these) => these.contains(&uid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_a_user_like_others() {
        let own = Uid::effective().as_raw();
        assert!(Users::own().has(own) && !Users::own().has(own + 1));
        assert!(Users::All.has(own + 1) && Users::Only(vec![7, 8]).has(8));
        assert!(!Users::Only(vec![7, 8]).has(own));
    }
}
