# frozen_string_literal: true

# As systemd's SystemCallFilter= and containers have them. A filter that ends a process for a system call must not end a
# profiled program that would run without us.
RSpec.describe "A program with a filter for system calls", vm: true, emulated: false,
                                                           if: Gem::Platform.local.os == "linux" do
  def filtered(rules, *command, **)
    run(ruby, File.join(Commands::ROOT, "spec/security/filtered.rb"), rules, *command, **)
  end

  program = "i = 0; i += 1 while i < 10_000_000; puts 'ran'; exit 7"

  # Ruby itself needs prctl.
  %w[getpriority sched_setattr timer_create timer_settime].product(%w[kill EPERM ENOSYS]).each do |call, action|
    it "runs and is profiled if #{call} is met by #{action}" do
      outcome = filtered("#{call}=#{action}", *rperf_command("record", "-o", "p.pb.gz", "--", ruby, "-e", program))
      expect([outcome.stdout, outcome.status.exitstatus, outcome.status.termsig]).to eq(["ran\n", 7, nil])
      expect(outcome.messages).to contain_exactly(/\Arperf: wrote p\.pb\.gz/)
      expect(read_profile(path_to("p.pb.gz"))[:samples]).not_to be_empty
    end
  end

  it "runs and is profiled if all of them kill, and it profiles itself" do
    code = "require 'rperf'; data = Rperf.start { #{program.delete_suffix("exit 7")} }; exit data[:samples].empty?"
    rules = %w[getpriority sched_setattr timer_create].map { |call| "#{call}=kill" }.join(",")
    outcome = filtered(rules, ruby, "-I#{Commands::ROOT}/lib", "-e", code)
    expect([outcome.stdout, outcome.stderr, outcome.status.exitstatus]).to eq(["ran\n", "", 1])
  end

  it "runs and is profiled if they kill and no file can be opened when it begins: filters can't be counted" do
    code = <<~RUBY
      require "rperf"
      Process.setrlimit(:NOFILE, 64)
      files = []
      begin
        loop { files << File.open(IO::NULL) }
      rescue Errno::EMFILE
        data = Rperf.start(mode: :wall) { i = 0; i += 1 while i < 10_000_000 }
      end
      exit! data[:samples].empty? ? 1 : 0
    RUBY
    %w[getpriority sched_setattr timer_create timer_settime].each do |call|
      outcome = filtered("#{call}=kill", ruby, "-I#{Commands::ROOT}/lib", "-e", code)
      expect([call, outcome.status.exitstatus, outcome.status.termsig]).to eq([call, 0, nil])
    end
  end

  # Ruby itself waits by other calls.
  %w[EPERM ENOSYS kill].each do |action|
    it "forks while it is profiled, if clock_nanosleep is met by #{action}" do
      program = "3.times { Process.wait(fork { 1.to_s }) }; sleep 0.01; puts 'ran'; exit 7"
      outcome = filtered("clock_nanosleep=#{action}",
                         *rperf_command("record", "-o", "p.pb.gz", "--", ruby, "-e", program))
      expect([outcome.stdout, outcome.status.exitstatus, outcome.status.termsig]).to eq(["ran\n", 7, nil])
      expect(outcome.messages).to contain_exactly(/\Arperf: wrote p\.pb\.gz/)
    end
  end

  it "has no child of ours that it could hear of" do
    code = <<~RUBY
      trap(:CHLD) { puts "child" }
      require "rperf"
      sleep 0.1
      begin
        Process.wait
      rescue SystemCallError => e
        puts e.class
      end
    RUBY
    outcome = filtered("sched_setattr=kill", ruby, "-I#{Commands::ROOT}/lib", "-e", code)
    expect([outcome.stdout, outcome.status]).to match(["Errno::ECHILD\n", be_success])
  end

  it "writes no core of ours" do
    directory = path_to("cores")
    Dir.mkdir(directory)
    outcome = run("/bin/sh", "-c", 'ulimit -c unlimited; cd "$1"; shift; exec "$@"', "sh", directory, ruby,
                  File.join(Commands::ROOT, "spec/security/filtered.rb"), "sched_setattr=kill", ruby,
                  "-I#{Commands::ROOT}/lib", "-rrperf", "-e", "puts 'ran'")
    expect([outcome.stdout, Dir.children(directory)]).to eq(["ran\n", []])
  end

  it "may get the filter when rperf is there already" do
    code = <<~RUBY
      require "rperf"
      rules = "sched_setattr=kill"
      ARGV.replace([rules])
      def exec(*) = nil
      load #{File.join(Commands::ROOT, "spec/security/filtered.rb").inspect}
      data = Rperf.start(mode: :wall) { i = 0; i += 1 while i < 10_000_000 }
      exit! data[:samples].empty? ? 1 : 0
    RUBY
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-e", code)
    expect([outcome.stderr, outcome.status.exitstatus, outcome.status.termsig]).to eq(["", 0, nil])
  end
end
