# frozen_string_literal: true

require "fileutils"
require "open3"
require "rubygems/package"
require "tmpdir"

RSpec.describe "bin/package" do
  around do |example|
    Dir.mktmpdir do |directory|
      @directory = directory
      example.run
    end
  end

  def path(name) = File.join(@directory, name)

  def write(name, content, mode: 0o644)
    FileUtils.mkdir_p(File.dirname(path(name)))
    File.write(path(name), content)
    File.chmod(mode, path(name))
  end

  # A copy of what gems are made of, but for the Rust.
  def copy_of_project
    %w[lib exe docs bin README.md CHANGELOG.md LICENSE rperf.gemspec Cargo.toml Cargo.lock].each do |name|
      FileUtils.mkdir_p(path("project"))
      FileUtils.cp_r(File.join(Commands::ROOT, name), path("project"))
    end
    FileUtils.rm_f(Dir[path("project/lib/rperf/*.{so,bundle}")] + Dir[path("project/lib/rperf/bin/*")])
  end

  def pack(*arguments, umask: 0o022)
    command = [RbConfig.ruby, path("project/bin/support/package/pack.rb"), *arguments]
    output, status = Open3.capture2e({ "SOURCE_DATE_EPOCH" => "1700000000" }, *command, umask:)
    expect(status).to be_success, output
    Dir[path("project/pkg/*.gem")].first
  end

  def write_licences
    write("built/LICENSES-THIRD-PARTY.md", "their licences")
    write("built/LICENSES-RUST.html", "Rust's")
  end

  # The lines where the parts of bin/package are known.
  def in_package(lines)
    script = "die() { echo \"$*\" >&2; exit 1; }\n. #{Commands::ROOT}/bin/support/package.sh\n#{lines}"
    Open3.capture2e("bash", "-euo", "pipefail", "-c", script)
  end

  it "refuses a gem that is too large" do
    refusal = "a.gem has 10000001 bytes; 10000000 is the limit\n"
    { 10_000_000 => ["", 0], 10_000_001 => [refusal, 1] }.each do |size, said|
      write("a.gem", "")
      File.truncate(path("a.gem"), size)
      output, status = in_package("cd #{@directory}\ncheck_size a.gem\n")
      expect([output, status.exitstatus]).to eq(said)
    end
  end

  # What zig and Rust link in, in a set-up of the example's own.
  describe "the list of licences" do
    def add_other_licences(platform)
      in_package("rustc() { echo #{path("rust")}; }\nTOOLS=#{path("tools")} ZIG_VERSION=1\n" \
                 "add_other_licences #{platform} #{@directory}\n")
    end

    before do
      { "LICENSE" => "zig's text", "lib/libunwind/LICENSE.TXT" => "LLVM's text", "lib/libc/musl/COPYRIGHT" => "musl's",
        "lib/libc/glibc/LICENSES" => "glibc's" }
        .each { |name, text| write("tools/zig-1/ziglang/#{name}", "#{text}\n") }
      write("rust/share/doc/rust/COPYRIGHT-library.html", "Rust's")
      write("LICENSES-THIRD-PARTY.md", "The crates\n\n")
    end

    it "has the texts of zig, of LLVM, of the C library and of Rust" do
      texts = %w[x86_64-linux-gnu x86_64-linux-musl].map do |platform|
        write("LICENSES-THIRD-PARTY.md", "The crates\n\n")
        output, status = add_other_licences(platform)
        expect([output, status.exitstatus]).to eq(["", 0])
        File.read(path("LICENSES-THIRD-PARTY.md"))
      end
      all = ["The crates", "## zig's compiler-rt", "zig's text", "## LLVM's libunwind", "LLVM's text"]
      expect(texts.map { it.scan(/^The crates$|^## .*|^\S+'s.*/) })
        .to eq([all + ["## the GNU C Library", "glibc's"], all + ["## musl", "musl's"]])
      expect(File.read(path("LICENSES-RUST.html"))).to eq("Rust's")
    end

    it "is refused without one of them" do
      ["tools/zig-1/ziglang/LICENSE", "rust/share/doc/rust/COPYRIGHT-library.html"].each do |name|
        FileUtils.mv(path(name), path("away"))
        output, status = add_other_licences("x86_64-linux-gnu")
        expect([output.lines.last, status.exitstatus]).to eq(["licences of Rust or zig aren't where they were\n", 1])
        FileUtils.mv(path("away"), path(name))
      end
    end
  end

  describe "packing" do
    before do
      copy_of_project
      write("built/lib/3.4/rperf.so", "for 3.4")
      write("built/lib/4.0/rperf.so", "for 4.0")
      FileUtils.mkdir_p(path("built/lib/bin"))
      FileUtils.cp(File.join(Commands::ROOT, "lib/rperf/bin/rperf-command"), path("built/lib/bin"))
      write_licences
    end

    def pack_for_linux(**) = pack("x86_64-linux-gnu", path("built"), "3.4", "4.0", **)

    it "makes a gem for one platform, with a library for each Ruby, the command, and no source" do
      spec = Gem::Package.new(pack_for_linux).spec
      expect(spec.platform.to_s).to eq("x86_64-linux-gnu")
      expect(spec.extensions).to be_empty
      expect(spec.dependencies).to be_empty
      expect(spec.files).to include("lib/rperf/3.4/rperf.so", "lib/rperf/4.0/rperf.so", "lib/rperf/bin/rperf-command",
                                    "LICENSES-THIRD-PARTY.md", "LICENSES-RUST.html", "lib/rperf.rb", "exe/rperf")
      expect(spec.files.grep(%r{\A(ext|crates)/|\ACargo})).to be_empty
      fits = ->(version) { spec.required_ruby_version.satisfied_by?(Gem::Version.new(version)) }
      expect(%w[3.3.9 3.4.0 4.0.9 4.1.0.dev 4.1.0].select(&fits)).to eq(%w[3.4.0 4.0.9])
    end

    it "makes one that installs without a compiler, whose command can be run" do
      skip "a gem for another platform" unless Gem::Platform.match_gem?(Gem::Platform.new("x86_64-linux-gnu"), "rperf")

      home = path("home")
      environment = { "GEM_HOME" => home, "GEM_PATH" => home, "PATH" => "/nowhere", "RUBYOPT" => nil, "RUBYLIB" => nil }
      gem = [RbConfig.ruby, "-rrubygems/gem_runner", "-e", "Gem::GemRunner.new.run(ARGV)"]
      output, status = Open3.capture2e(environment, *gem, "install", "--local", "--no-document", pack_for_linux)
      expect(status).to be_success, output
      output, = Open3.capture2e(environment, RbConfig.ruby, File.join(home, "bin", Rperf::Names::COMMAND), "--version")
      expect(output).to eq("rperf #{Rperf::VERSION}\n")
    end

    it "makes the same bytes again, whatever modes and times files have here" do
      first = File.binread(pack_for_linux)
      FileUtils.chmod(0o600, path("project/lib/rperf.rb"))
      FileUtils.touch(Dir[path("{project,built}/lib/**/*.{rb,so}")], mtime: Time.at(0))
      expect(File.binread(pack_for_linux(umask: 0o077)) == first).to be true
    end

    it "makes a gem with the source" do
      FileUtils.mkdir_p(path("project/ext/rperf"))
      FileUtils.cp(File.join(Commands::ROOT, "ext/rperf/extconf.rb"), path("project/ext/rperf"))
      spec = Gem::Package.new(pack("ruby")).spec
      expect(spec.platform).to eq("ruby")
      expect(spec.extensions).to eq(["ext/rperf/extconf.rb"])
      expect(spec.files).to include("Cargo.lock", "ext/rperf/extconf.rb")
      expect(spec.files.grep(/\.so\z|rperf-command\z/)).to be_empty
    end
  end

  describe "the check of native files" do
    def build(name, source, *flags)
      write("#{name}.c", source)
      library = path("#{name}.so")
      system("cc", "-shared", "-fPIC", "-nostdlib", "-o", library, path("#{name}.c"), *flags, exception: true)
      library
    end

    def check(file, cpu: RbConfig::CONFIG["host_cpu"], libc: "2.17")
      script = File.join(Commands::ROOT, "bin/support/package/check.rb")
      output, status = Open3.capture2e(RbConfig.ruby, script, cpu, libc, file)
      [status.success?, output]
    end

    before do
      found = %w[cc readelf].all? { |name| system("command -v #{name} >/dev/null") }
      skip "no C compiler with readelf" unless found && RbConfig::CONFIG["host_os"].start_with?("linux")
    end

    it "takes a library that needs Ruby alone" do
      file = build("good", "void rb_gc(void); void Init_rperf(void) { rb_gc(); }")
      expect(check(file)).to eq([true, ""])
    end

    it "names a symbol that no version of glibc is known to have" do
      file = build("bare", "int gettid(void); int Init_rperf(void) { return gettid(); }")
      expect(check(file)).to match([false, /needs gettid, of no version of glibc/])
    end

    it "names symbols of a newer glibc" do
      file = build("newer", "#include <string.h>\nlong Init_rperf(char *it) { return (long) strdup(it); }", "-lc")
      expect(check(file, libc: "2.17")).to eq([true, ""])
      expect(check(file, libc: "2.1")).to match([false, /needs strdup of GLIBC_2\.\d+/])
    end

    it "names what musl hasn't" do
      write("libc.S", ".globl close\n.type close, %function;\nclose:\n.weak free\n.weak lockf\n")
      known = build("known", "int close(int), lockf(void); int Init_rperf(void) { return close(lockf()); }")
      expect(check(known, libc: path("libc.S"))).to eq([true, ""])
      other = build("other", "int mallinfo2(void); int Init_rperf(void) { return mallinfo2(); }")
      expect(check(other, libc: path("libc.S"))).to match([false, /needs mallinfo2, which musl hasn't\n\z/])
      linked = build("linked", "int puts(char *); int Init_rperf(void) { return puts(\"\"); }", "-lc")
      expect(check(linked, libc: path("libc.S"))).to match([false, /needs libc\.so\.6/])
    end

    it "names what others would see, and debug information" do
      file = build("shown", "int helper(void) { return 1; } int Init_rperf(void) { return helper(); }", "-g")
      expect(check(file)).to match([false, /shows helper\n.*has debug information/])
    end

    it "names a file for another CPU" do
      other = RbConfig::CONFIG["host_cpu"] == "x86_64" ? "aarch64" : "x86_64"
      file = build("other", "void Init_rperf(void) {}")
      expect(check(file, cpu: other)).to match([false, /is for another CPU than #{other}/])
    end

    it "names a library that is too large" do
      source = "static const char room[7000000] = { 1 }; const char *Init_rperf(void) { return room; }"
      file = build("large", source)
      expect(check(file)).to match([false, /has \d+ bytes; 6500000 is the limit/])
    end
  end

  # The system is made of files of this one: Ruby, and what the script runs. So there is no compiler in it.
  describe "the try of a gem" do
    programs = %w[bash cat cp dirname env grep mktemp readlink rm sed sh sleep]

    def script(*arguments)
      Open3.capture2e(File.join(Commands::ROOT, "bin/support/package/try.sh"), path("root"), RbConfig.ruby, *arguments)
    end

    # To the same place in the other system, whatever links lead to it here.
    def take(file, place = file)
      return if File.exist?(path("root#{place}"))

      FileUtils.mkdir_p(File.dirname(path("root#{place}")))
      FileUtils.cp_r(File.realpath(file), path("root#{place}"))
    end

    def program(name) = ENV.fetch("PATH").split(":").map { File.join(it, name) }.find { File.executable?(it) }

    def take_programs(names)
      FileUtils.mkdir_p(path("root/usr/bin"))
      File.symlink("usr/bin", path("root/bin"))
      found = names.to_h { |name| [name, program(name)] }
      found.each { |name, file| take(file, "/usr/bin/#{name}") }
      take_libraries_of(found.values)
    end

    def take_ruby
      take(RbConfig.ruby)
      libraries = RbConfig::CONFIG.values_at("rubylibdir", "rubyarchdir", "vendordir").select { Dir.exist?(it) }
      libraries.each { |directory| take(directory) }
      take_libraries_of([RbConfig.ruby, *libraries.flat_map { |directory| Dir["#{directory}/**/*.so"] }])
      own = File.join(*RbConfig::CONFIG.values_at("libdir", "LIBRUBY_SONAME"))
      take(own) if File.exist?(own)
    end

    def take_libraries_of(files)
      needed, = Open3.capture2("ldd", *files, err: File::NULL)
      # musl's may be in a place of its own, and the system's ldd is glibc's.
      linkers = File.read("/proc/self/maps").scan(%r{/\S+/ld-musl-\S+$})
      libraries = needed.scan(%r{^\s.*?(/\S+) \(0x}).flatten | linkers
      libraries.each { |library| take(library, File.expand_path(library)) }
    end

    before do
      namespaces = %w[unshare --user --map-root-user --mount --pid --fork mount -t proc proc /proc]
      linux = RbConfig::CONFIG["host_os"].start_with?("linux")
      skip "needs user namespaces" unless linux && system(*namespaces, err: File::NULL)

      take_programs(programs)
    end

    it "takes one that has what this checkout has built" do
      take_ruby
      copy_of_project
      version = RUBY_VERSION[/\d+\.\d+/]
      { "rperf.so" => "lib/#{version}/rperf.so", "bin/rperf-command" => "lib/bin/rperf-command" }.each do |from, to|
        FileUtils.mkdir_p(File.dirname(path("built/#{to}")))
        FileUtils.cp(File.join(Commands::ROOT, "lib/rperf", from), path("built/#{to}"))
      end
      write_licences
      libc = RUBY_PLATFORM.include?("musl") ? "musl" : "gnu"
      output, status = script(pack("#{RbConfig::CONFIG["host_cpu"]}-linux-#{libc}", path("built"), version))
      expect(output).to match(/^installed in \d+ ms, as user 1000$/).and end_with("all commands work\n")
      expect(status).to be_success
    end

    it "refuses a system that has a compiler" do
      write("root/usr/bin/cc", "", mode: 0o755)
      write("some.gem", "")
      output, status = script(path("some.gem"))
      expect([output, status.exitstatus]).to eq(["this system has cc\n", 1])
    end
  end
end
