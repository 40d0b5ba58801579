# frozen_string_literal: true

require "digest"
require "etc"
require "io/console"
require "io/wait"
require "pty"
require "securerandom"
require "socket"
require "tmpdir"
require "zlib"

# What Ruby's own C extensions make of a signal (OpenSSL has a file of its own), and its work with files. As in Calls,
# each method has a result to compare and takes TIME seconds at least, unless it is one of QUICK.
class LibraryCalls
  TIME = 0.03
  QUICK = %i[gzip_through_pipe inflate inflate_broken send_file copy_file socket_both_ways pass_descriptor
             connect_by_name connect_in_time names users terminal terminal_size random directories files
             load_files].freeze
  # More than a pipe or a socket holds.
  DATA = Random.new(42).bytes(400_000).freeze

  # Zlib

  def gzip_through_pipe
    IO.pipe(binmode: true) do |reader, writer|
      zipper = Thread.new { Zlib::GzipWriter.wrap(writer) { |gzip| DATA.unpack("a10000" * 40).each { gzip << _1 } } }
      [digest(Zlib::GzipReader.wrap(reader, &:read)), zipper.join.class]
    end
  end

  def inflate
    text = DATA.unpack1("H*")
    deflated = Zlib.deflate(text, Zlib::BEST_SPEED)
    [digest(deflated), Zlib.inflate(deflated) == text, Zlib.crc32(text), Zlib.adler32(text)]
  end

  def inflate_broken
    Zlib.inflate(Zlib.deflate(DATA)[0...-100])
  rescue Zlib::BufError => e
    e.message
  end

  # Sockets

  def socket_both_ways
    here, there = UNIXSocket.pair
    echo = Thread.new { there.write(there.read(DATA.size)).tap { there.close } }
    written = here.write(DATA)
    [written, digest(here.read), echo.value]
  ensure
    here.close
  end

  def send_file
    with_file do |file|
      here, there = UNIXSocket.pair
      reader = Thread.new { digest(there.read) }
      [IO.copy_stream(file, here), here.close, reader.value]
    end
  end

  def pass_descriptor
    UNIXSocket.pair do |here, there|
      sender = Thread.new { here.send_io($stdout) }
      [there.recv_io.tap(&:close).class, sender.value]
    end
  end

  def connect_by_name = with_server { |port| TCPSocket.new("localhost", port).close }

  def connect_in_time
    with_server { |port| Socket.tcp("127.0.0.1", port, connect_timeout: 10, resolv_timeout: 10).close }
  end

  def names
    [Addrinfo.getaddrinfo("localhost", 80, nil, :STREAM).map(&:inspect).sort, Addrinfo.tcp("127.0.0.1", 80).getnameinfo,
     Socket.gethostname]
  end

  def select_many
    pairs = Array.new(100) { UNIXSocket.pair }
    IO.select(pairs.map(&:first), nil, nil, TIME)
  ensure
    pairs.flatten.each(&:close)
  end

  def receive_with_timeout
    UNIXSocket.pair do |here, there|
      here.timeout = TIME
      [there.class, here.recv(1)]
    end
  end

  # Terminals

  def terminal
    reader, writer, pid = PTY.spawn("read line; printf 'got %s' $line; exit 3")
    writer.puts("text")
    [reader.gets, reader.readpartial(100), Process.wait2(pid).last.exitstatus]
  ensure
    [reader, writer].each(&:close)
  end

  def terminal_reading
    PTY.open do |master, terminal|
      Thread.new { sleep(TIME) && master.write("x") }
      terminal.raw { |it| [it.getc, it.wait_readable(TIME)] }
    end
  end

  # The terminal's own time limit, of 0.1 s: its read returns without a byte.
  def terminal_timeout = PTY.open { |_, terminal| terminal.getch(min: 0, time: 0.1) }

  def terminal_size
    PTY.open do |_, terminal|
      terminal.winsize = [12, 34]
      [terminal.winsize, terminal.noecho(&:echo?), terminal.echo?]
    end
  end

  # Files

  def copy_file = with_file { |file| with_file { |other| [IO.copy_stream(file, other), other.fsync, other.size] } }

  def files
    with_file do |file|
      written = file.pwrite(DATA, 10)
      [written, file.fdatasync, digest(file.pread(20, 0)), digest(File.binread(file.path)), file.truncate(5), file.size]
    end
  end

  def directories
    Dir.mktmpdir do |directory|
      names = Array.new(20) { |number| File.join(directory, number.to_s) }
      names.each { |name| Dir.mkdir(name) && File.symlink(name, "#{name}/link") }
      found = Dir.glob("#{directory}/**/*").size
      names.each { |name| File.rename(name, "#{name}x") }
      [found, Dir.children(directory).size, names.count { |name| File.lstat("#{name}x/link").symlink? }]
    end
  end

  def load_files
    Dir.mktmpdir do |directory|
      Array.new(20) do |number|
        path = "#{directory}/part_#{number}.rb"
        File.write(path, "# text")
        [load(path), require(path)]
      end.uniq
    end
  end

  # The rest

  def users = [Etc::Passwd.map(&:name), Etc::Group.map(&:name), Etc.getpwnam("root").uid, Etc.nprocessors]
  def random = [Random.urandom(4_000_000).size, SecureRandom.hex(10_000).size]

  private

  def digest(data) = Digest::SHA256.hexdigest(data)[0, 20]

  def with_file(&)
    Dir.mktmpdir do |directory|
      File.binwrite("#{directory}/file", DATA)
      File.open("#{directory}/file", "r+b", &)
    end
  end

  # Each client that connects is accepted.
  def with_server
    TCPServer.open("127.0.0.1", 0) do |server|
      accepting = Thread.new { server.accept.close }
      [yield(server.addr[1]), accepting.join.class]
    end
  end
end
