# frozen_string_literal: true

require "rbconfig"

# Whoever starts such a program has set its environment, and may have fewer rights.
loader = Dir["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"].first
RSpec.describe "A program that runs as another user than its caller", musl: false, if: OtherUser::USER && loader do
  # As with a file that is setuid. There the loader finds no libraries below the Ruby's own directory, and is told.
  define_method(:run_as_root_of_another) do |script, **options|
    libraries = ["--library-path", RbConfig::CONFIG["libdir"]]
    run("setpriv", "--ruid", OtherUser::USER.to_s, "--clear-groups", loader, *libraries, ruby, script, **options)
  end

  it "writes nothing where the environment says" do
    library = File.join(Commands::ROOT, "lib/rperf")
    script = write_file("program.rb", "require '#{library}'; p Process.uid, Process.euid, Rperf.running?")
    output = path_to("of_root")
    # The loader would take TMPDIR away, and fails as it does.
    env = { "RPERF_ENABLED" => "1", "RPERF_OUTPUT" => output, "TMPDIR" => nil }
    outcome = run_as_root_of_another(script, env:)
    expect(outcome).to have_attributes(status: be_success, stdout: "#{OtherUser::USER}\n0\nfalse\n")
    expect(outcome.stderr.lines).to contain_exactly(/\Arperf: the program's file makes it run as another user/)
    expect(File.exist?(output)).to be(false)
  end

  it "has no port, whoever asks for it" do
    library = File.join(Commands::ROOT, "lib/rperf")
    script = write_file("program.rb", <<~RUBY)
      require #{library.dump}
      begin
        Rperf.listen
      rescue Rperf::Error => e
        puts e.message
      end
    RUBY
    %w[1 tcp://127.0.0.1:0].each do |asked|
      outcome = run_as_root_of_another(script, env: { "RPERF_LISTEN" => asked, "TMPDIR" => nil })
      expect(outcome.stdout).to match(/more privileges than its user/)
      expect(outcome.stderr.lines).to contain_exactly(/\Arperf: no port: .*more privileges than its user/)
    end
  end
end
