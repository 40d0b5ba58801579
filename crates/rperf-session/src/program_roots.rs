//! The directories that a program's own files belong to: that of the program, and that of its
//! repository. Asked by the extension as a profile is made, and as a session with ops begins; on any thread.

use rperf_model::CodePath;
use std::path::{Path, PathBuf};

/// Files and directories that the directory of a program has.
const MARKS: [&str; 4] = ["Gemfile", "gems.rb", "config.ru", REPOSITORY];

/// What the directory of a repository has; in a worktree it is a file.
const REPOSITORY: &str = ".git";

/// Directories of a program that hold nothing but what is run.
const COMMANDS: [&str; 3] = ["bin", "exe", "script"];

/// The directories of the program that was begun in `working_directory` as `program`, as Ruby's
/// `$0` has it. Paths are as Ruby has those of files, without symbolic links.
pub fn program_roots(working_directory: &Path, program: &str) -> Vec<PathBuf> {
    let mut roots = Vec::new();
    if let Some(script) = own_script(working_directory, program) {
        roots.push(directory_of(&script, working_directory));
    }
    // A script can be a tool that runs code of the directory it is begun in.
    let is_around = roots.iter().any(|it| it.starts_with(working_directory));
    let here = marked(working_directory).or((!is_around).then_some(working_directory));
    roots.extend(here.map(Path::to_path_buf));
    let repository = roots.first().and_then(|root| above(root, &[REPOSITORY]));
    roots.extend(repository.map(Path::to_path_buf));
    let mut known = Vec::new();
    for root in roots {
        if root.parent().is_some() && !known.contains(&root) {
            known.push(root);
        }
    }
    known
}

/// The script, if it is a file and belongs to no gem.
fn own_script(working_directory: &Path, program: &str) -> Option<PathBuf> {
    let script = working_directory.join(program).canonicalize().ok()?;
    let is_own = matches!(CodePath::of(script.to_str()?), CodePath::File(_));
    (is_own && script.is_file()).then_some(script)
}

fn directory_of(script: &Path, working_directory: &Path) -> PathBuf {
    let directory = script.parent().unwrap_or(script);
    if let Some(marked) = marked(directory) {
        return marked.to_path_buf();
    }
    if working_directory.parent().is_some() && directory.starts_with(working_directory) {
        return working_directory.to_path_buf();
    }
    let name = directory.file_name().and_then(|name| name.to_str());
    let whole = directory
        .parent()
        .filter(|_| name.is_some_and(|name| COMMANDS.contains(&name)));
    whole.unwrap_or(directory).to_path_buf()
}

/// The innermost directory from this one up that has a mark of a program.
fn marked(directory: &Path) -> Option<&Path> {
    above(directory, &MARKS)
}

#[expect(
    clippy::disallowed_methods,
    reason = "marks are looked for, and nothing is opened"
)]
fn above<'a>(directory: &'a Path, marks: &[&str]) -> Option<&'a Path> {
    let mut directories = directory.ancestors();
    directories.find(|it| marks.iter().any(|mark| it.join(mark).exists()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A directory with these files.
    fn directory(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        for file in files {
            let path = directory.path().join(file);
            fs::create_dir_all(path.parent().expect("it has one")).expect("made");
            fs::write(path, "").expect("written");
        }
        let path = directory.path().canonicalize().expect("it is there");
        (directory, path)
    }

    #[test]
    fn a_program_belongs_to_the_directory_with_its_gemfile_and_to_its_repository() {
        let (_kept, all) = directory(&["repo/.git/HEAD", "repo/shop/Gemfile", "repo/shop/bin/run"]);
        let (repo, shop) = (all.join("repo"), all.join("repo/shop"));
        let both = [shop.clone(), repo.clone()];
        assert_eq!(program_roots(&shop, "bin/run"), both);
        assert_eq!(program_roots(&all, "repo/shop/bin/run"), both);
        let whole = shop.join("bin/run").display().to_string();
        assert_eq!(program_roots(Path::new("/"), &whole), both);
        assert_eq!(program_roots(&shop, "puma: cluster worker 1"), both);
        assert_eq!(program_roots(&repo, "-e"), [repo]);
    }

    #[test]
    fn without_marks_it_is_the_working_directory_or_that_of_the_script() {
        let (_kept, all) = directory(&["b1/app.rb", "tool/bin/run", "other/x"]);
        if marked(&all).is_some() {
            return; // The system's directory for temporary files is in a repository.
        }
        assert_eq!(program_roots(&all.join("b1"), "app.rb"), [all.join("b1")]);
        assert_eq!(program_roots(&all, "b1/app.rb"), std::slice::from_ref(&all));
        let script = |path: &str| all.join(path).display().to_string();
        let other = all.join("other");
        assert_eq!(
            program_roots(&other, &script("b1/app.rb")),
            [all.join("b1"), other.clone()]
        );
        assert_eq!(
            program_roots(&other, &script("tool/bin/run")),
            [all.join("tool"), other]
        );
        assert_eq!(program_roots(Path::new("/"), "-e"), [] as [PathBuf; 0]);
    }

    #[test]
    fn commands_of_gems_run_what_lies_in_the_working_directory() {
        let (_kept, all) = directory(&["g/gems/rake-13.0/exe/rake", "shop/Gemfile"]);
        let shop = all.join("shop");
        let rake = all.join("g/gems/rake-13.0/exe/rake").display().to_string();
        assert_eq!(program_roots(&shop, &rake), std::slice::from_ref(&shop));
        let (_kept, tools) = directory(&["tool/gems.rb", "tool/run"]);
        let tool = tools.join("tool/run").display().to_string();
        assert_eq!(program_roots(&shop, &tool), [tools.join("tool"), shop]);
    }
}
