//! The meaning of a path: a file of a gem, of Ruby's library or of the program, or no file at all.
//! Used by reports and formats; any thread, no I/O.

use crate::frames::frame_kind::internal_file;

/// A path, by its meaning. Each part is a part of the path itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodePath<'a> {
    /// A file of a gem.
    Gem {
        /// The gem's directory: `rack-3.1.8`, or `rails-0a1b2c3d4e5f` of a gem from git.
        directory: &'a str,
        /// The name alone: `rack`.
        name: &'a str,
        /// The file below that directory: `lib/rack/request.rb`.
        file: &'a str,
    },
    /// A file of Ruby's own library.
    Ruby {
        /// The version, as in `lib/ruby/3.4.0`; empty where the path has none.
        version: &'a str,
        /// The file below the library's directory: `net/http.rb`.
        file: &'a str,
    },
    /// Code that was evaluated without a path of its own: `(eval at FILE:LINE)`.
    Eval {
        /// The file of the call of `eval`.
        file: &'a str,
        /// The line of that call.
        line: &'a str,
    },
    /// No file: `<C method>`, `<internal:kernel>`, or nothing.
    Marker(&'a str),
    /// A library or source of native code, in a profile of another tool.
    Native(&'a str),
    /// Any other file, such as the program's own.
    File(&'a str),
}

impl<'a> CodePath<'a> {
    /// The meaning of `path`.
    pub fn of(path: &'a str) -> Self {
        if path.is_empty() || path.starts_with('<') {
            // Ruby keeps a few files of its library out of backtraces: `<internal:/usr/lib/ruby/3.4.0/a.rb>`.
            let internal = internal_file(path).and_then(ruby_library);
            return match internal {
                Some((version, file)) => CodePath::Ruby { version, file },
                None => CodePath::Marker(path),
            };
        }
        if let Some((file, line)) = eval(path) {
            return CodePath::Eval { file, line };
        }
        if let Some(gem) = gem(path) {
            return gem;
        }
        if let Some((version, file)) = ruby_library(path) {
            return CodePath::Ruby { version, file };
        }
        match is_native(path) {
            true => CodePath::Native(path),
            false => CodePath::File(path),
        }
    }
}

fn eval(path: &str) -> Option<(&str, &str)> {
    let place = path.strip_prefix("(eval at ")?.strip_suffix(')')?;
    let (file, line) = place.rsplit_once(':')?;
    let is_line = !line.is_empty() && line.bytes().all(|it| it.is_ascii_digit());
    (is_line && !file.is_empty()).then_some((file, line))
}

/// The innermost directory of a gem tells: bundles lie in directories of programs, and those
/// anywhere. A directory `gems` without versions is a part of a program.
fn gem(path: &str) -> Option<CodePath<'_>> {
    const GEMS: &str = "/gems/";
    path.rmatch_indices(GEMS).find_map(|(place, _)| {
        let (directory, file) = path[place + GEMS.len()..].split_once('/')?;
        let name = match path[..place].ends_with("/bundler") {
            true => before_revision(directory)?,
            false => before_version(directory)?,
        };
        Some(CodePath::Gem {
            directory,
            name,
            file,
        })
    })
}

/// `rails` of `rails-0a1b2c3d4e5f`.
fn before_revision(directory: &str) -> Option<&str> {
    let (name, revision) = directory.rsplit_once('-')?;
    let is_revision = revision.len() >= 6 && revision.bytes().all(|it| it.is_ascii_hexdigit());
    (is_revision && !name.is_empty()).then_some(name)
}

/// `nokogiri` of `nokogiri-1.18.0-arm64-darwin-23`. Names of gems can have numbers, too, but no
/// dots with them.
fn before_version(directory: &str) -> Option<&str> {
    let names = || {
        directory.match_indices('-').filter_map(|(place, _)| {
            let rest = &directory[place + 1..];
            let version = rest.split('-').next().unwrap_or_default();
            let starts_with_digit = version.starts_with(|it: char| it.is_ascii_digit());
            (place > 0 && starts_with_digit).then(|| (&directory[..place], version))
        })
    };
    let dotted = names().find(|(_, version)| version.contains('.'));
    dotted.or_else(|| names().next()).map(|(name, _)| name)
}

/// The version and the file below the library's directory.
fn ruby_library(path: &str) -> Option<(&str, &str)> {
    if let Some(file) = path.strip_prefix("/usr/share/ruby/") {
        return Some(("", file));
    }
    let below = |library| Some(path.rsplit_once(library)?.1);
    let rest = below("/lib/ruby/").or_else(|| below("/lib64/ruby/"))?;
    let sites = ["site_ruby/", "vendor_ruby/"];
    let of_site = sites.iter().find_map(|site| rest.strip_prefix(site));
    let (version, file) = match of_site.unwrap_or(rest).split_once('/') {
        Some((version, file)) if is_version(version) => (version, file),
        _ => ("", of_site?),
    };
    Some((version, file))
}

/// A version of Ruby's library, such as `3.4.0` or `4.1.0+1`.
fn is_version(text: &str) -> bool {
    text.starts_with(|it: char| it.is_ascii_digit()) && text.contains('.')
}

/// Scripts have any name: only libraries and sources of native code are told apart.
fn is_native(path: &str) -> bool {
    const EXTENSIONS: [&str; 9] = ["so", "dylib", "c", "cc", "cpp", "h", "rs", "go", "s"];
    let file = path.rsplit('/').next().unwrap_or(path);
    let is_library = file.contains(".so.") || file.starts_with('[');
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
    is_library || EXTENSIONS.contains(&extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gem_of(path: &str) -> Option<(&str, &str, &str)> {
        match CodePath::of(path) {
            CodePath::Gem {
                directory,
                name,
                file,
            } => Some((directory, name, file)),
            _ => None,
        }
    }

    #[test]
    fn gems_have_a_name_a_directory_and_files() {
        for (path, directory, name, file) in [
            (
                "/usr/lib/ruby/gems/3.4.0/gems/rack-3.1.8/lib/rack.rb",
                "rack-3.1.8",
                "rack",
                "lib/rack.rb",
            ),
            (
                "/usr/share/rubygems-integration/all/gems/rake-13.2.1/lib/rake.rb",
                "rake-13.2.1",
                "rake",
                "lib/rake.rb",
            ),
            (
                "/app/vendor/bundle/ruby/3.4.0/gems/x-1.2/x.rb",
                "x-1.2",
                "x",
                "x.rb",
            ),
            (
                "/h/.rbenv/versions/3.4.1/lib/ruby/gems/3.4.0/gems/net-http-0.6.0/lib/a.rb",
                "net-http-0.6.0",
                "net-http",
                "lib/a.rb",
            ),
            (
                "/h/.asdf/installs/ruby/3.4.1/lib/ruby/gems/3.4.0/gems/base64-0.2.0/a.rb",
                "base64-0.2.0",
                "base64",
                "a.rb",
            ),
            (
                "/b/ruby/3.4.0/bundler/gems/rails-0a1b2c3d4e5f/activerecord/lib/a.rb",
                "rails-0a1b2c3d4e5f",
                "rails",
                "activerecord/lib/a.rb",
            ),
            (
                "/g/gems/nokogiri-1.18.0-arm64-darwin-23/lib/n.rb",
                "nokogiri-1.18.0-arm64-darwin-23",
                "nokogiri",
                "lib/n.rb",
            ),
            (
                "/g/gems/oauth-2-1.0.pre/a.rb",
                "oauth-2-1.0.pre",
                "oauth-2",
                "a.rb",
            ),
            ("/g/gems/old-3/a.rb", "old-3", "old", "a.rb"),
            ("/g/gems/a-1.0/spec/gems/b-2.0/b.rb", "b-2.0", "b", "b.rb"),
            (
                "/h/gems/shop-1.0/vendor/gems/billing/a.rb",
                "shop-1.0",
                "shop",
                "vendor/gems/billing/a.rb",
            ),
        ] {
            assert_eq!(gem_of(path), Some((directory, name, file)), "{path}");
        }
        for path in [
            "/srv/app/gems/billing/lib/billing.rb",
            "/srv/app/gems/x.rb",
            "/srv/gems/-1.0/x.rb",
            "/g/bundler/gems/rails-main/a.rb",
            "gems/rack-3.1.8/a.rb",
        ] {
            assert_eq!(CodePath::of(path), CodePath::File(path));
        }
    }

    #[test]
    fn the_library_of_ruby_is_known_wherever_it_lies() {
        for (path, version, file) in [
            ("/usr/lib/ruby/3.4.0/net/http.rb", "3.4.0", "net/http.rb"),
            (
                "/h/.rbenv/versions/3.4.1/lib/ruby/3.4.0/set.rb",
                "3.4.0",
                "set.rb",
            ),
            ("/r/lib/ruby/4.1.0+1/set.rb", "4.1.0+1", "set.rb"),
            (
                "/r/lib/ruby/site_ruby/3.4.0/rubygems.rb",
                "3.4.0",
                "rubygems.rb",
            ),
            ("/usr/lib/ruby/vendor_ruby/rubygems.rb", "", "rubygems.rb"),
            ("/usr/lib64/ruby/vendor_ruby/a/b.rb", "", "a/b.rb"),
            ("/usr/share/ruby/net/http.rb", "", "net/http.rb"),
            (
                "<internal:/r/lib/ruby/3.4.0/rubygems/a.rb>",
                "3.4.0",
                "rubygems/a.rb",
            ),
        ] {
            assert_eq!(
                CodePath::of(path),
                CodePath::Ruby { version, file },
                "{path}"
            );
        }
        let own = "/home/me/lib/ruby/shop/a.rb";
        assert_eq!(CodePath::of(own), CodePath::File(own));
    }

    #[test]
    fn evaluated_code_has_the_file_that_evaluates_it() {
        let (file, line) = ("/srv/a:b.rb", "12");
        let eval = CodePath::Eval { file, line };
        assert_eq!(CodePath::of("(eval at /srv/a:b.rb:12)"), eval);
        for path in [
            "(eval)",
            "(eval at :1)",
            "(eval at a.rb)",
            "(eval at a.rb:x)",
            "(eval at a.rb:)",
        ] {
            assert_eq!(CodePath::of(path), CodePath::File(path));
        }
    }

    #[test]
    fn everything_else_is_a_file_native_code_or_no_file() {
        for path in ["", "<C method>", "<internal:array>", "<GVL>"] {
            assert_eq!(CodePath::of(path), CodePath::Marker(path));
        }
        for path in ["/usr/lib/libc.so.6", "/src/runtime/proc.go", "[vdso]"] {
            assert_eq!(CodePath::of(path), CodePath::Native(path));
        }
        for path in ["/srv/app/a.rb", "bin/rails", "-e", "/a/b.erb"] {
            assert_eq!(CodePath::of(path), CodePath::File(path));
        }
    }
}
