//! Sends for `rperf push`: a Ruby of its own does it, as we have no TLS. Parcels go to it
//! (lib/rperf/web/poster.rb), and answers come back: texts, on two pipes. Each list begins with its
//! length, and so does each text. On the command's main thread.

use crate::{FAILURE, Installation, Refusal};
use rperf_push::{Answer, Destination};
use rperf_session::environment::{self, RUBY_VARIABLES};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A Ruby that sends, for as long as this lives.
pub struct Poster {
    ruby: PathBuf,
    script: PathBuf,
    /// `None` if it has ended.
    child: Option<Child>,
}

impl Poster {
    /// Starts it.
    pub fn start(installation: &Installation) -> Result<Self, Refusal> {
        let mut poster = Self {
            ruby: installation.ruby.clone(),
            script: installation.library()?.join("rperf/web/poster.rb"),
            child: None,
        };
        match poster.spawn() {
            Ok(child) => poster.child = Some(child),
            Err(error) => {
                return Err(Refusal {
                    message: poster.failure(&error),
                    status: FAILURE,
                });
            }
        }
        Ok(poster)
    }

    /// Sends this body, and waits for the answer.
    pub fn post(&mut self, destination: &Destination, body: &[u8]) -> Answer {
        self.exchange(destination, body).unwrap_or_else(|error| {
            self.end();
            Answer::nothing(self.failure(&error))
        })
    }

    fn exchange(&mut self, destination: &Destination, body: &[u8]) -> io::Result<Answer> {
        let mut child = match self.child.take() {
            Some(child) => child,
            None => self.spawn()?,
        };
        let pipes = (child.stdin.take(), child.stdout.take());
        let child = self.child.insert(child);
        let (Some(mut parcels), Some(mut answers)) = pipes else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut parcel = vec![destination.url.as_bytes(), body];
        for (name, value) in &destination.headers {
            parcel.extend([name.as_bytes(), value.as_bytes()]);
        }
        write(&mut parcels, &parcel)?;
        let answer = answer(read(&mut answers)?)?;
        (child.stdin, child.stdout) = (Some(parcels), Some(answers));
        Ok(answer)
    }

    /// Keys of the terminal aren't for it, nor is what profiles or changes the Rubies that users start.
    fn spawn(&self) -> io::Result<Child> {
        let mut command = Command::new(&self.ruby);
        environment::foreign_variables().for_each(|name| _ = command.env_remove(name));
        let [(rubyopt, _), _] = RUBY_VARIABLES;
        command
            .arg(&self.script)
            .env_remove(rubyopt)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
    }

    fn failure(&self, error: &io::Error) -> String {
        let ruby = self.ruby.display();
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => {
                format!("the Ruby that sends profiles ({ruby}) has ended")
            }
            _ => format!("profiles are sent by Ruby, and {ruby} can't be used: {error}"),
        }
    }

    fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It has nothing to lose.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Poster {
    fn drop(&mut self) {
        self.end();
    }
}

/// What lib/rperf/web/post.rb returns: HTTP's status, a line, all that was said, and seconds or -1.
fn answer(texts: Vec<Vec<u8>>) -> io::Result<Answer> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, "it answers in other words");
    let [status, said, body, retry_after] = <[_; 4]>::try_from(texts).map_err(|_| wrong())?;
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<f64>().ok();
    Ok(Answer {
        status: number(&status).ok_or_else(wrong)? as u16,
        said: String::from_utf8_lossy(&said).into_owned(),
        body,
        retry_after: Duration::try_from_secs_f64(number(&retry_after).ok_or_else(wrong)?).ok(),
    })
}

fn write(to: &mut impl Write, texts: &[&[u8]]) -> io::Result<()> {
    to.write_all(&length(texts.len())?)?;
    for text in texts {
        to.write_all(&length(text.len())?)?;
        to.write_all(text)?;
    }
    Ok(())
}

fn read(from: &mut impl Read) -> io::Result<Vec<Vec<u8>>> {
    let count = read_length(from)?;
    (0..count).map(|_| read_text(from)).collect()
}

fn read_text(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut text = vec![0; read_length(from)? as usize];
    from.read_exact(&mut text)?;
    Ok(text)
}

fn length(size: usize) -> io::Result<[u8; 4]> {
    let size = u32::try_from(size).map_err(|_| io::ErrorKind::FileTooLarge)?;
    Ok(size.to_be_bytes())
}

fn read_length(from: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    Ok(u32::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_they_were_written() {
        let texts: [&[u8]; 3] = [b"200", b"", b"\x00\xff"];
        let mut bytes = Vec::new();
        write(&mut bytes, &texts).expect("written");
        assert_eq!(bytes[..8], [0, 0, 0, 3, 0, 0, 0, 3]);
        assert_eq!(read(&mut bytes.as_slice()).expect("whole"), texts);
        let error = read(&mut &bytes[..bytes.len() - 1]).expect_err("cut short");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn answers_have_a_status_and_seconds() {
        let texts = |texts: [&str; 4]| texts.map(Vec::from).to_vec();
        let found = answer(texts(["503", "busy", "all", "2.5"])).expect("an answer");
        let expected = Answer {
            status: 503,
            said: "busy".into(),
            body: b"all".to_vec(),
            retry_after: Some(Duration::from_millis(2500)),
        };
        assert_eq!(found, expected);
        let found = answer(texts(["0", "", "", "-1.0"])).expect("an answer");
        assert_eq!(found, Answer::nothing(String::new()));
        for wrong in [texts(["x", "", "", "-1"]), Vec::new()] {
            assert!(answer(wrong).is_err());
        }
    }
}
