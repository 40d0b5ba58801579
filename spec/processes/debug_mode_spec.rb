# frozen_string_literal: true

# With ruby -d, which is also a setting of test runners, Ruby prints each exception that is raised, also those that
# somebody expects. Nothing of rperf's raises one as long as all goes well.
RSpec.describe "A program that runs with ruby -d", vm: true do
  exceptions = /^Exception .*$/

  program = <<~RUBY
    begin
      raise "one of the program's own"
    rescue RuntimeError
      puts $DEBUG
    end
    def twice = 2
    twice
    Process.wait(fork { 10_000.times { Object.new } })
    Thread.new { sleep(0.01) }.join
    system("true")
  RUBY

  commands = [%w[record -o p.pb.gz], %w[record -m wall --measure alloc,blame -o p.pb.gz], %w[stat],
              %w[trace --calls all -o p.pb.gz], %w[record --only Object#twice -o p.pb.gz]]
  commands.each do |command|
    it "prints no further exceptions under rperf #{command.join(" ")}" do
      write_file("app.rb", program)
      alone = run(ruby, "-d", "app.rb")
      profiled = rperf(*command, "--", ruby, "-d", "app.rb")
      expect([alone, profiled].map(&:status)).to all(be_success)
      expect(profiled.stdout).to eq(alone.stdout)
      raised = [profiled, alone].map { |outcome| outcome.stderr.scan(exceptions).grep_v(/rubygems/) }
      expect(raised.first).to eq(raised.last)
    end
  end

  it "prints none in sessions of its own" do
    write_file("app.rb", <<~RUBY)
      require "rperf"
      Rperf.start(mode: :wall) { Rperf.label(a: "b") { sleep(0.01) } }.top
      Rperf.start(mode: :cpu, defer: true)
      Rperf.profile(endpoint: "x") { 1_000.times { "a" * 2 } }
      Rperf.snapshot
      Rperf.stop
    RUBY
    outcome = run(ruby, "-d", "-I#{Commands::ROOT}/lib", "app.rb")
    expect(outcome.status).to be_success
    expect(outcome.stderr.scan(exceptions).grep_v(/rubygems/)).to eq([])
  end
end
