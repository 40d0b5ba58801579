# frozen_string_literal: true

require_relative "../argument"
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
    # With an address the port is there, too, for those who have a token: RPERF_LISTEN_TOKEN, or one that is made, and
    # is in a file beside the socket, called PID-START.token.
    #
    # @param address [String, nil] "tcp://127.0.0.1:PORT"; with port 0, any that is free. Forked children have
    #   addresses of their own with port 0, and none with another one.
    # @param directory [String, Pathname, nil] where the socket is to be; nil: in the user's private directory
    # @param wake [Boolean] whether the main thread may be woken for an answer where all threads wait
    # @param helper [Boolean] whether to keep a thread for answers: a program in which all threads wait answers at once,
    #   and isn't woken; but Ruby notices no deadlocks then
    # @return [String] the socket's path; with an address, its URL, without the token
    # @raise [ArgumentError] for a path that is none, or another address
    # @raise [Rperf::Error] if there can't be a port
    def listen(address = nil, directory: nil, wake: true, helper: false)
      tcp = loopback_port(address) unless address.nil?
      directory = Options.path(:directory, directory) unless directory.nil?
      { wake:, helper: }.each { |name, value| Argument.one_of(name, value, [true, false]) }
      ForkGuard.install
      Port.begin(directory, tcp, wake:, helper:)
    end

    private

    def loopback_port(address)
      port = Native.loopback_port(address) if Argument.a?(address, String)
      port || Argument.reject(:address, address, "\"tcp://127.0.0.1:PORT\"")
    end

    # @param variables [#[]] RPERF_LISTEN and the like, without RPERF_
    def listen_as_asked(variables)
      ForkGuard.install
      Port.begin_as_asked(variables)
    end
  end
end
