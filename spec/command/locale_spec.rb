# frozen_string_literal: true

# Paths and values are bytes; in the C locale they aren't text.
RSpec.describe "a path that isn't text in the locale's encoding" do
  # A copy of what is installed, in such a directory.
  def installed_in(outer)
    File.join(outer, "jürgen").tap do |place|
      Dir.mkdir(place)
      %w[lib exe].each { |name| FileUtils.cp_r(File.join(Commands::ROOT, name), place) }
    end
  end

  def in_c_locale(*command, env: {}) = run(*command, env: { "LC_ALL" => "C", **env })

  def expect_work(path)
    expect(read_profile(path)[:samples].flat_map(&:first)).to include([/./, "Object#work"])
  end

  let(:program) do
    write_file("arbeit-ü.rb", <<~RUBY)
      def work = (i = 0; i += 1 while i < 10_000_000)
      work
      system(#{ruby.inspect}, "-e", "puts [Rperf.running?, ENV['RUBYOPT'].end_with?(' -W1')].inspect")
    RUBY
  end

  {
    "with a blank" => ->(example) { example.path_to("") },
    "without a blank" => ->(_) { @bare = Dir.mktmpdir("rperf-spec") }
  }.each do |what, outer|
    it "may be rperf's own, #{what}" do
      exe = File.join(installed_in(instance_exec(self, &outer)), "exe/rperf")
      outcome = in_c_locale(ruby, exe, "record", "-o", "größe.pb.gz", ruby, program, env: { "RUBYOPT" => "-W1" })
      expect([outcome.status.exitstatus, outcome.stdout]).to eq([0, "[true, true]\n"])
      expect(outcome.messages).to contain_exactly(/\Arperf: wrote .*samples of 2 processes/)
      expect_work(path_to("größe.pb.gz"))
    ensure
      FileUtils.rm_rf(@bare) if @bare
    end

    it "may be rperf's own, #{what}, also where children are left out" do
      exe = File.join(installed_in(instance_exec(self, &outer)), "exe/rperf")
      code = "p ENV.key?('RPERF_SESSION'), ENV['RUBYOPT'], ENV['RUBYLIB']"
      outcome = in_c_locale(ruby, exe, "record", "--no-inherit", ruby, "-e", code, env: { "RUBYOPT" => "-W1" })
      expect(outcome.stdout).to eq("false\n\"-W1\"\nnil\n")
      expect(outcome.messages).to contain_exactly(/\Arperf: wrote/)
    ensure
      FileUtils.rm_rf(@bare) if @bare
    end
  end

  it "may be in the variables, the program's own directory, or the output's" do
    lib = File.join(installed_in(directory), "lib")
    variables = { "RPERF_ENABLED" => "1", "RPERF_INHERIT" => "1", "RPERF_STAT" => "1", "RPERF_OUTPUT" => "größe.pb.gz" }
    outcome = in_c_locale("/bin/sh", "-c", "cd jürgen && exec '#{ruby}' -I'#{lib}' -rrperf '#{program}'",
                          env: { "RUBYOPT" => "-W1", **variables })
    expect([outcome.status.exitstatus, outcome.stdout]).to eq([0, "[true, true]\n"])
    expect(outcome.stderr).to include("stats for '#{program}'")
    expect_work(path_to("jürgen/größe.pb.gz"))
  end

  it "is named where the profile can't be written" do
    Dir.mkdir(path_to("größe"))
    env = { "RPERF_ENABLED" => "1", "RPERF_OUTPUT" => "größe/p.pb.gz", "OUTPUT" => "größe/p.pb.gz" }
    outcome = in_c_locale(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", "Dir.mkdir(ENV['OUTPUT'])", env:)
    expect(outcome.stderr).to match(%r{\Arperf: can't write the profile to .*größe/p\.pb\.gz \(.*\); it is in })
  end
end
