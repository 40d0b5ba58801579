# frozen_string_literal: true

require "rbconfig"
require_relative "names"

module Rperf
  # The command is an executable without Ruby, made from the crate rperf-command. Any Ruby may start it: no syntax newer
  # than Ruby 2.5.
  module CLI
    LIBRARY = File.expand_path("..", __dir__)
    EXECUTABLE = File.join(LIBRARY, "rperf/bin/rperf-command")
    private_constant :LIBRARY, :EXECUTABLE

    class << self
      # This process becomes the command: its terminal stays, and so do signals that are ignored.
      # @param arguments [Array<String>] as in ARGV
      def start(arguments)
        leave_session
        abort("rperf: #{missing}") unless File.exist?(EXECUTABLE)
        abort("rperf: #{foreign}") if foreign?
        # crates/rperf-cli/src/installation.rs takes the first three.
        Kernel.exec([EXECUTABLE, "rperf"], "--started-by-ruby", RbConfig.ruby, LIBRARY, *arguments)
      rescue Errno::ENOENT
        # The file is there, and not what the file itself asks for: the dynamic linker, of musl or of glibc.
        abort("rperf: #{foreign}")
      rescue SystemCallError => e
        # Behind the system's words stands the file.
        abort("rperf: #{EXECUTABLE} can't be run: #{e.message.split(" - ").first}")
      end

      private

      def missing
        "#{EXECUTABLE} is missing: install the gem again, or run bin/rperf, which builds it, in a checkout"
      end

      # Ruby hands what the system can't run to the shell, which would take it for a script.
      def foreign?
        own = "/proc/self/exe"
        File.exist?(own) && format_of(own) != format_of(EXECUTABLE)
      end

      # What an ELF file says of its format, word size and machine.
      def format_of(path)
        head = File.binread(path, 20).to_s
        [head[0, 5], head[18, 2]]
      end

      def foreign
        "#{EXECUTABLE} is for another system than #{RUBY_PLATFORM}: install the gem again"
      end

      # By RUBYOPT this Ruby may have loaded rperf, and may be profiled, or have a port: nobody wants that of a command.
      def leave_session
        return unless %i[Session Port].all? { |part| Rperf.const_defined?(part, false) }

        Session.current&.withdraw
        Port.close
      end
    end
  end
end
