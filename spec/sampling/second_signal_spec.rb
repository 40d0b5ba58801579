# frozen_string_literal: true

# A profile is delivered whole, whatever comes meanwhile, and then the program ends by that.
RSpec.describe "the end of a profiled program", vm: true do
  def record(program, &)
    path = write_file("program.rb", "def work = (i = 0; i += 1 while i < 1_000_000)\nwork\n#{program}\n")
    rperf("record", "-o", "p.pb.gz", ruby, path, &)
  end

  def expect_profile
    expect(weight_of(read_profile(path_to("p.pb.gz")), "Object#work")).to be > 0
  end

  describe "by a second signal, while the profile is on its way" do
    # Sends itself one when the method has done its work, before its caller knows of that.
    def sends(signal, owner, method, condition = "true")
      <<~RUBY
        owner = Rperf.const_get(:#{owner[/\w+/]})#{owner[/\..*/]}
        owner.instance_method(:#{method})
        owner.prepend(Module.new do
          def #{method}(*args, **)
            super.tap do
              next unless !$sent && #{condition}
              $sent = true
              Process.kill(:#{signal}, $$)
            end
          end
        end)
        Process.kill(:#{signal}, $$)
        sleep
      RUBY
    end

    {
      "as profiling ends" => ["Native.singleton_class", "stop_into"],
      "as the figures are taken" => ["Native.singleton_class", "stats_line"],
      "as the file is written" => %w[NativeProfile write],
      "as that is reported" => ["SharedSession", "report", "args.first.start_with?('delivered')"]
    }.each do |moment, hook|
      { "INT" => ["", "INT", nil], "TERM" => ["", "TERM", nil],
        "a handled TERM" => ["trap(:TERM) { exit 12 }\n", nil, 12] }.each do |what, (setup, signal, status)|
        it "#{what}, #{moment}, is by that" do
          outcome = record("#{setup}#{sends(what[/\w+\z/], *hook)}")
          expect([outcome.status.termsig, outcome.status.exitstatus]).to eq([signal && Signal.list[signal], status])
          expect(outcome.messages).to contain_exactly(/wrote p\.pb\.gz/)
          expect_profile
        end
      end
    end

    it "and a third, and so on, is by them" do
      outcome = record("puts $$; $stdout.flush; sleep") do
        pid = Integer(File.read(path_to(".stdout")))
        # One of a flood of them could come as the at_exit block begins, and end it.
        5.times do
          Process.kill(:INT, pid)
          sleep 0.005
        end
      rescue Errno::ESRCH
        nil
      end
      expect(outcome.status.termsig).to eq(Signal.list["INT"])
      expect(outcome.messages).to contain_exactly(/wrote p\.pb\.gz/)
      expect_profile
    end

    it "is by that without a command, too, and the page is printed once" do
      env = { "RPERF_ENABLED" => "1", "RPERF_STAT" => "1", "RPERF_OUTPUT" => "p.pb.gz" }
      program = write_file("program.rb", "def work = (i = 0; i += 1 while i < 1_000_000)\nwork\n" \
                                         "trap(:TERM) { exit 12 }\n#{sends("TERM", "NativeProfile", "deliver")}")
      outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", program, env:)
      expect([outcome.status.exitstatus, outcome.stderr.scan("Performance stats").size]).to eq([12, 1])
      expect_profile
    end

    %i[output format show_lines?].each do |value|
      it "is by that without a command, too, as #{value} is read for the file" do
        program = write_file("program.rb", <<~RUBY)
          trap(:TERM) { exit 12 }
          def work = (i = 0; i += 1 while i < 1_000_000)
          work
          TracePoint.trace(:return) do |point|
            next if $sent || point.method_id != :#{value}
            $sent = true
            Process.kill(:TERM, $$)
          end
        RUBY
        env = { "RPERF_ENABLED" => "1", "RPERF_OUTPUT" => "p.pb.gz" }
        outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", program, env:)
        expect([outcome.status.exitstatus, outcome.stderr]).to eq([12, ""])
        expect_profile
      end
    end

    it "is by that without a command, too, as a line says where the file is" do
      program = write_file("program.rb", <<~RUBY)
        trap(:TERM) { exit 12 }
        Dir.rmdir("out")
        TracePoint.trace(:c_return) do |point|
          next if $sent || point.method_id != :shift
          $sent = true
          Process.kill(:TERM, $$)
        end
      RUBY
      Dir.mkdir(path_to("out"))
      env = { "RPERF_ENABLED" => "1", "RPERF_OUTPUT" => "out/p.pb.gz" }
      outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", program, env:)
      expect(outcome.status.exitstatus).to eq(12)
      expect(outcome.messages).to contain_exactly(%r{can't write the profile to .*/out/p\.pb\.gz .*; it is in })
    end

    it "that raises something else is by that" do
      outcome = record("trap(:TERM) { raise 'oh' if $sent; exit 3 }\n#{sends("TERM", "NativeProfile", "write")}")
      expect([outcome.status.exitstatus, outcome.stderr]).to match([1, /oh \(RuntimeError\)/])
      expect(outcome.messages).to contain_exactly(/wrote p\.pb\.gz/)
      expect_profile
    end
  end

  it "isn't left out when nothing of the profile can be had, and a line says so" do
    outcome = record("def (Rperf.const_get(:Native)).stop_into(*) = raise('oh')\nexit 5")
    expect(outcome.status.exitstatus).to eq(5)
    expect(outcome.messages).to include("rperf: can't deliver the profile: oh (RuntimeError)\n")
  end
end
