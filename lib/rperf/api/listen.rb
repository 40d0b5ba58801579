# frozen_string_literal: true

require_relative "../hooks/fork_guard"
require_relative "../live/port"
require_relative "../session/options"

# A port for those who want to know what the running program does.
module Rperf
  class << self
    # Opens a port: a socket that only this user, and root, can connect to. `rperf ps` lists the programs that have one,
    # and other commands ask them. Until then a program differs only by a native thread that sleeps. Forked children
    # have ports of their own. A second call changes nothing.
    #
    # @param directory [String, Pathname, nil] where the socket is to be; nil: in the user's private folder
    # @return [String] the socket's path
    # @raise [ArgumentError] for a path that is none
    # @raise [Rperf::Error] if there can't be a port
    def listen(directory: nil)
      directory = Options.path(:directory, directory) unless directory.nil?
      ForkGuard.install
      Port.begin(directory)
    end

    private

    # @param value [String] that of RPERF_LISTEN
    def listen_as_asked(value)
      ForkGuard.install
      Port.begin_as_asked(value)
    end
  end
end
