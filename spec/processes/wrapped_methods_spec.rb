# frozen_string_literal: true

# Programs that wrap the methods that rperf wraps, too, by an alias of the method that was there.
RSpec.describe "Methods that a program wraps", vm: true do
  include Commands

  # With and without a session, which wraps them in between.
  def program(before: "", after: "")
    write_file("program.rb", <<~RUBY)
      def note(kind)
        $stdout.write(kind, " ")
        $stdout.flush
      end

      def chain(owner, name, kind)
        owner.alias_method :"\#{name}_without_\#{kind}", name
        owner.define_method(name) do |*arguments, **options, &block|
          note(kind)
          __send__(:"\#{name}_without_\#{kind}", *arguments, **options, &block)
        end
      end

      #{before}
      if ARGV == ["session"]
        require "rperf"
        2.times do
          Rperf.start(mode: :wall, measure: :ops, inherit: true, output: "own.pb.gz")
          Rperf.stop
        end
        Rperf.start(mode: :wall, measure: :ops, inherit: true, output: "own.pb.gz")
      end
      #{after}
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

  def expect_the_same(path, printed)
    expect(printed_by(ruby, path)).to include(printed)
    alone = File.read(path_to(".stdout"))
    expect(printed_by(ruby, "-I#{Commands::ROOT}/lib", path, "session")).to eq(alone)
    expect(printed_by(*rperf_command("record", "-o", "p.pb.gz"), ruby, path)).to eq(alone)
    expect(File).to exist(path_to("p.pb.gz"))
  end

  {
    "Process._fork" => ["Process.singleton_class, :_fork", 'Process.wait(fork { print "done" })'],
    "Process.daemon" => ["Process.singleton_class, :daemon", 'Process.daemon(true, true); print "done"'],
    "exit!" => ["Kernel, :exit!", '$stdout.write("done"); $stdout.flush; exit!(0)'],
    "Process.exit!" => ["Process.singleton_class, :exit!", '$stdout.write("done"); $stdout.flush; Process.exit!(0)'],
    "exec" => ["Kernel, :exec", 'exec("printf", "done")'],
    "Process.exec" => ["Process.singleton_class, :exec", 'Process.exec("printf", "done", close_others: true)'],
    "Kernel.exec" => ["Kernel.singleton_class, :exec", 'Kernel.exec("printf", "done")']
  }.each do |method, (place, code)|
    it "by an alias are called once: #{method}" do
      path = program(before: %{chain(#{place}, "first")}, after: <<~RUBY)
        chain(#{place}, "second")
        chain(#{place}, "third")
        #{code}
      RUBY
      expect_the_same(path, "third second first ")
    end
  end

  it "by one that calls Kernel's with super are called once" do
    path = program(before: <<~RUBY, after: 'Process.exec("printf", "done")')
      def Process.exit!(*) = (note("exit"); super)
      def Process.exec(*) = (note("exec"); super)
      at_exit { Process.exit!(0) }
    RUBY
    expect_the_same(path, "exec ")
    path = program(after: <<~RUBY)
      def Process.exit!(*) = (note("exit"); super)
      note("done")
      Process.exit!(0)
    RUBY
    expect_the_same(path, "exit ")
  end

  it "get the keywords of programs that have changed them" do
    path = program(before: <<~RUBY, after: 'exec("printf", text: "done")')
      module Kernel
        alias exec_without_text exec
        def exec(command, text:) = exec_without_text(command, text)
      end
    RUBY
    expect_the_same(path, "done")
  end

  it "may be missing" do
    path = program(before: <<~RUBY, after: 'exec("printf", "done")')
      class << Process
        undef_method :exec
        remove_method :exit!
        undef_method :daemon
      end
    RUBY
    expect_the_same(path, "done")
  end

  it "raise with a backtrace that begins in the program, however they fail" do
    calls = ['exec("/nonexistent/program")', 'Process.exec("/nonexistent/program")', 'exit!("x")',
             "Process.exit!(1, 2)", "Process.daemon(1, 2, 3)", "Process._fork"]
    no_fork = <<~RUBY
      class << Process
        def _fork = raise(Errno::EAGAIN)
      end
    RUBY
    path = program(before: no_fork, after: <<~RUBY)
      def told
        yield
      rescue SystemCallError, ArgumentError, TypeError => e
        lines = e.backtrace.grep_v(/in '(Kernel#|Process\\.)/).map { |it| it[/[^:]*:\\d+/] }
        places = e.backtrace_locations.map { |it| "\#{it.path}:\#{it.lineno}" }.uniq
        puts [e.class, e.message, lines.uniq, lines.uniq == places, places.first].inspect
      end
      begin
        raise "one that is rescued"
      rescue RuntimeError
        #{calls.map { |it| "told { #{it} }" }.join("\n  ")}
      end
      puts "done"
    RUBY
    expect_the_same(path, path)
  end
end
