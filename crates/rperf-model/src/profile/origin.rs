//! Where a frame's code comes from: the application, a gem, Ruby itself, rperf. Told by its path,
//! and by the directories that the profile has of rperf's files. Used by reports and formats; any
//! thread, no I/O.

use crate::frames::frame_kind::{C_METHOD, OWN_FRAME};
use crate::{CodePath, FrameKind, Meta};

/// The name of rperf's gem.
const RPERF: &str = "rperf";

/// What the names of the extension's methods begin with.
const NATIVE: &str = "Rperf::Native";

/// The kind of a frame's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// Nothing is known of it.
    Other,
    /// The application.
    App,
    /// A gem.
    Gem,
    /// Ruby's standard library, and the methods of Ruby itself that are written in Ruby.
    Stdlib,
    /// A method written in C.
    C,
    /// A function of native code, in a profile of another tool.
    Native,
    /// A state of the GVL.
    Gvl,
    /// Garbage collection.
    Gc,
    /// rperf itself, wherever it is installed.
    Rperf,
}

/// Where a path says that its code comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin<'a> {
    /// The kind of code.
    pub category: Category,
    /// The gem with its version, such as `activerecord-8.0.1`; `rperf` for rperf itself; empty for all
    /// others.
    pub library: &'a str,
}

impl Category {
    /// Every category, in the order of their numbers.
    pub const ALL: [Category; 9] = [
        Category::Other,
        Category::App,
        Category::Gem,
        Category::Stdlib,
        Category::C,
        Category::Native,
        Category::Gvl,
        Category::Gc,
        Category::Rperf,
    ];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Category::Other => "other",
            Category::App => "app",
            Category::Gem => "gem",
            Category::Stdlib => "stdlib",
            Category::C => "c",
            Category::Native => "native",
            Category::Gvl => "gvl",
            Category::Gc => "gc",
            Category::Rperf => RPERF,
        }
    }
}

impl<'a> Origin<'a> {
    const RPERF: Origin<'static> = Origin {
        category: Category::Rperf,
        library: RPERF,
    };

    /// The origin of code in `path`: a file, or a marker such as `<C method>`. Where rperf runs as a
    /// gem that is installed, its path tells; elsewhere see [`Meta::origin`].
    pub fn of(path: &'a str) -> Self {
        let of = |category| Self {
            category,
            library: "",
        };
        match CodePath::of(path) {
            CodePath::Gem { name: RPERF, .. } => Self::RPERF,
            CodePath::Gem { directory, .. } => Self {
                category: Category::Gem,
                library: directory,
            },
            CodePath::Ruby { .. } => of(Category::Stdlib),
            CodePath::Eval { .. } | CodePath::File(_) => of(Category::App),
            CodePath::Native(_) => of(Category::Native),
            CodePath::Marker(marker) => of(match FrameKind::of(marker) {
                FrameKind::Gvl => Category::Gvl,
                FrameKind::Gc => Category::Gc,
                FrameKind::CMethod => Category::C,
                FrameKind::Internal => Category::Stdlib,
                _ => Category::Other,
            }),
        }
    }
}

impl Meta {
    /// The origin of the frame `name` in `path` of this profile.
    pub fn origin<'a>(&self, name: &str, path: &'a str) -> Origin<'a> {
        if name.starts_with(NATIVE) && path == C_METHOD || (name, path) == OWN_FRAME {
            return Origin::RPERF;
        }
        let file = match CodePath::of(path) {
            CodePath::Eval { file, .. } => file,
            _ => path,
        };
        let is_rperfs = self
            .rperf_directories
            .iter()
            .filter_map(|it| file.strip_prefix(it.as_str()))
            .any(|rest| rest == "/rperf.rb" || rest.starts_with("/rperf/"));
        match is_rperfs || Origin::of(file) == Origin::RPERF {
            true => Origin::RPERF,
            false => Origin::of(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_the_category_and_the_gem() {
        for (path, category, library) in [
            ("/srv/app/models/user.rb", Category::App, ""),
            ("bin/rails", Category::App, ""),
            ("config.ru", Category::App, ""),
            ("-e", Category::App, ""),
            ("(eval at a.rb:1)", Category::App, ""),
            (
                "/usr/lib/ruby/gems/3.4.0/gems/rack-3.1.8/lib/rack.rb",
                Category::Gem,
                "rack-3.1.8",
            ),
            (
                "/x/bundler/gems/rails-0a1b2c/lib/a.rb",
                Category::Gem,
                "rails-0a1b2c",
            ),
            ("/g/gems/rperf-1.0.0/lib/rperf.rb", Category::Rperf, "rperf"),
            (
                "/g/bundler/gems/rperf-0a1b2c3d/lib/rperf/api.rb",
                Category::Rperf,
                "rperf",
            ),
            (
                "/g/gems/rperf_shop-1.0.0/lib/rperf.rb",
                Category::Gem,
                "rperf_shop-1.0.0",
            ),
            ("/srv/rperf/lib/rperf.rb", Category::App, ""),
            ("/usr/lib/ruby/3.4.0/json/common.rb", Category::Stdlib, ""),
            ("<internal:kernel>", Category::Stdlib, ""),
            ("<C method>", Category::C, ""),
            ("<GVL>", Category::Gvl, ""),
            ("<GC>", Category::Gc, ""),
            ("<thread>", Category::Other, ""),
            ("", Category::Other, ""),
            ("/usr/lib/libc.so.6", Category::Native, ""),
            ("/src/runtime/proc.go", Category::Native, ""),
        ] {
            assert_eq!(Origin::of(path), Origin { category, library }, "{path}");
        }
    }

    #[test]
    fn files_of_rperf_are_known_by_the_directory_that_the_profile_has() {
        let mut meta = Meta::default();
        meta.add_rperf_directory("/srv/rperf/lib");
        for path in [
            "/srv/rperf/lib/rperf.rb",
            "/srv/rperf/lib/rperf/rack/middleware.rb",
            "(eval at /srv/rperf/lib/rperf/api.rb:12)",
            "/g/gems/rperf-1.0.0/lib/rperf.rb",
        ] {
            assert_eq!(meta.origin("Rperf.start", path), Origin::RPERF, "{path}");
        }
        for path in [
            "/srv/rperf/app.rb",
            "/srv/rperf/lib/rperf_shop.rb",
            "/srv/rperf/lib/rperf_shop/cart.rb",
            "/srv/rperf/library/rperf.rb",
            "/srv/rperf_shop/lib/rperf.rb",
            "lib/rperf.rb",
            "-e",
        ] {
            let origin = meta.origin("Rperf.start", path);
            assert_eq!(origin.category, Category::App, "{path}");
        }
        let of_c = |name| meta.origin(name, C_METHOD).category;
        assert_eq!(of_c("Rperf::Native.stop"), Category::Rperf);
        assert_eq!(of_c("RperfShop.sort"), Category::C);
        let marked = |name: &str| meta.origin(name, "<rperf>").category;
        assert_eq!(marked("[rperf]"), Category::Rperf);
        assert_eq!(
            marked("[truncated]"),
            Category::Other,
            "it is the program's"
        );
    }

    #[test]
    fn categories_have_the_numbers_of_their_places() {
        for (index, category) in Category::ALL.into_iter().enumerate() {
            assert_eq!(category as usize, index);
        }
    }
}
