# frozen_string_literal: true

require "fileutils"

# A program that is asked to end at any moment: from the start of the command to the end of the profile's writing.
# 2,000 times with RPERF_LONG=1 (bin/test --long).
RSpec.describe "A profile of a program that a signal ends at a random moment", vm: true do
  rounds = Commands::LONG ? 2_000 : 16
  program = '$stdout.syswrite("begun "); i = 0; i += 1 while i < 1_000_000; $stdout.syswrite("ended")'

  # Starts the command, yields its number and what the program prints, and says what that was at the end.
  def started(command)
    output, writer = IO.pipe
    pid = Process.spawn(clean_environment, *command, chdir: directory, pgroup: true, out: writer, err: path_to("err"))
    writer.close
    yield pid, output
    said = output.read
    [said, Process.wait2(pid).last]
  ensure
    output.close
  end

  # Seconds from the start of the command, and from that of the program, to the end of both.
  def durations(command)
    times = [now]
    started(command) { |_, output| output.wait_readable(Commands::TIME_LIMIT).then { times << now } }
    times.map { |start| now - start }
  end

  # To the command alone, as by `kill`, or to its group, as by Ctrl-C or a supervisor.
  def send_signal(signal, pid, group:)
    Process.kill(signal, group ? -pid : pid)
  rescue Errno::ESRCH
    nil
  end

  # Whether the profile that the command tells of is there, whole.
  def delivered?(path, errors)
    errors.match?(/^rperf: wrote /) && read_profile(path)[:samples].is_a?(Array)
  rescue StandardError => e
    errors << e.message
    false
  end

  it "is there, if the program has begun" do
    path = path_to("p.pb.gz")
    command = rperf_command("record", "-o", path, "--", ruby, "-e", program)
    begun = []
    lost = []
    times = nil
    rounds.times do |round|
      times = durations(command) if (round % 50).zero?
      FileUtils.rm_f(path)
      signal = %i[INT TERM][round % 2]
      # Of the command, half of the time is before the program begins.
      from = (round / 2) % 2
      delay = rand * times[from] * 1.1
      said, status = started(command) do |pid, output|
        output.wait_readable(Commands::TIME_LIMIT) if from == 1
        sleep(delay)
        send_signal(signal, pid, group: (round / 4).odd?)
      end
      next if said.empty?

      begun << said
      errors = File.read(path_to("err"))
      lost << [signal, from, delay, said, status.inspect, errors] unless delivered?(path, errors)
    end
    expect(lost).to eq([])
    expect(begun.size).to be >= rounds / 2
    expect(begun.uniq).to contain_exactly("begun ", "begun ended") if Commands::LONG
    expect(session_directories).to eq([])
  end
end
