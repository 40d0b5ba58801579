# frozen_string_literal: true

# Programs that wrap the methods that rperf wraps, too, by an alias of the method that was there.
RSpec.describe "Methods that a program wraps by an alias", vm: true do
  include Commands

  def chained(place, code)
    write_file("program.rb", <<~RUBY)
      def chain(owner, name, kind)
        owner.alias_method :"\#{name}_without_\#{kind}", name
        owner.define_method(name) do |*arguments, **options, &block|
          $stdout.write(kind, " ")
          $stdout.flush
          __send__(:"\#{name}_without_\#{kind}", *arguments, **options, &block)
        end
      end
      require "rperf" if ARGV == ["session"]
      Rperf.start(mode: :wall, measure: :ops) if ARGV == ["session"]
      chain(#{place}, "first")
      chain(#{place}, "second")
      #{code}
    RUBY
  end

  def printed_by(*command)
    outcome = run(*command)
    expect([outcome.status.exitstatus, outcome.stderr.lines.grep_v(/\Arperf: /)]).to eq([0, []])
    # A daemon goes on when the program that has begun it is over.
    printed = -> { File.read(path_to(".stdout")) }
    wait_until("end of the program") { printed.call.include?("done") }
    printed.call
  end

  {
    "Process._fork" => ["Process.singleton_class, :_fork", 'Process.wait(fork { print "done" })'],
    "Process.daemon" => ["Process.singleton_class, :daemon",
                         'Process.daemon(true, true); print "done"'],
    "exit!" => ["Kernel, :exit!", '$stdout.write("done"); $stdout.flush; exit!(0)'],
    "Process.exit!" => ["Process.singleton_class, :exit!", '$stdout.write("done"); $stdout.flush; Process.exit!(0)'],
    "exec" => ["Kernel, :exec", 'exec("printf", "done")'],
    "Process.exec" => ["Process.singleton_class, :exec", 'Process.exec("printf", "done")'],
    "Kernel.exec" => ["Kernel.singleton_class, :exec", 'Kernel.exec("printf", "done")']
  }.each do |method, (place, code)|
    it "are called once: #{method}" do
      program = chained(place, code)
      alone = printed_by(ruby, program)
      expect(alone).to include("second first ")
      expect(printed_by(ruby, "-I#{Commands::ROOT}/lib", program, "session")).to eq(alone)
      expect(printed_by(*rperf_command("record", "-o", "p.pb.gz"), ruby, program)).to eq(alone)
      expect(File).to exist(path_to("p.pb.gz"))
    end
  end
end
