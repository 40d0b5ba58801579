# frozen_string_literal: true

# What a session leaves in its process: nothing, also where system calls of rperf have failed.
RSpec.describe "A session that is over", **Faults::MARKS do
  include Faults

  program = <<~'RUBY'
    def state
      open = Dir.children("/proc/self/fd").filter_map { |name| File.readlink("/proc/self/fd/#{name}") rescue nil }
      status = File.read("/proc/self/status")
      { open: open.sort, threads: status[/^Threads:\s+(\d+)/, 1], signals: status[/^SigBlk.*^SigCgt.*?$/m],
        timers: File.exist?("/proc/self/timers") ? File.read("/proc/self/timers") : "",
        files: Dir.glob("**/*", File::FNM_DOTMATCH, base: ENV.fetch("TMPDIR")) }
    end

    # A thread that has ended is gone a moment later: the VM's own one stays beside this one.
    settle = -> { 500.times { state[:threads] == "2" ? break : sleep(0.01) } }
    # What the VM makes when it is first needed is no session's.
    Thread.new { sleep 0.001 }.join
    settle.call
    before = state
    sessions = Array.new(5) do |number|
      Rperf.start(mode: number.odd? ? :cpu : :wall, capture: number > 2 ? :safepoint : nil)
      Thread.new { 1000.times(&:to_s) }.join
      Rperf.stop.class
    rescue Rperf::Error, SystemCallError => e
      e.class
    end
    settle.call
    puts JSON.generate({ before:, after: state, sessions: })
  RUBY

  def remains(program, **faults)
    made = path_to(".made")
    File.write(made, "")
    env = { "LD_PRELOAD" => Faults.library, "FAULTS_IN" => "rperf.so", "FAULTS_MADE" => made }
    result = told(program, "-W0", env: env.merge(faults.transform_keys(&:to_s)), symbolize_names: true)
    expect(File.empty?(made)).to be(faults.empty?)
    result
  end

  it "has left no descriptor, thread, timer, file or handler of a signal" do
    result = remains(program)
    expect(result[:after]).to eq(result[:before])
    expect(result[:sessions]).to eq(["Rperf::Profile"] * 5)
  end

  {
    "no thread" => ["pthread_create", Errno::EAGAIN],
    "no timer" => ["timer_create", Errno::EAGAIN],
    "no handler" => ["sigaction", Errno::EINVAL],
    "no file" => ["open,open64,openat,openat64", Errno::EMFILE],
    "nothing read" => ["read,pread64", Errno::EIO]
  }.each do |what, (calls, error)|
    (Commands::LONG ? ["1+", "2", "3", "/2"] : ["1+", "2"]).each do |nth|
      it "has left nothing either where it got #{what} (#{error.name}, #{nth})" do
        result = remains(program, FAULTS_CALLS: calls, FAULTS_ERRNO: error::Errno.to_s, FAULTS_NTH: nth)
        expect(result[:after]).to eq(result[:before])
      end
    end
  end
end
