//! Tests of the forms of paths, by example and for any paths.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use rperf_model::test_support;

/// The paths of a profile with these files and directories.
fn paths(roots: &[&str], files: &[&str]) -> (Profile, CodePaths) {
    let mut profile = Profile::new(test_support::cpu_schema());
    roots.iter().for_each(|root| profile.meta.add_root(root));
    for file in files {
        test_support::node(&mut profile, &[("run", file, 1, 1)]);
    }
    let paths = CodePaths::of(&profile);
    (profile, paths)
}

#[test]
fn paths_are_shown_by_what_they_mean() {
    let (_, paths) = paths(&["/srv/shop"], &[]);
    for (path, short) in [
        ("/srv/shop/app/models/order.rb", "app/models/order.rb"),
        (
            "/srv/shop2/app/models/order.rb",
            "/srv/shop2/app/models/order.rb",
        ),
        ("/srv/shop", "/srv/shop"),
        ("./bin/run", "bin/run"),
        ("app.rb", "app.rb"),
        (
            "/srv/shop/vendor/bundle/ruby/3.4.0/gems/rouge-4.5/lib/rouge/lexer.rb",
            "rouge-4.5/lib/rouge/lexer.rb",
        ),
        (
            "/b/bundler/gems/rails-0a1b2c3d4e5f/activerecord/a.rb",
            "rails-0a1b2c3d4e5f/activerecord/a.rb",
        ),
        (
            "/srv/shop/gems/billing/lib/billing.rb",
            "gems/billing/lib/billing.rb",
        ),
        ("/usr/lib/ruby/3.4.0/net/http.rb", "<ruby>/net/http.rb"),
        (
            "<internal:/usr/lib/ruby/3.4.0/rubygems/a.rb>",
            "<ruby>/rubygems/a.rb",
        ),
        ("(eval at /srv/shop/lib/dsl.rb:3)", "(eval at lib/dsl.rb:3)"),
        (
            "(eval at /g/gems/erb-4.0/lib/erb.rb:3)",
            "(eval at erb-4.0/lib/erb.rb:3)",
        ),
        (
            "(eval at (eval at /srv/shop/a.rb:1):2)",
            "(eval at (eval at /srv/shop/a.rb:1):2)",
        ),
        ("/src/runtime/proc.go", "/src/runtime/proc.go"),
        ("<C method>", "<C method>"),
        ("<internal:array>", "<internal:array>"),
        ("<GVL>", "<GVL>"),
        ("-e", "-e"),
        ("", ""),
    ] {
        assert_eq!(paths.short(path), short, "{path}");
    }
}

#[test]
fn full_paths_stay_and_prefixes_are_taken_off_first() {
    let (mut profile, _) = paths(&["/srv/shop"], &[]);
    let own = "/srv/shop/app/order.rb";
    profile.path_view.trim = vec!["/srv/shop/app/".into(), "/other".into(), "/src".into()];
    let trimmed = CodePaths::of(&profile);
    assert_eq!(trimmed.short(own), "order.rb");
    assert_eq!(trimmed.short("/other/a.rb"), "a.rb");
    assert_eq!(trimmed.short("/srv/shop/lib/a.rb"), "lib/a.rb");
    assert_eq!(trimmed.short("/src/runtime/proc.go"), "runtime/proc.go");
    profile.path_view.is_full = true;
    let full = CodePaths::of(&profile);
    let gem = "/g/gems/rack-3.1.8/lib/rack.rb";
    assert_eq!((full.short(own), full.short(gem)), (own.into(), gem.into()));
    assert_eq!(full.meaning(own), Meaning::Own("order.rb".into()));
}

#[test]
fn the_versions_of_gems_and_ruby_mean_nothing() {
    let (_, paths) = paths(&["/srv/shop"], &[]);
    let same = |a: &str, b: &str| assert_eq!(paths.meaning(a), paths.meaning(b));
    same(
        "/a/gems/rouge-4.5/lib/r.rb",
        "/b/bundler/gems/rouge-0a1b2c3d/lib/r.rb",
    );
    same(
        "/usr/lib/ruby/3.4.0/set.rb",
        "/h/.asdf/installs/ruby/4.0.0/lib/ruby/4.0.0/set.rb",
    );
    same("(eval at /srv/shop/a.rb:1)", "(eval at a.rb:7)");
    same("/srv/shop/a.rb", "./a.rb");
    let differ = |a: &str, b: &str| assert_ne!(paths.meaning(a), paths.meaning(b));
    differ("/a/gems/rouge-4.5/lib/r.rb", "/a/gems/rough-4.5/lib/r.rb");
    differ("/srv/shop/a.rb", "/srv/shop/b/a.rb");
    differ("/srv/shop/a.rb", "/srv/other/a.rb");
    differ("/usr/lib/ruby/3.4.0/set.rb", "/srv/shop/set.rb");
}

#[test]
fn of_several_directories_the_innermost_counts_unless_files_would_look_the_same() {
    let (_, paths) = paths(
        &["/repo", "/repo/shop"],
        &[
            "/repo/shop/app/a.rb",
            "/repo/shop/lib/b.rb",
            "/repo/lib/b.rb",
            "/repo/lib/c.rb",
        ],
    );
    assert_eq!(paths.short("/repo/shop/app/a.rb"), "app/a.rb");
    assert_eq!(paths.short("/repo/lib/c.rb"), "lib/c.rb");
    assert_eq!(paths.short("/repo/shop/lib/b.rb"), "shop/lib/b.rb");
    assert_eq!(paths.short("/repo/lib/b.rb"), "lib/b.rb");
    let (_, apart) = self::paths(&["/a", "/b"], &["/a/x.rb", "/b/x.rb", "/b/y.rb"]);
    assert_eq!(apart.short("/a/x.rb"), "/a/x.rb");
    assert_eq!(apart.short("/b/x.rb"), "/b/x.rb");
    assert_eq!(apart.short("/b/y.rb"), "y.rb");
}

#[test]
fn without_a_directory_the_one_of_all_own_files_counts() {
    let files = [
        "/srv/shop/app/models/order.rb",
        "/srv/shop/lib/tax.rb",
        "/usr/lib/ruby/3.4.0/set.rb",
        "/g/gems/rack-3.1.8/lib/rack.rb",
        "/usr/local/bin/bundle",
        "<C method>",
    ];
    let (_, guessed) = paths(&[], &files);
    assert_eq!(guessed.short(files[0]), "app/models/order.rb");
    assert_eq!(guessed.short(files[1]), "lib/tax.rb");
    assert_eq!(
        guessed.short("/usr/local/bin/bundle"),
        "/usr/local/bin/bundle"
    );
    let (_, alone) = paths(&[], &["/usr/local/bin/tool"]);
    assert_eq!(alone.short("/usr/local/bin/tool"), "tool");
    let (_, apart) = paths(&[], &["/srv/a.rb", "/home/b.rb"]);
    assert_eq!(apart.short("/srv/a.rb"), "/srv/a.rb");
    // All there is, is no program's directory.
    let (_, top) = paths(&["/"], &["/srv/a.rb"]);
    assert_eq!(top.short("/srv/a.rb"), "a.rb");
}

fn path() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("a".to_string()),
        Just("b".to_string()),
        Just("gems".to_string()),
        Just("rack-3.1.8".to_string()),
        Just("lib/ruby/3.4.0".to_string()),
        Just("bundler/gems/x-0a1b2c".to_string()),
        Just("計".to_string()),
    ];
    vec(part, 1..6).prop_map(|parts| format!("/{}.rb", parts.join("/")))
}

proptest! {
    #[test]
    fn two_files_of_the_program_never_look_the_same(
        files in vec(path(), 1..12),
        roots in vec(prop_oneof![Just("/a"), Just("/b"), Just("/a/b"), Just("/a/a")], 0..4),
    ) {
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let (profile, paths) = paths(&roots, &files);
        let frames = profile.frames.iter();
        let own = own_files(frames.map(|(_, frame)| profile.strings.get(frame.path)));
        let short: BTreeSet<_> = own.iter().map(|path| paths.short(path)).collect();
        prop_assert_eq!(short.len(), own.len());
        let meanings: BTreeSet<_> = own.iter().map(|path| paths.meaning(path)).collect();
        prop_assert_eq!(meanings.len(), own.len());
    }

    #[test]
    fn any_text_has_a_form_and_a_meaning(text in "\\PC{0,40}", path in path()) {
        let (_, paths) = paths(&[], &[&text, &path]);
        for path in [&text, &path] {
            let short = paths.short(path);
            let end = short.rsplit('/').next().unwrap_or_default();
            prop_assert!(path.contains(end.trim_end_matches(')').rsplit(' ').next().unwrap_or_default()));
            paths.meaning(path);
        }
    }
}
