# frozen_string_literal: true

# clippy.toml names what shipped code does only where that is its business. Here it is done without.
RSpec.describe "what clippy.toml disallows" do
  uses = <<~RUST.lines(chomp: true)
    pub fn open(path: &std::path::Path) { drop(std::fs::File::open(path)) }
    pub fn create(path: &std::path::Path) { drop(std::fs::File::create(path)) }
    pub fn read(path: &std::path::Path) { drop(std::fs::read(path)) }
    pub fn text(path: &std::path::Path) { drop(std::fs::read_to_string(path)) }
    pub fn write(path: &std::path::Path) { drop(std::fs::write(path, "")) }
    pub fn copy(path: &std::path::Path) { drop(std::fs::copy(path, "other")) }
    pub fn directory(path: &std::path::Path) { drop(std::fs::create_dir(path)) }
    pub fn directories(path: &std::path::Path) { drop(std::fs::create_dir_all(path)) }
    pub fn asked(path: &std::path::Path) { drop(std::fs::metadata(path)) }
    pub fn asked_of_path(path: &std::path::Path) { drop(path.metadata()) }
    pub fn exists(path: &std::path::Path) -> bool { path.exists() }
    pub fn mode(path: &std::path::Path, mode: std::fs::Permissions) { drop(std::fs::set_permissions(path, mode)) }
    pub fn thread() { drop(std::thread::spawn(|| ())) }
    pub fn scoped() { std::thread::scope(|scope| drop(scope.spawn(|| ()))) }
  RUST

  def clippy(lines)
    file = write_file("planted.rs", "#![warn(clippy::disallowed_methods)]\n#{lines.join("\n")}\n")
    driver = %w[clippy-driver --edition 2024 --crate-type lib --emit metadata --error-format short]
    run(*driver, file, env: { "CLIPPY_CONF_DIR" => Commands::ROOT })
  end

  def lines_with_warnings(outcome) = outcome.stderr.scan(/planted\.rs:(\d+):\d+: warning: use of a disallowed/).flatten

  before { skip "no clippy" unless system("clippy-driver --version", out: File::NULL, err: File::NULL) }

  it "is found wherever it is done, and each of it is known to this compiler" do
    outcome = clippy(uses)
    expect(lines_with_warnings(outcome).uniq.map(&:to_i)).to eq((2..(uses.size + 1)).to_a)
    expect(outcome.stderr.lines.grep(/warning|error/).size).to eq(uses.size + 1)
    paths = File.read(File.join(Commands::ROOT, "clippy.toml")).scan(/path = "([^"]+)"/)
    expect(paths.size).to eq(uses.size)
  end

  it "isn't what takes its place" do
    outcome = clippy([
                       "pub fn look(file: &std::fs::File) { drop(file.metadata()) }",
                       "pub fn thread() { drop(std::thread::Builder::new().spawn(|| ())) }",
                       "pub fn new(path: &std::path::Path) { drop(std::fs::OpenOptions::new().read(true).open(path)) }"
                     ])
    expect([outcome.stderr, outcome.status]).to match(["", be_success])
  end
end
