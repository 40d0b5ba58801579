# frozen_string_literal: true

# A profile is delivered whole, whatever comes meanwhile, and then the program ends by that.
RSpec.describe "the end of a profiled program", vm: true do
  def record(program, &)
    path = write_file("program.rb", "def work = (i = 0; i += 1 while i < 10_000_000)\nwork\n#{program}\n")
    rperf("record", "-o", "p.pb.gz", ruby, path, &)
  end

  def expect_profile
    expect(weight_of(read_profile(path_to("p.pb.gz")), "Object#work")).to be > 0
  end

  # Nothing of Ruby runs while the profile is delivered, so signals are sent from outside, one after the other.
  describe "by many signals, while the profile is on its way" do
    def flood(signal) = %(spawn("while kill -#{signal} \#{$$} 2>/dev/null; do sleep 0.002; done"); sleep)

    { "INT" => ["", "INT", nil], "TERM" => ["", "TERM", nil],
      "a handled TERM" => ["trap(:TERM) { exit 12 }\n", nil, 12] }.each do |what, (setup, signal, status)|
      it "#{what}, is by that" do
        5.times do
          outcome = record("#{setup}#{flood(what[/\w+\z/])}")
          expect([outcome.status.termsig, outcome.status.exitstatus]).to eq([signal && Signal.list[signal], status])
          expect(outcome.messages).to contain_exactly(/wrote p\.pb\.gz/)
          expect_profile
        end
      end
    end

    it "and by Ctrl-C again and again is by that" do
      outcome = record("puts $$; $stdout.flush; sleep") do
        pid = Integer(File.read(path_to(".stdout")))
        20.times do
          Process.kill(:INT, pid)
          sleep 0.002
        end
      rescue Errno::ESRCH
        nil
      end
      expect(outcome.status.termsig).to eq(Signal.list["INT"])
      expect(outcome.messages).to contain_exactly(/wrote p\.pb\.gz/)
      expect_profile
    end

    def run_alone(text, **env)
      program = write_file("program.rb", "def work = (i = 0; i += 1 while i < 10_000_000)\nwork\n#{text}\n")
      env = { "RPERF_ENABLED" => "1", "RPERF_OUTPUT" => "p.pb.gz", **env.transform_keys(&:to_s) }
      run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", program, env:)
    end

    it "is by that without a command, too, and the page is printed once" do
      5.times do
        outcome = run_alone("trap(:TERM) { exit 12 }\n#{flood("TERM")}", RPERF_STAT: "1")
        expect([outcome.status.exitstatus, outcome.stderr.scan("Performance stats").size]).to eq([12, 1])
        expect_profile
      end
    end

    it "is by that without a command, too, and a line says where the file is" do
      Dir.mkdir(path_to("out"))
      outcome = run_alone("trap(:TERM) { exit 12 }\nDir.rmdir('out')\n#{flood("TERM")}", RPERF_OUTPUT: "out/p.pb.gz")
      expect(outcome.status.exitstatus).to eq(12)
      expect(outcome.messages).to contain_exactly(%r{can't write the profile to .*/out/p\.pb\.gz .*; it is in })
    end

    it "whose handler calls exit! is by that" do
      outcome = record("trap(:TERM) { $first ? exit!(3) : ($first = true; exit) }\n#{flood("TERM")}")
      expect(outcome.status.exitstatus).to eq(3).or eq(0)
      expect(outcome.messages).to contain_exactly(/wrote p\.pb\.gz/)
      expect_profile
    end

    # QEMU takes longer to fork than the next signal takes to come, and so the handler goes on for ever.
    it "whose handler forks is that of one process", emulated: false do
      outcome = run_alone("trap(:TERM) { $first ? fork {} : ($first = true; exit) }\n#{flood("TERM")}", RPERF_STAT: "1")
      expect(outcome.stderr.scan("Performance stats").size).to eq(1)
      expect_profile
    end

    it "that raises something else is by that" do
      outcome = record("trap(:TERM) { raise 'oh' }\n#{flood("TERM")}")
      # What Ruby says if the next one comes as it asks for the first one's message.
      said = /oh \(RuntimeError\)|program\.rb:3:in .*: unhandled exception$/
      expect([outcome.status.exitstatus, outcome.stderr]).to match([1, said])
      expect(outcome.messages).to contain_exactly(/wrote p\.pb\.gz/)
      expect_profile
    end
  end
end
