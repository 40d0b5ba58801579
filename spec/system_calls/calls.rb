# frozen_string_literal: true

require "monitor"
require "open3"
require "socket"
require "tempfile"
require "timeout"
require "tmpdir"

# What Ruby does with system calls that wait, or that a signal could end early. Each is a method whose result can be
# compared; it takes TIME seconds at least, unless it is one of QUICK.
class Calls
  TIME = 0.03
  QUICK = %i[system_failing backticks spawn_failing flock_without_waiting accept_without_waiting
             connect_refused wait_without_child write_to_closed_pipe open3 read_nonblock].freeze

  def sleep_for = sleep(TIME).class
  def thread_join = Thread.new { sleep }.then { |thread| [thread.join(TIME), thread.kill.class] }
  def thread_value = Thread.new { sleep(TIME) && :value }.value
  def timeout = Timeout.timeout(TIME) { sleep }
  def timeout_in_read = Timeout.timeout(TIME) { with_pipe { |reader, _| reader.read } }

  def sleep_until_woken
    sleeper = Thread.current
    over = false
    waker = Thread.new { sleep(TIME) && (sleeper.wakeup && sleep(0.005) until over) }
    sleep
    over = true
    waker.join.class
  end

  # A signal with a handler interrupts, and the sleep goes on.
  def sleep_with_trap
    handled = false
    before = trap(:USR1) { handled = true }
    pid = spawn("sleep 0.01; kill -USR1 #{Process.pid}")
    slept = sleep(TIME).class
    Thread.pass until handled
    [slept, Process.wait2(pid).last.exitstatus]
  ensure
    trap(:USR1, before)
  end

  def queue_pop = Queue.new.pop(timeout: TIME)
  def queue_pop_from_thread = Queue.new.tap { |queue| Thread.new { sleep(TIME) && (queue << :item) } }.pop
  def queue_push = SizedQueue.new(1).tap { |queue| queue << 1 }.push(2, timeout: TIME)
  def condition_wait = Mutex.new.then { |mutex| mutex.synchronize { ConditionVariable.new.wait(mutex, TIME).class } }

  def condition_signal
    mutex = Mutex.new
    condition = ConditionVariable.new
    signalled = false
    mutex.synchronize do
      Thread.new { sleep(TIME) && mutex.synchronize { (signalled = true) && condition.signal } }
      condition.wait(mutex) until signalled
    end
    signalled
  end

  def mutex_lock
    mutex = Mutex.new
    locked = Queue.new
    Thread.new { mutex.synchronize { (locked << true) && sleep(TIME * 1.5) } }
    locked.pop
    mutex.synchronize { mutex.owned? }
  end

  def mutex_sleep = Mutex.new.tap(&:lock).sleep(TIME).class
  def monitor_wait = Monitor.new.then { |monitor| monitor.synchronize { monitor.new_cond.wait(TIME).class } }

  def select_none_of_two = with_pipe { |it, _| with_pipe { |other, _| IO.select([other, it], nil, nil, TIME) } }
  def select_one_of_two = with_child_writer { |it| with_pipe { |other, _| IO.select([other, it]).first == [it] } }
  def wait_readable = with_pipe { |reader, _| reader.wait_readable(TIME) }
  def read_pipe = with_child_writer(&:read)
  def readpartial_pipe = with_child_writer { |reader| reader.readpartial(100) }
  def sysread_pipe = with_child_writer { |reader| reader.sysread(100) }
  def gets_pipe = with_child_writer(&:gets)
  def copy_stream = with_child_writer { |reader| IO.copy_stream(reader, File::NULL) }
  def read_nonblock = with_pipe { |reader, _| reader.read_nonblock(10) }
  def write_to_closed_pipe = with_pipe { |reader, writer| reader.close.nil? && writer.write("x") }

  def read_with_timeout
    with_pipe do |reader, _|
      reader.timeout = TIME
      reader.read(1)
    end
  end

  # More than a pipe holds.
  def write_to_full_pipe
    with_pipe do |reader, writer|
      pid = spawn("sleep #{TIME}; wc -c", in: reader, out: File::NULL, writer => :close)
      reader.close
      written = writer.write("x" * 300_000)
      writer.close
      [written, Process.wait2(pid).last.exitstatus]
    end
  end

  # Opening it waits for the other end.
  def open_fifo
    Dir.mktmpdir do |directory|
      path = File.join(directory, "fifo").tap { |name| File.mkfifo(name) }
      pid = spawn("sleep #{TIME}; echo text > '#{path}'")
      [File.read(path), Process.wait2(pid).last.exitstatus]
    end
  end

  def flock
    with_locked_file(-> { sleep(TIME * 1.5) }) { |file| [file.flock(File::LOCK_EX), file.flock(File::LOCK_UN)] }
  end

  def flock_without_waiting
    with_pipe do |reader, writer|
      until_told = -> { writer.close || reader.read }
      with_locked_file(until_told) { |file| [file.flock(File::LOCK_EX | File::LOCK_NB), writer.close] }
    end
  end

  def wait_child = Process.wait2(spawn("sleep #{TIME}; exit 3")).last.exitstatus
  def wait_in_thread = spawn("sleep #{TIME}; exit 3").then { |pid| Thread.new { Process.waitpid2(pid) }.value[1].to_i }
  def detach_child = Process.detach(spawn("sleep #{TIME}; exit 3")).value.exitstatus
  def wait_forked = Process.wait2(fork { sleep(TIME) && exit!(5) }).last.exitstatus
  def wait_without_child = Process.wait
  def system_waiting = [system("sleep #{TIME}; exit 3"), Process.last_status.exitstatus]
  def system_failing = [system("no-such-program"), Process.last_status.exitstatus]
  def spawn_failing = spawn("no-such-program")
  def backticks = [`printf text; exit 2`, Process.last_status.exitstatus]
  def popen = IO.popen("sleep #{TIME}; cat", "r+") { |io| [io.write("text"), io.close_write, io.read] }

  def open3
    Open3.capture3("cat; echo said >&2; exit 4", stdin_data: "x" * 100_000)
         .then { |out, err, status| [out.size, err, status.exitstatus] }
  end

  def accept_tcp
    with_server { |server| accepting(server) { TCPSocket.new("127.0.0.1", server.addr[1]) } }
  end

  def accept_unix
    Dir.mktmpdir do |directory|
      UNIXServer.open("#{directory}/s") { |it| accepting(it) { UNIXSocket.new("#{directory}/s") } }
    end
  end

  def accept_without_waiting = with_server(&:accept_nonblock)
  def connect_refused = with_server { |server| server.addr[1] }.then { |port| TCPSocket.new("127.0.0.1", port) }

  def receive_datagram
    UDPSocket.open do |socket|
      socket.bind("127.0.0.1", 0)
      Thread.new { sleep(TIME) && UDPSocket.new.send("text", 0, "127.0.0.1", socket.addr[1]) }
      socket.recvfrom(10).first
    end
  end

  private

  def with_pipe(&)
    IO.pipe(&)
  end

  # A process writes when the time has passed, and ends.
  def with_child_writer
    reader, writer = IO.pipe
    pid = spawn("sleep #{TIME}; echo text", out: writer)
    writer.close
    [yield(reader), Process.wait2(pid).last.exitstatus]
  ensure
    reader.close
  end

  # Another process has the lock, for as long as `hold` takes.
  def with_locked_file(hold)
    file = Tempfile.create("locked")
    with_pipe do |reader, writer|
      pid = fork do
        File.open(file.path) { |own| own.flock(File::LOCK_EX) && writer.write("x") && hold.call }
        exit!(0)
      end
      reader.read(1)
      [yield(file), Process.wait2(pid).last.exitstatus]
    end
  ensure
    File.unlink(file.path)
  end

  def with_server(&) = TCPServer.open("127.0.0.1", 0, &)

  def accepting(server)
    client = Thread.new { sleep(TIME) && yield.tap { |socket| socket.write("text") }.close }
    server.accept.read.tap { client.join }
  end
end
