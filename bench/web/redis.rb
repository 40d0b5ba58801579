# frozen_string_literal: true

require "fileutils"
require "socket"
require "tmpdir"

module Web
  # A Redis on a free port of this machine, which keeps nothing.
  class Redis
    CHECKOUT = File.expand_path("../..", __dir__)
    private_constant :CHECKOUT

    attr_reader :port

    # @return [String, nil] the path of Redis, or of Valkey
    def self.command
      directories = [File.join(CHECKOUT, "tmp/bin"), *ENV["PATH"].split(File::PATH_SEPARATOR)]
      paths = directories.product(%w[redis-server valkey-server]).map { |parts| File.join(*parts) }
      paths.find { |path| File.executable?(path) }
    end

    # @raise [LoadError] if there is none
    def initialize
      command = self.class.command || raise(LoadError, "no redis-server")
      @directory = Dir.mktmpdir("rperf-bench")
      @port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
      @pid = Process.spawn(command, "--port", @port.to_s, "--bind", "127.0.0.1", "--dir", @directory, "--save", "",
                           "--appendonly", "no", out: File::NULL, err: File::NULL)
      wait
    end

    def url = "redis://127.0.0.1:#{@port}/0"

    def stop
      Process.kill(:KILL, @pid)
      Process.wait(@pid)
      FileUtils.remove_entry(@directory)
    end

    private

    def wait
      TCPSocket.open("127.0.0.1", @port).close
    rescue Errno::ECONNREFUSED
      raise LoadError, "Redis has ended" if Process.wait(@pid, Process::WNOHANG)

      sleep(0.01)
      retry
    end
  end
end
