# frozen_string_literal: true

require "shellwords"

# Programs with fewer rights, or in namespaces of their own.
RSpec.describe "A profiled program", **Faults::MARKS do
  include Faults
  include OtherUser
  include Ports

  def usable?(before)
    run(*before, "true").status.success?
  rescue Errno::ENOENT
    false
  end

  libraries = "LD_LIBRARY_PATH=#{RbConfig::CONFIG.fetch("libdir")}"
  namespaces = ->(*flags) { ["env", libraries, "unshare", "--user", "--map-root-user", *flags] }
  {
    "in a user namespace" => namespaces[],
    "in a PID namespace with the outer /proc" => namespaces["--pid", "--fork", "--kill-child"],
    "in a PID namespace with its own /proc that shows nobody else's" =>
      namespaces["--pid", "--fork", "--kill-child", "--mount", *Faults.shell("mount -t proc -o hidepid=2 proc /proc")],
    "without /proc" => namespaces["--mount", *Faults.shell("mount -t tmpfs none /proc")],
    "that can have no queued signal" => ["prlimit", "--sigpending=0"]
  }.each_with_index do |(what, before), index|
    Faults.kinds(index).each do |kind|
      it "is as without rperf #{what} (#{kind})" do
        skip "no right for that" unless usable?(before)

        lefts = expect_same(kind, before:)
        expect(lefts.map(&:early)).to all(be <= 2)
      end
    end
  end

  Faults.kinds(1).each do |kind|
    it "is as without rperf in a root directory without /proc and /dev (#{kind})" do
      skip "needs root" unless Process.euid.zero?
      root = path_to(".root")
      Dir.mkdir(root)
      inside = ["chroot", root, "env", libraries, *Faults.shell("cd #{directory.shellescape}")]
      before = ["unshare", "--mount", "--propagation", "private",
                *Faults.shell("mount --bind / \"$PWD/.root\""), *inside]
      skip "no right for that" unless usable?(before)

      lefts = expect_same(kind, before:)
      expect(lefts.map(&:early)).to all(be <= 2)
    end
  end

  describe "of another user", if: OtherUser::USER do
    # A program that prints JSON, as another user.
    def told_as_other(code)
      env = { "TMPDIR" => others_directory }
      outcome = run(*OtherUser::COMMAND, ruby, "-W0", "-I#{Commands::ROOT}/lib", "-rrperf", "-rjson", "-r",
                    native_library, "-e", code, env:)
      expect([outcome.status, outcome.stderr]).to match([be_success, ""])
      JSON.parse(outcome.stdout, symbolize_names: true)
    end

    it "gets an Rperf::Error where there can be no further thread, and goes on" do
      told = told_as_other(<<~RUBY)
        Process.setrlimit(:NPROC, 1)
        thread = begin
          Thread.new { 1 }.value
        rescue ThreadError
          "none"
        end
        error = begin
          Rperf.start
          "none"
        rescue Rperf::Error => e
          e.message
        end
        Process.setrlimit(:NPROC, Process.getrlimit(:NPROC).last)
        puts JSON.generate({ thread:, error:, running: Rperf.running?, files: Dir.children(ENV.fetch("TMPDIR")) })
      RUBY
      expect(told).to match(thread: "none", error: /\Acan.t start profiling/, running: false, files: [])
    end

    it "sleeps as long as without rperf if nobody may look into it" do
      # Linux's include/uapi/linux/prctl.h, and the number of the system call.
      told = told_as_other(<<~RUBY)
        set_dumpable = 4
        syscall({ "x86_64" => 157, "aarch64" => 167 }.fetch(RbConfig::CONFIG["host_cpu"]), set_dumpable, 0, 0, 0, 0)
        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        def work = (now + 0.5).then { |ends| 100.times(&:to_s) while now < ends }
        Rperf.start(mode: :wall)
        early = Array.new(10) { SpecNative.nanosleep(50_000_000, true).first }.count(-1)
        work
        weight = Rperf.stop[:samples].sum { |frames, weight,| frames.any? { |it| it[1] == "Object#work" } ? weight : 0 }
        puts JSON.generate({ early:, work: weight / 1e9 })
      RUBY
      expect(told).to match(early: be <= 2, work: be >= 0.25)
    end

    it "is as without rperf when it becomes that user's" do
      program = program_of(<<~RUBY)
        work(0.2)
        Process::Sys.setresgid(#{OtherUser::USER}, #{OtherUser::USER}, #{OtherUser::USER})
        Process::Sys.setresuid(#{OtherUser::USER}, #{OtherUser::USER}, #{OtherUser::USER})
        work(0.2)
      RUBY
      # What it can't tell the command either.
      expect_same(program, is_whole: false, lines: 1..2)
    end

    it "keeps its port when it becomes that user's, who can ask then" do
      code = <<~RUBY
        socket = Rperf.listen
        Rperf.start(mode: :wall)
        Process::Sys.setresuid(#{OtherUser::USER}, #{OtherUser::USER}, #{OtherUser::USER})
        puts socket
        loop { 100.times(&:to_s) }
      RUBY
      listening(code) { |program| expect(answers?(program.lines.first)).to be(true) }
    end
  end
end
