//! The options that name users, whose programs are meant where none is named by its PID. Used by
//! `choose`, on the main thread.

use crate::Refusal;
use nix::unistd::{Uid, User};
use rperf_session::settings::quoted;
use rperf_watch::users::Users;

/// The options.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub struct UserArgs {
    /// Programs of this user, by name or number, instead of your own; may be given several times
    #[arg(long = "user", id = "users", value_name = "NAME")]
    pub users: Vec<String>,
    /// Programs of all users; only root can ask those of others
    #[arg(long, conflicts_with = "users")]
    pub all_users: bool,
}

impl UserArgs {
    /// Whether there is one.
    pub fn are_given(&self) -> bool {
        self.all_users || !self.users.is_empty()
    }

    /// The users. Their names are looked up once: a later change is none of ours.
    pub fn resolved(&self) -> Result<Users, Refusal> {
        match (self.all_users, self.users.is_empty()) {
            (true, _) => Ok(Users::All),
            (_, true) => Ok(Users::own()),
            _ => {
                let users = self.users.iter().map(|name| resolved(name));
                Ok(Users::Only(users.collect::<Result<_, _>>()?))
            }
        }
    }

    /// Refuses them beside processes, files or a command that the user names.
    pub fn refuse_with(&self, named: &str) -> Result<(), Refusal> {
        match self.are_given() {
            true => Err(Refusal::usage(format!(
                "--user and --all-users don't go with {named}, only with --match"
            ))),
            false => Ok(()),
        }
    }
}

fn resolved(name: &str) -> Result<u32, Refusal> {
    let user = User::from_name(name).ok().flatten();
    let number = user.map(|user| user.uid.as_raw()).or(name.parse().ok());
    let own = Uid::effective();
    let name = quoted(name.as_ref());
    match number {
        None => Err(Refusal::usage(format!("--user: there is no user {name}"))),
        Some(number) if !own.is_root() && number != own.as_raw() => Err(Refusal::usage(format!(
            "--user {name}: only root can ask programs of other users"
        ))),
        Some(number) => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(users: &[&str]) -> UserArgs {
        UserArgs {
            users: users.iter().map(ToString::to_string).collect(),
            all_users: false,
        }
    }

    #[test]
    fn users_have_names_or_numbers() {
        let own = Uid::effective();
        assert_eq!(args(&[]).resolved().ok(), Some(Users::own()));
        let number = own.to_string();
        assert_eq!(args(&[&number]).resolved().ok(), Some(Users::own()));
        let all = UserArgs {
            all_users: true,
            ..args(&[])
        };
        assert_eq!(all.resolved().ok(), Some(Users::All));
        assert!(all.refuse_with("PIDs").is_err() && args(&[]).refuse_with("PIDs").is_ok());
        for none in ["", "no such user", "-1", "4294967296"] {
            let refusal = args(&[none]).resolved().expect_err("refused");
            assert_eq!(refusal.status, 2);
            assert!(refusal.message.contains("there is no user"), "{none}");
        }
        if own.is_root() {
            let two = args(&["root", "12345"]).resolved().ok();
            assert_eq!(two, Some(Users::Only(vec![0, 12_345])));
        } else {
            let refusal = args(&["0"]).resolved().expect_err("refused");
            assert!(refusal.message.ends_with("of other users"));
        }
    }
}
